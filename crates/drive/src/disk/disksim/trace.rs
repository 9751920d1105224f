//! Traces of the validation suite: one request a line, with its measured service time.
//!
//! `R|W  Hit|Miss  first-block  blocks  service-time-us  idle-time-us`: the last is the time from the completion of
//! this request to the issue of the next; one request is outstanding at a time. The hit flag is not used.

use tier0_units::{Lba, Nanos};

use super::Problem;

/// One measured request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// Write or read.
    pub write: bool,
    /// First sector.
    pub lba: Lba,
    /// Sectors.
    pub sectors: u32,
    /// Measured service time.
    pub service: Nanos,
    /// From its completion to the issue of the next.
    pub idle_after: Nanos,
}

/// Reads a trace.
pub fn parse_trace(text: &str) -> Result<Vec<TraceRequest>, Problem> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let requests = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    requests.map(|(number, line)| parse_line(line).map_err(|text| Problem::new(number, text))).collect()
}

fn parse_line(line: &str) -> Result<TraceRequest, String> {
    let mut fields = line.split_whitespace();
    let write = match fields.next() {
        Some("R" | "r") => false,
        Some("W" | "w") => true,
        _ => return Err("a request must begin with R or W".into()),
    };
    let mut field = |name: &str| fields.next().ok_or(format!("the {name} is missing"));
    field("hit flag")?;
    let wrong = |name: &str, text: &str| format!("{name} {text:?} is not a number");
    let lba = field("first block")?;
    let lba = lba.parse().map_err(|_| wrong("first block", lba))?;
    let sectors = field("number of blocks")?;
    let sectors = sectors.parse().map_err(|_| wrong("number of blocks", sectors))?;
    let mut time = |name: &str| {
        let text = field(name)?;
        let us: f64 = text.parse().map_err(|_| wrong(name, text))?;
        // An hour is longer than anything that was measured, and millions of hours fit 64 bits of nanoseconds.
        if (0.0..=3_600e6).contains(&us) {
            Ok(Nanos((us * 1e3).round() as u64))
        } else {
            Err(format!("{name} {text:?} must be from 0 to an hour, in microseconds"))
        }
    };
    let service = time("service time")?;
    let idle_after = time("idle time")?;
    Ok(TraceRequest { write, lba: Lba(lba), sectors, service, idle_after })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_requests_and_names_the_wrong_line() {
        let text = "R Hit    1975456   4  15362.00000  56074.00000\n\nW Miss 7 12 2039.5 0\n";
        let requests = parse_trace(text).unwrap();
        assert_eq!(requests.len(), 2);
        assert_eq!((requests[0].lba, requests[0].sectors), (Lba(1_975_456), 4));
        assert_eq!((requests[1].write, requests[1].service), (true, Nanos(2_039_500)));
        for (text, line) in
            [("X", 1), ("R Hit 1 4 5 6\nR Hit 1 x 5 6", 2), ("W Hit 1 2 -3 4", 1), ("R Hit 1", 1)]
        {
            assert_eq!(parse_trace(text).unwrap_err().line, line, "{text}");
        }
    }
}
