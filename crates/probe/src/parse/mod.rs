//! Parsers of the kernel's files. They do not allocate, and take bytes, not files, so that each is
//! tested with output captured from a real kernel.
//!
//! A field that is missing, or not a number of up to 63 bits, is `None`, never zero.

pub mod blkio;
pub mod diskstats;
pub mod fields;
pub mod io_stat;
pub mod keyed;
pub mod net_dev;
pub mod pid_stat;
pub mod pressure;
pub mod stat;
