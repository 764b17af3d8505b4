//! Sending of the plan's requests, and measuring of their replies.

mod connect;
mod connection;
mod flight;
mod once;
mod pace;
mod run;
mod shared;
mod turns;
mod worker;

pub use run::{Mark, Outcome, Progress, SetUp, TlsSetUp, run};
pub use shared::End;
pub use turns::{Turn, TurnFigures, Turns};
pub use worker::OF_CONNECTIONS;
