//! The generator behind `tare-load`: sends requests at intended times, and says when it was late itself.
//!
//! A [`plan::Plan`] holds what a run will do. [`drive`] opens connections ([`protocol`]) and has one
//! thread a core send operations ([`workload`]), at scheduled times ([`arrivals`]) or one after the
//! other. What they measured ([`measure`]) becomes logs and one document ([`report`]).

pub mod arrivals;
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
