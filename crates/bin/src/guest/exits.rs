//! What a VM exit takes, timed inside a guest, for `tare weigh`.
//!
//! `exit`: CPUID, for which Intel's and AMD's processors always leave the guest (Intel SDM volume 3,
//! 26.1.2; AMD APM volume 2, 15.9), and which KVM answers itself. An emulator has no exits: then it
//! is what it takes to emulate the instruction, and `run_by` tells so.

use std::hint::black_box;
use std::time::Instant;

use serde_json::{Value, json};

const REPEATS: usize = 9;
const CALLS: u32 = 2_000;
const ALONE: usize = 301;

/// Nanoseconds of each event in two ways, one figure a repeat; and why one could not be measured. `run_by`: the
/// hypervisor or emulator.
pub(crate) fn figures(run_by: &str) -> Value {
    let mut events = serde_json::Map::new();
    let mut lacks = Vec::new();
    match cpuid() {
        Some(ways) => {
            events.insert("exit".to_owned(), ways);
        }
        None => lacks.push("exit: this processor has no CPUID".to_owned()),
    }
    json!({"run_by": run_by, "events": events, "lacks": lacks})
}

#[cfg(target_arch = "x86_64")]
#[allow(clippy::unnecessary_wraps)] // other processors have none
fn cpuid() -> Option<Value> {
    Some(in_both_ways(|| std::arch::x86_64::__cpuid(black_box(0)).eax, || black_box(0)))
}

#[cfg(not(target_arch = "x86_64"))]
fn cpuid() -> Option<Value> {
    None
}

/// First: a loop of calls less one of calls without the event. Second: each alone, medians of both.
fn in_both_ways<T>(event: impl Fn() -> T, without: impl Fn() -> T) -> Value {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        first.push(loop_ns(&event) - loop_ns(&without));
        second.push(alone_ns(&event) - alone_ns(&without));
    }
    json!({"first": first, "second": second})
}

fn loop_ns<T>(call: impl Fn() -> T) -> f64 {
    let began = Instant::now();
    for _ in 0..CALLS {
        black_box(call());
    }
    ns(began) / f64::from(CALLS)
}

fn alone_ns<T>(call: impl Fn() -> T) -> f64 {
    let mut times: Vec<f64> = (0..ALONE)
        .map(|_| {
            let began = Instant::now();
            black_box(call());
            ns(began)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ALONE / 2]
}

fn ns(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_longer_has_higher_figures_in_both_ways() {
        let spin = |rounds: u32| {
            for round in 0..rounds {
                black_box(round);
            }
        };
        let ways = in_both_ways(|| spin(3_000), || spin(30));
        for way in ["first", "second"] {
            let mut figures: Vec<f64> =
                ways[way].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
            assert_eq!(figures.len(), REPEATS);
            figures.sort_by(f64::total_cmp);
            assert!(figures[REPEATS / 2] > 0.0, "{way}: {figures:?}");
        }
    }

    #[test]
    fn every_event_has_figures_or_a_reason() {
        let printed = figures("KVMKVMKVM");
        let events = printed["events"].as_object().unwrap();
        let lacks = printed["lacks"].as_array().unwrap();
        let lacking = lacks.iter().any(|why| why.as_str().unwrap().starts_with("exit"));
        assert!(events.contains_key("exit") != lacking, "{printed}");
        assert!(printed["run_by"].is_string());
    }
}
