//! `tier0 lab`: predictions, and how far the models can be trusted.

mod validate_drive;

use clap::Subcommand;

use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tier0 lab validate-drive --disksim measured/ atlas10k";

/// What to do.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Lab {
    /// Compare the disk model with the measured service times of a drive
    ValidateDrive(validate_drive::ValidateDrive),
}

/// Does it.
pub(crate) fn run(verb: &Lab) -> Result<(), Failure> {
    match verb {
        Lab::ValidateDrive(validate) => validate_drive::run(validate),
    }
}
