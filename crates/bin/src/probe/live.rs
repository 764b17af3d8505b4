//! `tare-probe live`: the newest rates in the terminal, each with its bounds.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tare_probe::session;
use tare_probe::sink::board::SharedBoard;

use crate::failure::Failure;
use crate::options::LiveOptions;
use crate::screen;
use crate::signals::stop_on_signals;

/// Time between two pictures.
const REFRESH: Duration = Duration::from_secs(1);
/// Cursor to the top left; what is below the picture is erased after it.
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K\r\n";
const CLEAR_BELOW: &str = "\x1b[J";
const CLEAR_ALL: &str = "\x1b[2J";

pub(crate) fn run(options: &LiveOptions) -> Result<(), Failure> {
    let board = SharedBoard::default();
    let stop = stop_on_signals()?;
    let painter = paint(board.clone(), Arc::clone(&stop))?;
    let config = options.sampling.config(options.duration)?;
    let outcome = session::record(&config, vec![Box::new(board)], &stop);
    stop.store(true, Ordering::Relaxed);
    painter.thread().unpark();
    let drawn =
        painter.join().unwrap_or_else(|_| Err(std::io::Error::other("the painter panicked")));
    outcome?;
    // A reader that had enough (`| head`) is no failure.
    match drawn {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Lines of the picture that fit the terminal.
fn fitted(picture: &str) -> Vec<String> {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            screen::fit(picture, usize::from(size.ws_col), usize::from(size.ws_row))
        }
        _ => picture.lines().map(str::to_owned).collect(),
    }
}

/// Draws the board once a second until told to stop.
fn paint(
    board: SharedBoard,
    stop: Arc<AtomicBool>,
) -> Result<thread::JoinHandle<std::io::Result<()>>, Failure> {
    let is_terminal = std::io::stdout().is_terminal();
    let work = move || {
        let mut out = std::io::stdout().lock();
        if is_terminal {
            write!(out, "{CLEAR_ALL}")?;
        }
        while !stop.load(Ordering::Relaxed) {
            thread::park_timeout(REFRESH);
            let seen = board.look().clone();
            // What could not begin says why, and has nothing to show.
            if seen.header.is_none() {
                continue;
            }
            let picture = screen::picture(&seen);
            let drawn = if is_terminal {
                let lines = fitted(&picture).join(CLEAR_LINE);
                write!(out, "{HOME}{lines}{CLEAR_BELOW}").and_then(|()| out.flush())
            } else {
                writeln!(out, "{picture}").and_then(|()| out.flush())
            };
            if let Err(error) = drawn {
                stop.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    };
    Ok(thread::Builder::new().name("painter".to_owned()).spawn(work)?)
}
