//! Forms of text that are known by a name: lists of columns, and how a line of each is recognised.

use crate::Format;
use crate::columns::Columns;
use crate::text::{Fields, Separator, number};

/// A form of text with a name.
#[derive(Debug)]
pub(crate) struct Preset {
    pub(crate) format: Format,
    /// Its columns, as a user would list them.
    pub(crate) columns: &'static str,
    /// Its line of headings, where files have one, and what an error says is expected.
    pub(crate) heading: &'static str,
    /// What a line looks like.
    shape: &'static [Shape],
}

/// What a field looks like.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Digits.
    Whole,
    /// Digits, a point, digits.
    Decimal,
    /// Anything but nothing.
    Name,
    /// `Read`, `write`.
    Word,
    /// `R`, `w`.
    Letter,
    /// The same, or nothing.
    LetterOrNothing,
    /// 0 or 1.
    Bit,
    /// Seconds since 1970, in a year between 2001 and 2286.
    UnixSeconds,
}

use Shape::{Bit, Decimal, Letter, LetterOrNothing, Name, UnixSeconds, Whole, Word};

/// How many lines a form must fit whose lines say little of what they are.
const LINES_LOOKED_AT: usize = 8;

const PRESETS: [Preset; 6] = [
    // Microsoft Research Cambridge (SNIA IOTTA 388): times since 1601.
    Preset {
        format: Format::Msr,
        columns: "time:100ns,volume,volume,op,offset,size,-",
        heading: "timestamp,hostname,disknumber,type,offset,size,responsetime",
        shape: &[Whole, Name, Whole, Word, Whole, Whole, Whole],
    },
    // Alibaba Cloud's block traces of 2020 (Li et al.: An in-depth analysis of cloud block storage workloads, 2020).
    Preset {
        format: Format::Alibaba,
        columns: "volume,op,offset,size,time:us",
        heading: "device_id,opcode,offset,length,timestamp",
        shape: &[Whole, Letter, Whole, Whole, Whole],
    },
    // Tencent Cloud Block Storage (SNIA IOTTA 27917; Zhang et al.: OSCA, 2020).
    Preset {
        format: Format::Tencent,
        columns: "time:s,offset:sectors,size:sectors,op:01,volume",
        heading: "timestamp,offset,size,iotype,volumeid",
        shape: &[UnixSeconds, Whole, Whole, Bit, Whole],
    },
    // SYSTOR '17 (SNIA IOTTA 4964; Lee et al.: Understanding storage traffic characteristics on enterprise VDI, 2017).
    Preset {
        format: Format::Systor,
        columns: "time:s,-,op:optional,volume,offset,size",
        heading: "timestamp,response,iotype,lun,offset,size",
        shape: &[Decimal, Decimal, LetterOrNothing, Whole, Whole, Whole],
    },
    // The Storage Performance Council's format, as of the UMass traces: application storage unit, block, bytes.
    Preset {
        format: Format::Spc,
        columns: "volume,offset:sectors,size,op,time:s,...",
        heading: "asu,lba,size,opcode,timestamp",
        shape: &[Whole, Whole, Whole, Letter, Decimal],
    },
    // What VMware's `vscsiStats -e` makes of a trace: serial number, bytes, scatter-gather entries, command, block, time.
    Preset {
        format: Format::Vscsi,
        columns: "-,size,-,op:scsi,offset:sectors,time:us",
        heading: "serial number,io data length,num sg entries,command type,lbn,time stamp (microseconds)",
        shape: &[Whole, Whole, Whole, Word, Whole, Whole],
    },
];

impl Preset {
    /// That of a format, if it is text in columns.
    pub(crate) fn of(format: Format) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.format == format)
    }

    /// The one whose lines these are, without comments and blank lines. The last line may be cut off.
    pub(crate) fn recognise<'t>(lines: impl Iterator<Item = &'t [u8]> + Clone) -> Option<&'static Preset> {
        let first = lines.clone().next()?;
        PRESETS.iter().find(|preset| preset.is_heading(first) || preset.has_the_shape_of(lines.clone()))
    }

    fn is_heading(&self, line: &[u8]) -> bool {
        line.trim_ascii().eq_ignore_ascii_case(self.heading.as_bytes())
    }

    /// Lines with a word or a letter for what is done say enough; lines of numbers alone must agree.
    fn has_the_shape_of<'t>(&self, lines: impl Iterator<Item = &'t [u8]>) -> bool {
        let says_enough = !self.shape.iter().any(|shape| matches!(shape, Bit));
        let lines: Vec<&[u8]> = lines.take(if says_enough { 1 } else { LINES_LOOKED_AT + 1 }).collect();
        // The last of several may be cut off.
        let whole = if lines.len() > 1 { &lines[..lines.len() - 1] } else { &lines[..] };
        whole.iter().all(|line| self.fits(line))
    }

    fn fits(&self, line: &[u8]) -> bool {
        let mut fields = Fields::new(line, Separator::Byte(b','));
        let fits = self.shape.iter().all(|shape| fields.next().is_some_and(|field| shape.fits(field)));
        fits && (fields.next().is_none() || self.columns().is_open)
    }

    /// Its columns.
    pub(crate) fn columns(&self) -> Columns {
        self.columns.parse().expect("the lists of named forms are right")
    }
}

impl Shape {
    fn fits(self, field: &[u8]) -> bool {
        let is_letter = || matches!(field, b"R" | b"W" | b"r" | b"w");
        match self {
            Whole => number(field).is_some(),
            Decimal => {
                let mut parts = field.splitn(2, |byte| *byte == b'.');
                parts.next().is_some_and(|part| number(part).is_some())
                    && parts.next().is_some_and(|part| part.iter().all(u8::is_ascii_digit))
            }
            Name => !field.is_empty(),
            Word => field.eq_ignore_ascii_case(b"read") || field.eq_ignore_ascii_case(b"write"),
            Letter => is_letter(),
            LetterOrNothing => field.is_empty() || is_letter(),
            Bit => matches!(field, b"0" | b"1"),
            UnixSeconds => field.len() == 10 && number(field).is_some_and(|time| time >= 1_000_000_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_recognised_and_no_other() {
        for (text, format) in [
            ("128166372003061629,usr,0,Read,7014609920,24576,41286", Some(Format::Msr)),
            ("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime", Some(Format::Msr)),
            ("419,W,8792731648,16384,1577808144360767", Some(Format::Alibaba)),
            ("device_id,opcode,offset,length,timestamp", Some(Format::Alibaba)),
            ("1538323200,12910952,128,0,1063\n1538323200,6265016,8,1,1627\n15383", Some(Format::Tencent)),
            ("1538323200,12910952,128,0,1063\n1538323200,6265016,8,2,1627\n15383", None),
            ("1538323200,12910952,128,0,1063", Some(Format::Tencent)),
            ("153832320,12910952,128,0,1063", None),
            ("1455592208.007456000,0.000057,W,0,50331648,4096", Some(Format::Systor)),
            ("1455592208.007456000,0.000057,,0,50331648,4096", Some(Format::Systor)),
            ("Timestamp,Response,IOType,LUN,Offset,Size", Some(Format::Systor)),
            ("0,20941264,8192,W,0.551706", Some(Format::Spc)),
            ("0,20941264,8192,W,0.551706,7,8", Some(Format::Spc)),
            ("2147483692,4096,1,write,24048792,2756778716647", Some(Format::Vscsi)),
            ("1,2,3,4,5", None),
            ("1,R,3,4", None),
            ("1,4096,8,X,0.5", None),
        ] {
            let found = Preset::recognise(text.split('\n').map(str::as_bytes));
            assert_eq!(found.map(|preset| preset.format), format, "{text}");
        }
    }

    #[test]
    fn lists_are_right_and_no_form_is_another() {
        for preset in &PRESETS {
            let columns = preset.columns();
            assert_eq!(columns.list.len(), preset.shape.len(), "{preset:?}");
            assert_eq!(columns.list.len(), preset.heading.split(',').count(), "{preset:?}");
            assert_eq!(Preset::of(preset.format).map(|found| found.format), Some(preset.format));
        }
    }
}
