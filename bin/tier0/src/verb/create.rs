//! `tier0 create`: creates a new array on drives.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tier0_array::ArrayError;
use tier0_array::open::{CreateOptions, GroupLayout, OpenArray, create, is_virtual, rehearse_creation};
use tier0_description::Description;
use tier0_units::{ByteCount, named};

use super::asking::Agreement;
use super::check::trace_of_array;
use super::layout;
use crate::consent;
use crate::control::{check_not_served, served_already};
use crate::failure::Failure;
use crate::output::{json, print};
use crate::sockets::Accesses;

const EXAMPLES: &str = "\
Examples:
  tier0 create array.toml
      create the array on its drives
  tier0 create array.toml --force --yes
      overwrite drives that hold data
  tier0 create array.toml --force --yes --json
      the same as JSON

Drive files that do not exist are created if the array file gives their size,
with all space preallocated. Existing files may be sparse, with a warning.
Everything is checked before anything is written.";

/// In what the system counts the space of a file.
const BLOCK_BYTES: u64 = 512;

/// Creates an array.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Create {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// Overwrite drives that hold data or belong to an array; their data is lost
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    agreement: Agreement,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was created, for JSON.
#[derive(Serialize)]
struct Created<'a> {
    array: &'a str,
    pools: Vec<CreatedPool<'a>>,
    volumes: Vec<CreatedVolume<'a>>,
}

#[derive(Serialize)]
struct CreatedPool<'a> {
    name: &'a str,
    raid: &'a str,
    drives: usize,
    usable_bytes: u64,
    free_bytes: u64,
    /// The size of all volumes.
    promised_bytes: u64,
    /// Whether that is more than they can use.
    overcommitted: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<CreatedGroup<'a>>,
}

#[derive(Serialize)]
struct CreatedGroup<'a> {
    name: &'a str,
    raid: &'a str,
    drives: usize,
    usable_bytes: u64,
    free_bytes: u64,
}

#[derive(Serialize)]
struct CreatedVolume<'a> {
    name: &'a str,
    size_bytes: u64,
}

/// Creates it.
pub(crate) fn run(verb: &Create) -> Result<(), Failure> {
    let description = Description::read(&verb.array).map_err(Failure::input)?;
    if is_virtual(&description) {
        return Err(Failure::Input(format!(
            "all drives of array {:?} are modelled, so there is nothing to create it on; run it in virtual time with \"tier0 load \
             {file}\" or \"tier0 lab profile {file}\", or add paths",
            description.name,
            file = verb.array.display()
        )));
    }
    if let Some(ram) = description.drives.iter().find(|drive| drive.path.is_none()) {
        return Err(Failure::Input(format!(
            "drive {:?} is in memory, so an array created on it would not persist; add path, or run \
             \"tier0 serve {}\", which creates arrays in memory at each start",
            ram.name,
            verb.array.display()
        )));
    }
    Accesses::of(&description)?;
    // Its drives' files may be deleted under it, and new ones would be made beside.
    check_not_served(&description)?;
    let notes = description.all_notes();
    // What is refused for another reason, or overwritten with consent, is not asked for here.
    if let Some(trace) = trace_of_array(&description).filter(|_| !verb.force)
        && rehearse_creation(&description).is_ok_and(|rehearsal| rehearsal.overwrites.is_empty())
    {
        consent::obtain(&trace, verb.agreement.yes)?;
    }
    let array = match create(&description, CreateOptions::default()) {
        Err(
            held
            @ (ArrayError::Taken { .. } | ArrayError::CreatedAlready { .. } | ArrayError::Foreign { .. }),
        ) if verb.force => {
            consent::obtain(&what_is_lost(&held), verb.agreement.yes)?;
            overwrite(verb, &description)?
        }
        // Damage of what it held is no reason to keep it.
        Err(ArrayError::Pool(_)) if verb.force => {
            consent::obtain("drives that hold damaged metadata are overwritten", verb.agreement.yes)?;
            overwrite(verb, &description)?
        }
        created => created.map_err(|error| served_already(&description, &verb.array, error))?,
    };
    let overcommitted = array.layouts().filter_map(|pool| pool.overcommitment());
    for note in notes.into_iter().chain(sparse_files(&description)).chain(overcommitted) {
        tracing::warn!("{note}");
    }
    print(&if verb.json { json(&created(&array)) } else { text(verb, &array) })
}

fn overwrite(verb: &Create, description: &Description) -> Result<OpenArray, Failure> {
    create(description, CreateOptions { force: true })
        .map_err(|error| served_already(description, &verb.array, error))
}

/// Drive files for which their file system has not set aside all space. Behind a model they are sparse on purpose.
fn sparse_files(description: &Description) -> Option<String> {
    let mut names = Vec::new();
    let mut lacks = 0;
    for drive in description.drives.iter().filter(|drive| drive.model.is_none()) {
        let about = drive.path.as_ref().and_then(|path| std::fs::metadata(path).ok());
        let Some(about) = about.filter(std::fs::Metadata::is_file) else { continue };
        let lacking = about.len().saturating_sub(about.blocks().saturating_mul(BLOCK_BYTES));
        if lacking > 0 {
            names.push(drive.name.as_str());
            lacks += lacking;
        }
    }
    let (are, their) =
        if names.len() == 1 { ("is a sparse file", "its") } else { ("are sparse files", "their") };
    (!names.is_empty()).then(|| {
        format!(
            "{} {are}: {their} file system has not allocated {}, and writes wait if it becomes full; allocate the space with \
             \"fallocate -l SIZE FILE\", SIZE being the size of the file",
            named("drive", &names),
            ByteCount(lacks)
        )
    })
}

/// What a drive that is overwritten held.
fn what_is_lost(held: &ArrayError) -> String {
    match held {
        ArrayError::Taken { drive, pool, array } | ArrayError::CreatedAlready { drive, pool, array } => {
            format!(
                "drive {drive:?} belongs to pool {pool:?} of array {array:?}: it and all other drives of the array file are \
             overwritten, and their data is lost"
            )
        }
        ArrayError::Foreign { drive } => format!(
            "drive {drive:?} holds data that is not tier0's: it and all other drives of the array file are overwritten, \
             and their data is lost"
        ),
        held => held.to_string(),
    }
}

impl CreatedGroup<'_> {
    /// None of a group without a name.
    fn of(group: &GroupLayout) -> Option<CreatedGroup<'_>> {
        Some(CreatedGroup {
            name: group.name.as_deref()?,
            raid: &group.raid,
            drives: group.drives.len(),
            usable_bytes: group.usable_bytes,
            free_bytes: group.free_bytes,
        })
    }
}

fn created(array: &OpenArray) -> Created<'_> {
    let pools = array.layouts().map(|pool| CreatedPool {
        name: &pool.name,
        raid: &pool.raid,
        drives: pool.drives.len(),
        usable_bytes: pool.usable_bytes,
        free_bytes: pool.free_bytes,
        promised_bytes: pool.promised_bytes,
        overcommitted: pool.overcommitted,
        groups: pool.groups.iter().filter_map(CreatedGroup::of).collect(),
    });
    let volumes = array.volumes().map(|(name, size)| CreatedVolume { name, size_bytes: size.0 });
    Created { array: array.name(), pools: pools.collect(), volumes: volumes.collect() }
}

fn text(verb: &Create, array: &OpenArray) -> String {
    let layouts: Vec<_> = array.layouts().collect();
    format!(
        "created array {}; \"tier0 serve {}\" serves it\n\n{}",
        array.name(),
        verb.array.display(),
        layout::text(&layouts)
    )
}
