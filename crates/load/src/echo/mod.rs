//! A minimal server and one request to it, to measure what a request costs on its way, without a database.
//!
//! It implements RESP, on one thread, and stores no data. The answer to `GET N` is N bytes, and to `SET key value`
//! `OK`, so requests and replies can have any size. Whatever a network path adds to their time is due to the path.

mod ask;
mod request;
mod serve;

pub use ask::{Question, ask};
pub use serve::{Listen, serve};
