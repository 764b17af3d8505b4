//! `tare-load`: sends requests to a database at intended times, and reports how long each took and why.

mod drive;
mod echo;
mod options;
mod plan;
mod request;
mod show;
mod sysbench;
mod ycsb;

use std::process::ExitCode;

use clap::Parser;
use tare_load::drive::End;

use drive::Ended;
use options::{Action, Options};
use request::Phase;

fn main() -> ExitCode {
    match act(Options::parse().action) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("tare-load: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn act(action: Action) -> Result<ExitCode, tare_load::LoadError> {
    match action {
        Action::Run(options) => {
            let plan = plan::of(&options, Phase::Run)?;
            let Ended { end, right, failed } = drive::run(&plan, &options)?;
            if end == End::Complete && right == 0 && failed > 0 {
                eprintln!(
                    "tare-load: none of {failed} operations had a right reply; `errors` says why"
                );
                return Ok(ExitCode::from(5));
            }
            Ok(code_of(&end))
        }
        Action::Load(options) => {
            let plan = plan::of(&options, Phase::Load)?;
            let Ended { end, failed, .. } = drive::run(&plan, &options)?;
            if end == End::Complete && failed > 0 {
                eprintln!("tare-load: {failed} records were not loaded; `errors` says why");
                return Ok(ExitCode::from(5));
            }
            Ok(code_of(&end))
        }
        Action::Plan(options) => {
            let plan = plan::of(&options.run, Phase::Run)?;
            show::operations(&plan, options.first)?;
            Ok(ExitCode::SUCCESS)
        }
        Action::Echo(options) => echo::answer(&options).map(|()| ExitCode::SUCCESS),
        Action::Ask(options) => echo::put(&options).map(|()| ExitCode::SUCCESS),
    }
}

/// 0: complete. 4: the server went away. 130: interrupted, as in shells.
fn code_of(end: &End) -> ExitCode {
    match end {
        End::Complete => ExitCode::SUCCESS,
        End::Gone(reason) => {
            eprintln!("tare-load: the server went away: {reason}");
            ExitCode::from(4)
        }
        End::Interrupted => ExitCode::from(130),
    }
}
