//! A server that does next to nothing, and one question to it: what a request costs on its way, without a database.
//!
//! It speaks RESP, on one thread, and keeps no data. `GET N` is answered by N bytes, `SET key value` by `OK`, so a
//! request of any size and a reply of any size can be had. What a network path adds to it is the path's alone.

mod ask;
mod request;
mod serve;

pub use ask::{Question, ask};
pub use serve::{Listen, serve};
