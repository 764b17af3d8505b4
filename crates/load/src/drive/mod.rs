//! Sends the plan's requests and measures their replies.

mod connect;
mod connection;
mod flight;
mod pace;
mod run;
mod worker;

pub use run::{End, Mark, Outcome, Progress, SetUp, run};
pub use worker::OF_CONNECTIONS;
