//! The sampler behind `tare-probe`: raw kernel counters, each with the window in which it was read.
//!
//! One real-time thread reads open files on an absolute time grid ([`sampler`]). It passes rows
//! through a lock-free ring ([`ring`]), in memory that outlives the program ([`tail`]), to a second
//! thread that writes them ([`pump`]). A third thread finds targets that appear or end
//! ([`discover`]). [`session`] runs all three.

pub mod block;
pub mod clock;
pub mod discover;
pub mod error;
pub mod facts;
pub mod handle;
pub mod lateness;
pub mod parse;
pub mod profile;
pub mod pump;
pub mod ring;
pub mod sampler;
pub mod schedule;
pub mod session;
pub mod sink;
pub mod source;
pub mod sys;
pub mod tail;

pub use error::ProbeError;
