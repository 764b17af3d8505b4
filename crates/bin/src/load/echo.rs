//! `tare-load echo` and `tare-load ask`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tare_load::echo::{Listen, Question, ask, serve};
use tare_load::{Fault, LoadError};

#[derive(Debug, Args)]
pub(crate) struct EchoOptions {
    /// Address to listen on
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379")]
    address: String,
    /// Require the password in the first line of this file [default: no password]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AskOptions {
    /// Address of the server
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379")]
    address: String,
    /// Send the password in the first line of this file
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Time limit
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    limit: f64,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true)]
    words: Vec<String>,
}

pub(crate) fn answer(options: &EchoOptions) -> Result<(), LoadError> {
    let password = options.password_file.as_deref().map(first_line).transpose()?;
    serve(&Listen { address: resolved(&options.address)?, password })
}

pub(crate) fn put(options: &AskOptions) -> Result<(), LoadError> {
    let password = options.password_file.as_deref().map(first_line).transpose()?;
    let limit = Duration::try_from_secs_f64(options.limit)
        .ok()
        .filter(|limit| !limit.is_zero())
        .ok_or_else(|| {
            LoadError::Usage(format!("--limit: {} is not a time above 0", options.limit))
        })?;
    let question = Question {
        address: resolved(&options.address)?,
        password: password.as_deref(),
        words: &options.words,
        limit,
    };
    println!("{}", ask(&question)?.trim_end());
    Ok(())
}

fn resolved(address: &str) -> Result<SocketAddr, LoadError> {
    let failed = |source| LoadError::Connect { address: address.to_owned(), source };
    let mut found = address.to_socket_addrs().map_err(|error| failed(Fault::Resolve(error)))?;
    found.next().ok_or_else(|| LoadError::Usage(format!("{address} is not an address")))
}

fn first_line(path: &Path) -> Result<String, LoadError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| LoadError::File { path: path.to_owned(), source })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
