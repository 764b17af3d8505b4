//! `tare-load`: sends requests to a database at intended times, and reports how long each took and why.

mod climb;
mod drive;
mod echo;
mod options;
mod pgbench;
mod plan;
mod request;
mod show;
mod sysbench;
mod tpcc;
mod ycsb;

use std::process::ExitCode;

use std::io::{IsTerminal, Write};

use clap::{CommandFactory, Parser};
use tare_load::LoadError;
use tare_load::drive::End;
use tare_load::report::compare::{Run, compare};

use drive::Ended;
use options::{Action, CompareOptions, Options};
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

fn act(action: Action) -> Result<ExitCode, LoadError> {
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
        Action::Climb(options) => {
            let Ended { end, right, .. } = climb::climb(&options)?;
            if end == End::Complete && right == 0 {
                eprintln!("tare-load: no rate kept within the limit");
                return Ok(ExitCode::from(5));
            }
            Ok(code_of(&end))
        }
        Action::Compare(options) => compared(&options).map(|()| ExitCode::SUCCESS),
        Action::Completion { shell } => {
            let mut out = Vec::new();
            clap_complete::generate(shell, &mut Options::command(), "tare-load", &mut out);
            print(&out)
        }
        Action::Man => {
            let mut out = Vec::new();
            clap_mangen::Man::new(Options::command())
                .render(&mut out)
                .map_err(LoadError::Output)?;
            print(&out)
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

fn print(out: &[u8]) -> Result<ExitCode, LoadError> {
    std::io::stdout().write_all(out).map_err(LoadError::Output)?;
    Ok(ExitCode::SUCCESS)
}

fn compared(options: &CompareOptions) -> Result<(), LoadError> {
    let comparison = compare(&Run::read(&options.a)?, &Run::read(&options.b)?);
    let mut out = std::io::stdout().lock();
    if options.json || !out.is_terminal() {
        serde_json::to_writer_pretty(&mut out, &comparison)
            .map_err(|error| LoadError::Output(error.into()))?;
        writeln!(out)
    } else {
        write!(out, "{}", comparison.table())
    }
    .map_err(LoadError::Output)
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
