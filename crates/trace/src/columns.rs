//! Text in columns: one request a line, whose columns a list names in their order.
//!
//! `time:ms,volume,offset:sectors,size,op,-`: each name says what a column holds and, after a colon, its unit. A list is what a
//! user writes for a trace of a form of its own, and what every named form is made of ([`crate::preset`]).

use std::fmt;
use std::str::FromStr;

use tier0_units::{ByteCount, SECTOR_BYTES};

/// What the columns of a text hold, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    pub(crate) list: Vec<Column>,
    /// More columns may follow, which are not used.
    pub(crate) is_open: bool,
}

/// What one column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// When, in units of so many nanoseconds; decimals may follow a point.
    Time { unit_ns: u64 },
    /// A part of the volume's name.
    Volume,
    /// The first byte, in units of so many bytes.
    Offset { unit: u64 },
    /// How many bytes, in units of so many.
    Size { unit: u64 },
    /// What is done.
    Op(Code),
    /// Something that is not used.
    Unused,
}

/// How a column says what is done. Words, such as `R` and `write`, are understood in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// 0 is a read, 1 a write.
    WriteIsOne,
    /// 1 is a read, 0 a write.
    ReadIsOne,
    /// Numbers are operation codes of SCSI commands.
    Scsi,
    /// Nothing stands for a request that is neither read nor write.
    Optional,
}

/// A list of columns that cannot be read with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnsError {
    /// A name that no column has.
    #[error(
        "\"{name}\" is no column; there are time, volume, offset, size, op, and \"-\" for one that is not used"
    )]
    UnknownColumn {
        /// The name.
        name: String,
    },
    /// A unit that the column cannot have.
    #[error("\"{unit}\" is no unit of the column {column}; it takes {allowed}")]
    UnknownUnit {
        /// The column.
        column: &'static str,
        /// The unit.
        unit: String,
        /// Those that it can have.
        allowed: &'static str,
    },
    /// A column that there is once was named again.
    #[error("the column {column} is named twice; write \"-\" for the one that is not to be used")]
    Twice {
        /// The column.
        column: &'static str,
    },
    /// Nothing says where a request goes.
    #[error("no column is the offset; name it, as in \"time,offset:sectors,size,op\"")]
    NoOffset,
}

const TIME_UNITS: [(&str, u64); 5] =
    [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000), ("100ns", 100), ("ns", 1)];
const CODES: [(&str, Code); 4] =
    [("01", Code::WriteIsOne), ("10", Code::ReadIsOne), ("scsi", Code::Scsi), ("optional", Code::Optional)];
/// What ends a list of columns that others may follow.
const OPEN_END: &str = "...";

impl Column {
    fn name(self) -> &'static str {
        match self {
            Column::Time { .. } => "time",
            Column::Volume => "volume",
            Column::Offset { .. } => "offset",
            Column::Size { .. } => "size",
            Column::Op(_) => "op",
            Column::Unused => "-",
        }
    }

    /// Whether it holds a number in every line that is a request.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Column::Time { .. } | Column::Offset { .. } | Column::Size { .. })
    }
}

impl FromStr for Column {
    type Err = ColumnsError;

    fn from_str(text: &str) -> Result<Column, ColumnsError> {
        let (name, unit) = match text.split_once(':') {
            Some((name, unit)) => (name.trim(), Some(unit.trim())),
            None => (text.trim(), None),
        };
        let refused = |column, allowed| ColumnsError::UnknownUnit {
            column,
            unit: unit.unwrap_or_default().to_owned(),
            allowed,
        };
        let bytes = |column| match unit {
            None | Some("bytes") => Ok(1),
            Some("sectors") => Ok(SECTOR_BYTES),
            Some(size) => match size.parse::<ByteCount>() {
                Ok(ByteCount(size)) if size > 0 => Ok(size),
                _ => Err(refused(column, "bytes, sectors (of 512 bytes), or a size such as 4KiB")),
            },
        };
        match name {
            "time" => {
                let unit = unit.unwrap_or("s");
                let known = TIME_UNITS.iter().find(|(name, _)| *name == unit);
                let (_, unit_ns) = known.ok_or_else(|| refused("time", "s, ms, us, 100ns or ns"))?;
                Ok(Column::Time { unit_ns: *unit_ns })
            }
            "offset" => Ok(Column::Offset { unit: bytes("offset")? }),
            "size" => Ok(Column::Size { unit: bytes("size")? }),
            "op" => {
                let code = unit.unwrap_or("01");
                let known = CODES.iter().find(|(name, _)| *name == code);
                let allowed = "01 (1 is a write), 10 (1 is a read), scsi (operation codes) or optional";
                known.map(|(_, code)| Column::Op(*code)).ok_or_else(|| refused("op", allowed))
            }
            "volume" | "-" if unit.is_some() => {
                Err(refused(if name == "-" { "\"-\"" } else { "volume" }, "none"))
            }
            "volume" => Ok(Column::Volume),
            "-" => Ok(Column::Unused),
            _ => Err(ColumnsError::UnknownColumn { name: name.to_owned() }),
        }
    }
}

impl FromStr for Columns {
    type Err = ColumnsError;

    fn from_str(text: &str) -> Result<Columns, ColumnsError> {
        let mut names: Vec<&str> = text.split(',').collect();
        let is_open = names.pop_if(|last| last.trim() == OPEN_END).is_some();
        let list = names.into_iter().map(str::parse).collect::<Result<Vec<Column>, ColumnsError>>()?;
        for (place, column) in list.iter().enumerate() {
            let is_single = !matches!(column, Column::Volume | Column::Unused);
            if is_single && list[..place].iter().any(|other| other.name() == column.name()) {
                return Err(ColumnsError::Twice { column: column.name() });
            }
        }
        match list.iter().any(|column| matches!(column, Column::Offset { .. })) {
            true => Ok(Columns { list, is_open }),
            false => Err(ColumnsError::NoOffset),
        }
    }
}

impl fmt::Display for Column {
    /// With its unit, so that nothing is left to guess.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |unit: u64| match unit {
            1 => "bytes".to_owned(),
            SECTOR_BYTES => "sectors".to_owned(),
            unit => ByteCount(unit).to_string(),
        };
        match self {
            Column::Time { unit_ns } => {
                let unit = TIME_UNITS.iter().find(|(_, ns)| ns == unit_ns).map_or("", |(name, _)| name);
                write!(f, "time:{unit}")
            }
            Column::Offset { unit } => write!(f, "offset:{}", named(*unit)),
            Column::Size { unit } => write!(f, "size:{}", named(*unit)),
            Column::Op(Code::WriteIsOne) => f.write_str("op"),
            Column::Op(code) => {
                let code = CODES.iter().find(|(_, known)| known == code).map_or("", |(name, _)| name);
                write!(f, "op:{code}")
            }
            Column::Volume | Column::Unused => f.write_str(self.name()),
        }
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<String> = self.list.iter().map(Column::to_string).collect();
        names.extend(self.is_open.then(|| OPEN_END.to_owned()));
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        for (text, told) in [
            ("time,offset,size,op", "time:s,offset:bytes,size:bytes,op"),
            ("time:100ns, volume ,volume,op:10,offset:sectors,size:4KiB,-,...", ""),
            ("offset:8KiB", "offset:8KiB"),
            ("-,op:scsi,offset:bytes,time:us", "-,op:scsi,offset:bytes,time:us"),
        ] {
            let columns: Columns = text.parse().expect(text);
            let written = columns.to_string();
            assert_eq!(written.parse(), Ok(columns), "{written}");
            assert!(told.is_empty() || written == told, "{written}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_list_is_named() {
        for (text, told) in [
            ("time,lba", "\"lba\" is no column; there are time, volume, offset, size, op"),
            ("", "\"\" is no column"),
            ("time,size", "no column is the offset"),
            ("time:days,offset", "\"days\" is no unit of the column time; it takes s, ms, us, 100ns or ns"),
            ("offset:0", "\"0\" is no unit of the column offset; it takes bytes, sectors"),
            ("offset,size:some", "\"some\" is no unit of the column size"),
            ("offset,op:2", "\"2\" is no unit of the column op; it takes 01"),
            ("offset,volume:s", "\"s\" is no unit of the column volume; it takes none"),
            ("offset,time,offset", "the column offset is named twice; write \"-\""),
            ("...,offset", "\"...\" is no column"),
        ] {
            let error = text.parse::<Columns>().expect_err(text).to_string();
            assert!(error.starts_with(told), "{text}: {error}");
        }
    }
}
