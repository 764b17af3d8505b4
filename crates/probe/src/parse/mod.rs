//! Parsers of what the kernel prints. They allocate nothing and take bytes, not files, so that each
//! is tested on output captured from a real kernel.
//!
//! A field that is not there, or not a number that fits 63 bits, is `None`, never zero.

pub mod blkio;
pub mod diskstats;
pub mod fields;
pub mod io_stat;
pub mod keyed;
pub mod net_dev;
pub mod pid_stat;
pub mod pressure;
pub mod stat;
