//! One module per verb.

pub(crate) mod admin;
pub(crate) mod advise;
mod asking;
pub(crate) mod bench;
pub(crate) mod catalog;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod create;
pub(crate) mod demo;
pub(crate) mod events;
pub(crate) mod iostat;
pub(crate) mod lab;
mod layout;
pub(crate) mod load;
mod recover;
pub(crate) mod serve;
mod settings;
pub(crate) mod status;
pub(crate) mod tier;

use crate::cli::{Cli, Verb};
use crate::failure::Failure;

/// Carries out the verb.
pub(crate) fn run(cli: Cli) -> Result<(), Failure> {
    match cli.verb {
        Verb::Advise(verb) => advise::run(&verb, &cli.global),
        Verb::Bench(verb) => bench::run(&verb, &cli.global),
        Verb::Lab(verb) => lab::run(&verb, &cli.global),
        Verb::Catalog(verb) => catalog::run(&verb),
        Verb::Completions(verb) => completions::run(&verb),
        Verb::Demo(verb) => demo::run(&verb, &cli.global),
        Verb::Create(verb) => create::run(&verb),
        Verb::Serve(verb) => serve::run(&verb),
        Verb::Load(verb) => load::run(&verb, &cli.global),
        Verb::Status(verb) => status::run(&verb, &cli.global),
        Verb::Iostat(verb) => iostat::run(&verb),
        Verb::Events(verb) => events::run(&verb),
        Verb::Check(verb) => check::run(&verb),
        Verb::Config(verb) => config::run(&verb),
        Verb::Drive(verb) => admin::drive(&verb),
        Verb::Pool(verb) => admin::pool(&verb),
        Verb::Scrub(verb) => admin::scrub(&verb),
        Verb::Volume(verb) => admin::volume(&verb),
        Verb::Tier(verb) => tier::run(&verb),
    }
}
