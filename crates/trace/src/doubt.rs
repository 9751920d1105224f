//! Whether a file's first bytes are what they are said to be. Numbers of blocks can be made of any bytes, so what looks like
//! something else is refused, or told.

use crate::Format;
use crate::error::excerpt;
use crate::format::is_text;

/// Text that is found where binary records should be: as many bytes of ASCII are not numbers by chance.
const ASCII_BYTES_MIN: usize = 16;
/// The same of bytes that any text may have, with the end of a line among them.
const TEXT_BYTES_MIN: usize = 256;
/// Bytes of UTF-16 that are enough to tell it, behind a byte order mark and without one.
const UTF16_BYTES_MIN: usize = 8;
const UNMARKED_UTF16_BYTES_MIN: usize = 32;
/// Numbers that are enough to look at how their bytes are distributed.
const NUMBERS_MIN: usize = 256;
/// So many numbers that are followed by the next higher one are no chance.
const SUCCESSORS_MIN: usize = 8;
/// Of so many numbers that are drawn by lot, each byte takes nearly all of its 256 values: 252 are expected, and fewer than 240
/// of them less often than once in a million times.
const NUMBERS: usize = 1024;
const RANDOM_VALUES_MIN: usize = 240;

/// What is wrong with a file, and what to do about it.
pub(crate) struct Doubt {
    pub(crate) fact: String,
    pub(crate) remedy: String,
}

/// Why a file cannot be of a format: it is text in an encoding that is not read, or something else than the records that were
/// named.
pub(crate) fn refusal(format: Option<Format>, head: &[u8]) -> Option<Doubt> {
    if let Some(encoding) = utf16(head) {
        return Some(Doubt {
            fact: format!("is text in {encoding}, which is not read"),
            remedy: format!("convert it first: iconv -f {encoding} -t UTF-8"),
        });
    }
    let format = format.filter(|format| !format.is_text())?;
    if let Some(what) = container(head) {
        return Some(Doubt { fact: format!("is {what}"), remedy: "name the file of a trace".to_owned() });
    }
    let is_ascii = head.len() >= ASCII_BYTES_MIN && head.is_ascii() && is_text(head);
    if is_ascii || head.len() >= TEXT_BYTES_MIN && is_text(head) && head.contains(&b'\n') {
        return Some(Doubt {
            fact: format!("is text ({}), and {format} is binary", excerpt(head)),
            remedy: "name another format, or none to have it recognised".to_owned(),
        });
    }
    None
}

/// What a file is whose format nobody has named and that is no trace.
pub(crate) fn foreign(head: &[u8]) -> Option<&'static str> {
    // Short beginnings, which records may have too.
    let others: [(&[u8], &str); 3] = [
        (b"BZh", BZIP2),
        (b"\x5d\x00\x00", "compressed as old-style lzma, which is not known"),
        (b"<", "a web page or XML"),
    ];
    container(head)
        .or_else(|| others.into_iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, what)| what))
}

const BZIP2: &str = "compressed with bzip2, where gzip, zstd and xz are known";

/// What a file is whose beginning is so long and so peculiar that no records have it.
fn container(head: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 9] = [
        (b"\x89PNG\r\n", "a PNG image"),
        (b"\xff\xd8\xff\xe0", "a JPEG image"),
        (b"GIF8", "a GIF image"),
        (b"%PDF-", "a PDF document"),
        (b"\x7fELF", "a program"),
        (b"PK\x03\x04", "a ZIP archive, of which its files are to be extracted"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive, of which its files are to be extracted"),
        (b"\x04\x22\x4d\x18", "compressed with lz4, which is not known"),
        (b"\x07\x65\x61\x74", "a recording of blktrace, which blkparse turns into text"),
    ];
    // After the size of its blocks, a bzip2 stream has the first digits of pi.
    if head.starts_with(b"BZh") && head.get(4..10) == Some(b"\x31\x41\x59\x26\x53\x59") {
        return Some(BZIP2);
    }
    // Where the size is not known beforehand, it is all ones.
    if head.starts_with(b"\x5d\x00\x00") && head.get(5..13) == Some(&[0xff; 8]) {
        return Some("compressed as old-style lzma, which is not known");
    }
    if head.get(257..262) == Some(b"ustar") {
        return Some("a tar archive, of which its files are to be extracted");
    }
    known.into_iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, what)| what)
}

/// Which UTF-16 it is, as `iconv` calls it.
fn utf16(head: &[u8]) -> Option<&'static str> {
    let (name, text, least) = match head {
        [0xff, 0xfe, text @ ..] | [0xfe, 0xff, text @ ..] => ("UTF-16", text, UTF16_BYTES_MIN),
        text => ("", text, UNMARKED_UTF16_BYTES_MIN),
    };
    let pairs = text.as_chunks::<2>().0;
    if text.len() < least {
        return None;
    }
    let is_all = |text: usize| pairs.iter().all(|pair| pair[1 - text] == 0 && is_text(&pair[text..=text]));
    let order = match () {
        () if is_all(0) => "UTF-16LE",
        () if is_all(1) => "UTF-16BE",
        () => return None,
    };
    Some(if name.is_empty() { order } else { name })
}

/// What was assumed where a format does not say what it is, and what speaks against it.
pub(crate) fn assumption(format: Format, head: &[u8]) -> Option<String> {
    let order = match format {
        Format::U32Be => "the most significant byte first",
        Format::U32Le => "the least significant byte first",
        _ => return None,
    };
    let assumed = format!(
        "read as {format}: every 4 bytes are the number of a block, {order}, and every request is a read"
    );
    let numbers = head.as_chunks::<4>().0;
    if numbers.len() < NUMBERS_MIN {
        return Some(assumed);
    }
    let numbers = &numbers[..numbers.len().min(NUMBERS)];
    let is_random = |place| values_of(numbers, place) >= RANDOM_VALUES_MIN;
    if numbers.len() == NUMBERS && (0..4).all(is_random) {
        return Some(format!(
            "{assumed}. The bytes look random, as those of compressed or encrypted files do: check the format"
        ));
    }
    // Where a block is followed by its neighbour, the order is right.
    let (as_le, as_be) = (successors(numbers, u32::from_le_bytes), successors(numbers, u32::from_be_bytes));
    let (other, own, others) = match format {
        Format::U32Le => (Format::U32Be, as_le, as_be),
        _ => (Format::U32Le, as_be, as_le),
    };
    match others >= SUCCESSORS_MIN && others > 2 * own {
        true => Some(format!(
            "{assumed}. The bytes look more like {other}: compare the results with --format {other}"
        )),
        false => Some(assumed),
    }
}

/// How many numbers are followed by the next higher one.
fn successors(numbers: &[[u8; 4]], read: impl Fn([u8; 4]) -> u32) -> usize {
    numbers.windows(2).filter(|pair| read(pair[0]).checked_add(1) == Some(read(pair[1]))).count()
}

/// How many values a byte of the numbers takes.
fn values_of(numbers: &[[u8; 4]], place: usize) -> usize {
    let mut seen = [false; 256];
    numbers.iter().for_each(|number| seen[usize::from(number[place])] = true);
    seen.iter().filter(|seen| **seen).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(format: Option<Format>, head: &[u8]) -> String {
        refusal(format, head).map_or_else(String::new, |doubt| format!("{}; {}", doubt.fact, doubt.remedy))
    }

    #[test]
    fn utf16_is_named_with_its_remedy() {
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let text = "1,usr,0,Read,0,512,1\r\n";
        let marked = [&b"\xff\xfe"[..], &wide(text)].concat();
        let swapped: Vec<u8> = marked.chunks(2).flat_map(|pair| [pair[1], pair[0]]).collect();
        for (bytes, encoding) in [(&marked, "UTF-16 "), (&swapped, "UTF-16 "), (&wide(text), "UTF-16LE ")] {
            for format in [None, Some(Format::Msr), Some(Format::U32Le)] {
                let told = told(format, bytes);
                let remedy = format!("convert it first: iconv -f {encoding}-t UTF-8");
                assert!(told.starts_with("is text in UTF-16") && told.ends_with(&remedy), "{told}");
            }
        }
        let blocks: Vec<u8> = (40..200u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(told(Some(Format::U32Le), &blocks), "");
        assert_eq!(told(None, b"\xff\xfe\x01\x02\x03\x04\x05\x06\x07\x08"), "");
    }

    #[test]
    fn numbers_are_not_made_of_texts_and_archives() {
        let bzip2 = b"BZh91AY&SY\xde\xad\xbe\xef\0\0\0\0\0\0";
        let lzma = b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0\x11";
        let text = b"1,2\n3,4\n5,6\n7,8\n";
        for (bytes, told_of) in [
            (&bzip2[..], "bzip2"),
            (lzma, "lzma"),
            (text, "is text"),
            (b"PK\x03\x04\0\0\0\0", "a ZIP archive"),
        ] {
            for format in [Format::U32Le, Format::U32Be, Format::OracleGeneral] {
                let told = told(Some(format), bytes);
                assert!(told.contains(told_of), "{told_of}: {told}");
            }
        }
        // The block 93 is no archive, nor is a short file.
        assert_eq!(told(Some(Format::U32Le), b"\x5d\0\0\0\x5e\0\0\0\x5f\0\0\0\x60\0\0\0"), "");
        assert_eq!(told(Some(Format::U32Le), b"abcd"), "");
    }

    #[test]
    fn what_numbers_are_taken_for_is_told() {
        let of = |numbers: &[u32], swap: bool| -> Vec<u8> {
            let bytes = |number: &u32| if swap { number.to_be_bytes() } else { number.to_le_bytes() };
            numbers.iter().flat_map(bytes).collect()
        };
        let near: Vec<u32> =
            (0..2000u32).map(|number| number / 8 * 7919 % 100_000 * 64 + number % 8).collect();
        let random: Vec<u32> =
            (1..2000u32).map(|n| n.wrapping_mul(0x9e37_79b9) ^ n.rotate_left(19)).collect();
        let told = |format, bytes: Vec<u8>| assumption(format, &bytes).expect("it is told");
        let right = told(Format::U32Le, of(&near, false));
        assert!(right.contains("u32-le") && right.ends_with("is a read"), "{right}");
        let right = told(Format::U32Be, of(&near, true));
        assert!(right.ends_with("is a read"), "{right}");
        let wrong = told(Format::U32Le, of(&near, true));
        assert!(wrong.ends_with("compare the results with --format u32-be"), "{wrong}");
        let odd = told(Format::U32Le, of(&random, false));
        assert!(odd.contains("compressed or encrypted"), "{odd}");
        assert_eq!(assumption(Format::Ids, b"1\n2\n"), None);
    }
}
