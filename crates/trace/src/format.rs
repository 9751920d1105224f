//! The formats, their names, and how one is recognised.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::preset::Preset;
use crate::{blkparse, fio, ids};

/// What a trace is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Comma-separated values of the collection of Microsoft Research Cambridge:
    /// `timestamp,hostname,disk,type,offset,size,response time`.
    Msr,
    /// Comma-separated values of Alibaba Cloud's block traces: `device,R or W,offset,length,timestamp`.
    Alibaba,
    /// Comma-separated values of Tencent's Cloud Block Storage: `timestamp,offset,size,0 or 1,volume`.
    Tencent,
    /// Comma-separated values of the SYSTOR '17 traces: `timestamp,response,R or W,LUN,offset,size`.
    Systor,
    /// The Storage Performance Council's comma-separated values: `ASU,block,bytes,R or W,timestamp`.
    Spc,
    /// What VMware's vscsiStats makes of a trace: `serial number,bytes,entries,command,block,timestamp`.
    Vscsi,
    /// Text in columns that were listed.
    Columns,
    /// Binary records of libCacheSim: time, object, its size and its next access.
    OracleGeneral,
    /// The default output of `blkparse`.
    Blkparse,
    /// fio's log of requests, version 2 or 3.
    Fio,
    /// Decimal numbers of blocks, one a line.
    Ids,
    /// Numbers of blocks in 32 bits, the most significant byte first.
    U32Be,
    /// Numbers of blocks in 32 bits, the least significant byte first.
    U32Le,
}

/// A name that no format has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{name}\" is no format of a trace; there are {}", Format::names(&Format::ALL))]
pub struct UnknownFormat {
    /// The name.
    pub name: String,
}

impl Format {
    /// All that can be named; columns are listed.
    pub const ALL: [Format; 12] = [
        Format::Msr,
        Format::Alibaba,
        Format::Tencent,
        Format::Systor,
        Format::Spc,
        Format::Vscsi,
        Format::Blkparse,
        Format::Fio,
        Format::Ids,
        Format::OracleGeneral,
        Format::U32Be,
        Format::U32Le,
    ];
    /// Those that do not say what they are.
    pub const BINARY: [Format; 3] = [Format::OracleGeneral, Format::U32Be, Format::U32Le];

    /// Its name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Msr => "msr",
            Format::Alibaba => "alibaba",
            Format::Tencent => "tencent",
            Format::Systor => "systor",
            Format::Spc => "spc",
            Format::Vscsi => "vscsi",
            Format::Columns => "columns",
            Format::OracleGeneral => "oracle-general",
            Format::Blkparse => "blkparse",
            Format::Fio => "fio",
            Format::Ids => "ids",
            Format::U32Be => "u32-be",
            Format::U32Le => "u32-le",
        }
    }

    /// Whether it has lines of text, as opposed to binary records.
    pub fn is_text(self) -> bool {
        !Format::BINARY.contains(&self)
    }

    /// Which format a file has that is called `path` and begins with these bytes, decompressed.
    ///
    /// Text is recognised by its first line that is neither blank nor a comment; some hundred bytes are enough. Binary
    /// formats do not say what they are: only oracleGeneral is recognised, where the name of the file has that word in
    /// it, as libCacheSim's have. None where the user has to say.
    pub fn guess(path: &Path, first: &[u8]) -> Option<Format> {
        // Lines further on may be damaged, which is for the reader to tell.
        if first.contains(&0) || !first_line(first).is_none_or(is_text) {
            let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
            // That one has other records.
            let is_oracle = name.contains("oraclegeneral") && !name.contains("oraclegeneralopns");
            return is_oracle.then_some(Format::OracleGeneral);
        }
        let line = first_line(first)?;
        let is_ids = || ids::parse(line).is_ok_and(|access| access.is_some());
        match () {
            () if fio::resembles(line) => Some(Format::Fio),
            () if is_ids() => Some(Format::Ids),
            () if blkparse::resembles(line) => Some(Format::Blkparse),
            () => Preset::recognise(lines(first)).map(|preset| preset.format),
        }
    }

    /// The names of some formats: "a, b or c".
    pub(crate) fn names(formats: &[Format]) -> String {
        let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
        match names.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Format, UnknownFormat> {
        let found = Format::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormat { name: name.to_owned() })
    }
}

/// Whether these bytes can stand in a text file.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..))
}

/// The first line that is neither blank nor a comment.
pub(crate) fn first_line(text: &[u8]) -> Option<&[u8]> {
    lines(text).next()
}

/// The lines that are neither blank nor comments.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let lines = text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.trim_ascii().is_empty() && !line.trim_ascii().starts_with(b"#"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        let told = "csv".parse::<Format>().expect_err("no format").to_string();
        let all =
            "msr, alibaba, tencent, systor, spc, vscsi, blkparse, fio, ids, oracle-general, u32-be or u32-le";
        assert_eq!(told, format!("\"csv\" is no format of a trace; there are {all}"));
    }

    #[test]
    fn text_says_what_it_is() {
        for (first, format) in [
            ("128166372003061629,usr,0,Read,7014609920,24576,41286\n128", Some(Format::Msr)),
            ("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\r\n", Some(Format::Msr)),
            ("fio version 2 iolog\n/dev/sdb add\n", Some(Format::Fio)),
            ("fio version 9 iolog\n", Some(Format::Fio)),
            (
                "  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427\n",
                Some(Format::Blkparse),
            ),
            ("Input file sda.blktrace.0 added\n", Some(Format::Blkparse)),
            ("419,W,8792731648,16384,1577808144360767\n", Some(Format::Alibaba)),
            ("#Vscsi Cmd Trace.\n#Serial Number,…\n7,4096,1,write,2,3\n", Some(Format::Vscsi)),
            ("0\r\n1\r\n", Some(Format::Ids)),
            ("\n# a comment\n42", Some(Format::Ids)),
            ("# only a comment\n", None),
            ("time,lba,size\n", None),
            ("1,2,3\n", None),
            ("Lorem ipsum", None),
        ] {
            assert_eq!(Format::guess(Path::new("trace"), first.as_bytes()), format, "{first}");
        }
    }

    #[test]
    fn binary_is_told_by_its_name_or_not_at_all() {
        let first = [0u8; 48];
        for (path, format) in [
            ("w106.oracleGeneral", Some(Format::OracleGeneral)),
            ("/a/cloudphysics.oracleGeneral.bin.zst", Some(Format::OracleGeneral)),
            ("x.oracleGeneralOpNS.zst", None),
            ("w106.trace.xz", None),
            ("oracleGeneral/w106", None),
            ("", None),
        ] {
            assert_eq!(Format::guess(Path::new(path), &first), format, "{path}");
        }
    }
}
