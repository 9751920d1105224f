//! What documents show: fenced blocks, what comments before them say, commands in tables.

use std::path::Path;

use super::scene::Stage;

/// A fenced block.
pub(super) struct Block {
    /// File and line.
    pub(super) place: String,
    /// What stands behind the fence.
    pub(super) language: String,
    pub(super) text: String,
    /// Why it does not run.
    pub(super) not_run: Option<String>,
    /// What it finds.
    pub(super) stage: Option<Stage>,
}

/// The blocks of a document, in order. A comment of one line directly before a block is about it.
pub(super) fn blocks(path: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(path).expect("a document");
    let name = path.file_name().expect("a name").to_string_lossy();
    let mut blocks: Vec<Block> = Vec::new();
    let (mut inside, mut said) = (false, "");
    for (number, line) in (1..).zip(text.lines()) {
        match line.trim().strip_prefix("```") {
            Some(_) if inside => inside = false,
            Some(language) => {
                inside = true;
                let told = |what: &str| comment(said)?.strip_prefix(what).map(|rest| rest.trim().to_owned());
                blocks.push(Block {
                    place: format!("{name}:{number}"),
                    language: language.to_owned(),
                    text: String::new(),
                    not_run: told("not run:"),
                    stage: told("scene:").map(|stage| Stage::named(&stage)),
                });
            }
            None if inside => {
                let block = blocks.last_mut().expect("it has begun");
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
        said = line;
    }
    assert!(!inside, "{name}: a block does not end");
    blocks
}

fn comment(line: &str) -> Option<&str> {
    line.trim().strip_prefix("<!--")?.strip_suffix("-->").map(str::trim)
}

/// The commands in the tables of a document; those with an ellipsis are none.
pub(super) fn commands_of_tables(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a document");
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let codes = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let commands = codes.filter(|code| code.starts_with("tier0 ") && !code.contains('…'));
    commands.map(str::to_owned).collect()
}
