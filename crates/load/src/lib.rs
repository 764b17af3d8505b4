//! The generator behind `tare-load`: sends requests at intended times, and reports when it was late itself.
//!
//! A [`plan::Plan`] describes a run. [`drive`] opens connections ([`protocol`]) and starts one thread per core, which
//! sends operations ([`workload`]) at scheduled times ([`arrivals`]) or one after the other. The measured figures
//! ([`measure`]) are written to logs and one document ([`report`]).

pub mod arrivals;
pub mod climb;
pub mod clock;
pub mod drive;
pub mod echo;
pub mod error;
pub mod measure;
pub mod plan;
pub mod protocol;
pub mod random;
pub mod report;
pub mod sys;
pub mod tls;
pub mod workload;

pub use error::{Fault, LoadError};
