//! `tare-probe`: samples the kernel's counters of host, containers and processes.

mod convert;
mod export;
mod failure;
mod floor;
mod live;
mod openmetrics;
mod options;
mod profile;
mod rates;
mod record;
mod recording;
mod screen;
mod serve;
mod shown;
mod signals;
mod specs;

use std::process::ExitCode;

use clap::Parser;

use failure::Failure;
use options::{Action, Options};

fn main() -> ExitCode {
    let options = Options::parse();
    match act(options.action) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("tare-probe: {failure}");
            failure.exit_code()
        }
    }
}

fn act(action: Action) -> Result<(), Failure> {
    match action {
        Action::Record(options) => record::run(&options),
        Action::Profile(options) => profile::run(&options),
        Action::Live(options) => live::run(&options),
        Action::Serve(options) => serve::run(&options),
        Action::Export(options) => export::run(&options),
        Action::Convert(options) => convert::run(&options),
        Action::Floor(options) => floor::run(&options),
    }
}
