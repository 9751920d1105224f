//! DiskSim's parameter language: blocks of `name = value`, separated by commas, with `#` comments.
//!
//! ```text
//! type [instance] { name of several words = value, … }
//! value: number | word | source FILE | [ value, … ] | type [instance] { … }
//! ```
//!
//! The reader is lenient where the files are: commas may be missing or trail, values may start on a later line, and
//! statements that are no parameters (`instantiate …`) are skipped.

use super::Problem;

/// Blocks nest three deep in practice.
const DEPTH_MAX: usize = 16;

/// A block: its type, and its parameters in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The first word before the brace.
    pub kind: String,
    /// Line of its opening brace.
    pub line: usize,
    /// Its parameters.
    pub entries: Vec<Entry>,
    /// Blocks that stand in it without a name.
    pub blocks: Vec<Block>,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name, in lower case with single spaces.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// Line of the name.
    pub line: usize,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number or a text.
    Word(String),
    /// A list, with the line of each element.
    List(Vec<(usize, Value)>),
    /// A block.
    Block(Block),
}

impl Value {
    /// As a number.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Value::Word(word) => word.parse::<f64>().ok().filter(|number| number.is_finite()),
            _ => None,
        }
    }

    /// The file of `source FILE`.
    pub fn as_source(&self) -> Option<&str> {
        match self {
            Value::Word(word) => word.strip_prefix("source").map(str::trim).filter(|file| !file.is_empty()),
            _ => None,
        }
    }
}

impl Block {
    /// The parameter with this name, whatever its case; the last one where it is repeated.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        let name = normal(name);
        self.entries.iter().rev().find(|entry| entry.name == name)
    }

    /// The first block, in it or below, whose type is one of `kinds`.
    pub fn block_of(&self, kinds: &[&str]) -> Option<&Block> {
        let own = self.blocks.iter();
        let named = self.entries.iter().filter_map(|entry| match &entry.value {
            Value::Block(block) => Some(block),
            _ => None,
        });
        own.chain(named).find_map(|block| {
            if kinds.contains(&block.kind.as_str()) { Some(block) } else { block.block_of(kinds) }
        })
    }

    /// A number, or `default` where it is missing.
    pub fn number_or(&self, name: &str, default: f64) -> Result<f64, Problem> {
        let Some(entry) = self.entry(name) else { return Ok(default) };
        let wrong = || Problem::new(entry.line, format!("\"{name}\" must be a number"));
        entry.value.as_number().ok_or_else(wrong)
    }

    /// A number that must be there.
    pub fn number(&self, name: &str) -> Result<f64, Problem> {
        match self.entry(name) {
            Some(_) => self.number_or(name, 0.0),
            None => Err(Problem::new(self.line, format!("this block lacks \"{name}\""))),
        }
    }

    /// A whole number from `least` to `most`, or `default` where it is missing.
    pub fn whole_or(&self, name: &str, default: u64, least: u64, most: u64) -> Result<u64, Problem> {
        let Some(entry) = self.entry(name) else { return Ok(default) };
        let number = self.number_or(name, 0.0)?;
        if number.fract() == 0.0 && number >= least as f64 && number <= most as f64 {
            return Ok(number as u64);
        }
        let text = format!("\"{name}\" is {number}; it must be a whole number from {least} to {most}");
        Err(Problem::new(entry.line, text))
    }

    /// A whole number that must be there.
    pub fn whole(&self, name: &str, least: u64, most: u64) -> Result<u64, Problem> {
        match self.entry(name) {
            Some(_) => self.whole_or(name, 0, least, most),
            None => Err(Problem::new(self.line, format!("this block lacks \"{name}\""))),
        }
    }

    /// A flag: false for 0, or where it is missing.
    pub fn flag(&self, name: &str) -> Result<bool, Problem> {
        Ok(self.number_or(name, 0.0)? != 0.0)
    }

    /// A word, in its own case.
    pub fn word(&self, name: &str) -> Option<(&str, usize)> {
        match self.entry(name) {
            Some(Entry { value: Value::Word(word), line, .. }) => Some((word, *line)),
            _ => None,
        }
    }

    /// The numbers of a list with their lines; none where it is missing.
    pub fn numbers(&self, name: &str) -> Result<Vec<(usize, f64)>, Problem> {
        let Some(entry) = self.entry(name) else { return Ok(Vec::new()) };
        let Value::List(list) = &entry.value else {
            return Err(Problem::new(entry.line, format!("\"{name}\" must be a list in brackets")));
        };
        let number = |(line, value): &(usize, Value)| match value.as_number() {
            Some(number) => Ok((*line, number)),
            None => Err(Problem::new(*line, format!("\"{name}\" must be a list of numbers"))),
        };
        list.iter().map(number).collect()
    }
}

/// Reads a text as the content of one block without a name.
pub(super) fn parse(text: &str) -> Result<Block, Problem> {
    let mut reader = Reader { rest: text, line: 1 };
    let block = reader.block_content(String::new(), 0)?;
    match reader.peek() {
        None => Ok(block),
        Some(_) => Err(Problem::new(reader.line, "a closing brace has no opening one")),
    }
}

fn normal(name: &str) -> String {
    name.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Reader<'a> {
    /// Skips blanks and comments, and says what comes then.
    fn peek(&mut self) -> Option<char> {
        loop {
            let next = self.rest.chars().next()?;
            if next == '#' {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.rest = &self.rest[end..];
            } else if next.is_whitespace() {
                self.line += usize::from(next == '\n');
                self.rest = &self.rest[next.len_utf8()..];
            } else {
                return Some(next);
            }
        }
    }

    fn skip(&mut self, char: char) -> bool {
        let found = self.peek() == Some(char);
        if found {
            self.rest = &self.rest[char.len_utf8()..];
        }
        found
    }

    /// The text up to one of `stops` or a comment, on this line, without blanks around.
    fn text(&mut self, stops: &[char]) -> &'a str {
        let end = self.rest.find(|c| c == '\n' || c == '#' || stops.contains(&c)).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        text.trim()
    }

    fn block_content(&mut self, kind: String, depth: usize) -> Result<Block, Problem> {
        let mut block = Block { kind, line: self.line, entries: Vec::new(), blocks: Vec::new() };
        if depth > DEPTH_MAX {
            return Err(Problem::new(self.line, format!("blocks nest deeper than {DEPTH_MAX}")));
        }
        while let Some(next) = self.peek() {
            match next {
                '}' => break,
                ',' => {
                    self.skip(',');
                }
                _ => self.item(&mut block, depth)?,
            }
        }
        Ok(block)
    }

    /// A parameter, a block without a name, or a statement to skip.
    fn item(&mut self, block: &mut Block, depth: usize) -> Result<(), Problem> {
        let line = self.line;
        let name = self.text(&['=', '{', '}', '[', ']', ',']);
        match self.rest.chars().next() {
            Some('=') => {
                self.skip('=');
                let value = self.value(depth)?;
                block.entries.push(Entry { name: normal(name), value, line });
            }
            Some('[' | ']') => {
                // `instantiate [ disk0 ] as NAME`: no parameter.
                self.skip('[');
                self.skip(']');
            }
            _ if self.peek() == Some('{') => block.blocks.push(self.block(name, depth)?),
            _ if name.is_empty() => {
                let text = format!("{:?} does not belong here", self.peek().unwrap_or(' '));
                return Err(Problem::new(self.line, text));
            }
            // A statement such as `source FILE` or `… as NAME`: no parameter.
            _ => {}
        }
        Ok(())
    }

    fn block(&mut self, head: &str, depth: usize) -> Result<Block, Problem> {
        let line = self.line;
        self.skip('{');
        let kind = head.split_whitespace().next().unwrap_or_default().to_owned();
        let block = self.block_content(kind, depth + 1)?;
        if self.skip('}') { Ok(block) } else { Err(Problem::new(line, "this brace is never closed")) }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Problem> {
        let line = self.line;
        if self.peek() == Some('[') {
            return self.list(depth);
        }
        let line = if self.peek().is_some() { self.line } else { line };
        let word = self.text(&[',', '{', '}', '[', ']', '=']);
        if self.peek() == Some('{') {
            return Ok(Value::Block(self.block(word, depth)?));
        }
        if word.is_empty() {
            return Err(Problem::new(line, "a value is missing"));
        }
        Ok(Value::Word(word.to_owned()))
    }

    fn list(&mut self, depth: usize) -> Result<Value, Problem> {
        let line = self.line;
        if depth > DEPTH_MAX {
            return Err(Problem::new(line, format!("lists nest deeper than {DEPTH_MAX}")));
        }
        self.skip('[');
        let mut list = Vec::new();
        while let Some(next) = self.peek() {
            match next {
                ']' => {
                    self.skip(']');
                    return Ok(Value::List(list));
                }
                ',' => {
                    self.skip(',');
                }
                '}' => break,
                _ => {
                    let line = self.line;
                    list.push((line, self.value(depth + 1)?));
                }
            }
        }
        Err(Problem::new(line, "this bracket is never closed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_blocks_lists_words_and_comments() {
        let text = "disk A {\n  Model = source a.model, # where\n  Add.  Delay (ms) = 0.5,\n  Zones = [\n    zone { # first\n      slips =\n        [ 1, 2,\n 3 ]\n    },\n  ]\n  Kind = extracted\n} # end\n\ninstantiate [ Foo ] as A\n";
        let file = parse(text).unwrap();
        let disk = file.block_of(&["disk"]).unwrap();
        assert_eq!(disk.entry("model").unwrap().value.as_source(), Some("a.model"));
        assert_eq!(disk.number("add. delay (MS)"), Ok(0.5));
        assert_eq!(disk.word("kind"), Some(("extracted", 11)));
        let Value::List(zones) = &disk.entry("Zones").unwrap().value else { panic!("zones are no list") };
        let Value::Block(zone) = &zones[0].1 else { panic!("the zone is no block") };
        assert_eq!(zone.numbers("slips").unwrap(), [(7, 1.0), (7, 2.0), (8, 3.0)]);
        assert_eq!(zone.numbers("defects"), Ok(Vec::new()));
    }

    #[test]
    fn says_where_it_fails() {
        let line = |text: &str| parse(text).unwrap_err().line;
        assert_eq!(line("a {\n b = 1,\n"), 1);
        assert_eq!(line("a = [ 1,\n 2"), 1);
        assert_eq!(line("a = 1\n}\n"), 2);
        assert_eq!(line("a = 1,\nb = ,"), 2);
        let deep = "a { ".repeat(40);
        assert!(parse(&deep).unwrap_err().text.contains("deeper"));
        let deep = format!("a = {}", "[ ".repeat(100_000));
        assert!(parse(&deep).unwrap_err().text.contains("deeper"));
    }

    #[test]
    fn numbers_are_checked() {
        let block = parse("a = 1.5, b = x, c = 7, d = [ 1, y ]").unwrap();
        assert!(block.whole_or("a", 0, 0, 9).is_err());
        assert!(block.number_or("b", 0.0).is_err());
        assert!(block.whole("c", 0, 6).is_err());
        assert_eq!(block.whole("c", 0, 7), Ok(7));
        assert!(block.whole("missing", 0, 7).is_err());
        assert!(block.numbers("d").is_err());
        assert!(block.numbers("c").is_err());
    }
}
