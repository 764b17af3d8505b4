//! Two runs side by side: ratios with intervals from their windows.

use std::fmt::Write;
use std::path::Path;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::FORMAT;
use crate::error::LoadError;

/// The part of a document that is compared.
#[derive(Debug, Deserialize)]
pub struct Run {
    format: u32,
    measure: Phase,
    windows: Vec<Window>,
}

#[derive(Debug, Deserialize)]
struct Phase {
    right: u64,
    failed: u64,
    missed: u64,
}

#[derive(Debug, Deserialize)]
struct Window {
    phase: String,
    start_s: f64,
    end_s: f64,
    driven_s: Option<f64>,
    completed: u64,
    latency_ns: Option<Latency>,
}

#[derive(Debug, Deserialize)]
struct Latency {
    p50: f64,
    p95: Option<f64>,
    p99: Option<f64>,
}

/// Two runs, metric by metric.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Comparison {
    /// Version of this format.
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    format: u32,
    /// Operations without a right reply, and missed arrivals, as a share of all.
    failed: [f64; 2],
    metrics: Vec<Metric>,
}

/// Geometric means over the windows, and their ratio.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
struct Metric {
    name: &'static str,
    unit: &'static str,
    a: f64,
    b: f64,
    ratio: f64,
    /// Bounds of the 95 % interval of the ratio; `null`: fewer than five windows.
    interval: Option<[f64; 2]>,
}

impl Run {
    /// # Errors
    /// The file cannot be read, or is no document of `tare-load run`.
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| LoadError::File { path: path.to_owned(), source })?;
        let wrong = |why: String| LoadError::Usage(format!("{}: {why}", path.display()));
        let run: Self = serde_json::from_str(&text).map_err(|error| {
            wrong(format!("this is no document of `tare-load run --json`: {error}"))
        })?;
        if run.format != FORMAT {
            return Err(wrong(format!("format {}; this tare-load reads {FORMAT}", run.format)));
        }
        Ok(run)
    }

    /// A figure of each whole window of the measure phase; those of others cannot be compared.
    fn series(&self, figure: impl Fn(&Window) -> Option<f64>) -> Vec<f64> {
        let measured: Vec<&Window> =
            self.windows.iter().filter(|window| window.phase == "measure").collect();
        let longest = measured.iter().map(|window| window.seconds()).fold(0.0, f64::max);
        let whole = measured.iter().filter(|window| window.seconds() > longest / 2.0);
        whole.filter_map(|window| figure(window)).filter(|&value| value > 0.0).collect()
    }

    #[allow(clippy::cast_precision_loss)] // some 10^15 operations
    fn failed(&self) -> f64 {
        let failed = self.measure.failed + self.measure.missed;
        failed as f64 / (self.measure.right + failed).max(1) as f64
    }
}

impl Window {
    fn seconds(&self) -> f64 {
        self.driven_s.unwrap_or(self.end_s - self.start_s)
    }
}

/// Compares two runs in throughput and latency.
#[must_use]
pub fn compare(a: &Run, b: &Run) -> Comparison {
    #[allow(clippy::cast_precision_loss)] // some 10^15 operations
    let rate = |window: &Window| Some(window.completed as f64 / window.seconds());
    let latency = |pick: fn(&Latency) -> Option<f64>| {
        move |window: &Window| window.latency_ns.as_ref().and_then(pick).map(|ns| ns / 1e6)
    };
    let metrics = [
        metric("throughput", "operations/s", &a.series(rate), &b.series(rate)),
        both("p50", a, b, latency(|found| Some(found.p50))),
        both("p95", a, b, latency(|found| found.p95)),
        both("p99", a, b, latency(|found| found.p99)),
    ];
    let metrics = metrics.into_iter().flatten().collect();
    Comparison { format: 1, failed: [a.failed(), b.failed()], metrics }
}

fn both(
    name: &'static str,
    a: &Run,
    b: &Run,
    figure: impl Fn(&Window) -> Option<f64>,
) -> Option<Metric> {
    metric(name, "ms", &a.series(&figure), &b.series(&figure))
}

/// Fewest windows of which an interval is computed.
const FEWEST: usize = 5;
/// Windows are averaged to so many groups, as neighbouring ones are not independent.
const GROUPS: usize = 10;

fn metric(name: &'static str, unit: &'static str, a: &[f64], b: &[f64]) -> Option<Metric> {
    let (first, second) = (logarithms(a)?, logarithms(b)?);
    let difference = second.mean - first.mean;
    let interval = first.variance.zip(second.variance).map(|(one, other)| {
        // Welch (1947): unequal variances, and the degrees of freedom that go with them.
        let variance = one + other;
        let freedom = if variance > 0.0 {
            variance.powi(2)
                / (one.powi(2) / (first.count - 1.0) + other.powi(2) / (second.count - 1.0))
        } else {
            1.0
        };
        let half = student(freedom) * variance.sqrt();
        [(difference - half).exp(), (difference + half).exp()]
    });
    Some(Metric {
        name,
        unit,
        a: first.mean.exp(),
        b: second.mean.exp(),
        ratio: difference.exp(),
        interval,
    })
}

struct Logarithms {
    count: f64,
    mean: f64,
    /// Of the mean.
    variance: Option<f64>,
}

#[allow(clippy::cast_precision_loss)] // some windows
fn logarithms(values: &[f64]) -> Option<Logarithms> {
    let groups = values.len().min(GROUPS);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let means: Vec<f64> = (0..groups)
        .map(|group| mean(&logs[group * logs.len() / groups..(group + 1) * logs.len() / groups]))
        .collect();
    let (count, middle) = (groups as f64, mean(&means));
    let squares: f64 = means.iter().map(|value| (value - middle).powi(2)).sum();
    let variance = (groups >= FEWEST).then(|| squares / (count - 1.0) / count);
    (!values.is_empty()).then_some(Logarithms { count, mean: middle, variance })
}

/// 97.5 % quantile of Student's t (Abramowitz and Stegun 26.7.5).
fn student(freedom: f64) -> f64 {
    const Z: f64 = 1.959_963_985;
    let z = |exponent: i32| Z.powi(exponent);
    Z + (z(3) + Z) / (4.0 * freedom)
        + (5.0 * z(5) + 16.0 * z(3) + 3.0 * Z) / (96.0 * freedom.powi(2))
        + (3.0 * z(7) + 19.0 * z(5) + 17.0 * z(3) - 15.0 * Z) / (384.0 * freedom.powi(3))
        + (79.0 * z(9) + 776.0 * z(7) + 1_482.0 * z(5) - 1_920.0 * z(3) - 945.0 * Z)
            / (92_160.0 * freedom.powi(4))
}

impl Comparison {
    /// For a person.
    #[must_use]
    pub fn table(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{:12} {:>12} {:>12} {:>8}  95 % interval", "", "A", "B", "B / A");
        for metric in &self.metrics {
            let Metric { name, unit, a, b, ratio, .. } = metric;
            let interval = metric.interval.map_or_else(
                || "fewer than five windows".to_owned(),
                |[low, high]| format!("{low:.3} to {high:.3}"),
            );
            let _ =
                writeln!(out, "{name:12} {a:>12.4} {b:>12.4} {ratio:>8.3}  {interval} ({unit})");
        }
        let [a, b] = self.failed.map(|share| share * 100.0);
        let _ = writeln!(out, "{:12} {a:>11.2} % {b:>10.2} %", "failed");
        out.push_str(
            "\nMeans over the windows. The interval has what varies within the two runs, not what differs from run\n\
             to run: repeat both in turn before you conclude.\n",
        );
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rates: &[u64]) -> Run {
        let window = |(number, &completed): (usize, &u64)| {
            let start = u32::try_from(number).expect("few");
            format!(
                r#"{{"phase": "measure", "start_s": {start}, "end_s": {}, "driven_s": null, "completed": {completed},
                "latency_ns": {{"p50": 1000000, "p95": 2000000, "p99": null}}}}"#,
                start + 1
            )
        };
        let mut windows: Vec<String> = rates.iter().enumerate().map(window).collect();
        windows.push(windows[0].replace("measure", "warm-up").replace(&rates[0].to_string(), "7"));
        let windows = windows.join(",");
        serde_json::from_str(&format!(
            r#"{{"format": 1, "measure": {{"right": 90, "failed": 8, "missed": 2}}, "windows": [{windows}]}}"#
        ))
        .expect("a document")
    }

    #[test]
    fn the_quantile_is_students() {
        for (freedom, known) in [(4.0, 2.776), (10.0, 2.228), (30.0, 2.042), (1e6, 1.960)] {
            assert!((student(freedom) - known).abs() < 2e-3, "{freedom}: {}", student(freedom));
        }
    }

    #[test]
    fn a_ratio_has_the_interval_that_is_known() {
        let rates = [1_000, 1_020, 980, 1_010, 990];
        let halves: Vec<u64> = rates.iter().map(|rate| rate / 2).collect();
        let compared = compare(&run(&rates), &run(&halves));
        let throughput = &compared.metrics[0];
        assert!((throughput.ratio - 0.5).abs() < 1e-12);
        // The standard deviation of the logarithms is 0.015815; t of 8 degrees of freedom is 2.306.
        let [low, high] = throughput.interval.expect("five windows");
        let half = 2.306 * 0.015_815 * (2.0_f64 / 5.0).sqrt();
        assert!((low - 0.5 * (-half).exp()).abs() < 1e-4, "{low}");
        assert!((high - 0.5 * half.exp()).abs() < 1e-4, "{high}");
        assert!(compared.failed.iter().all(|share| (share - 0.1).abs() < 1e-12));
        let names: Vec<&str> = compared.metrics.iter().map(|metric| metric.name).collect();
        assert_eq!(names, ["throughput", "p50", "p95"], "there is no p99");
        assert_eq!(compared.metrics[1].interval, Some([1.0, 1.0]));
    }

    #[test]
    fn few_windows_have_no_interval_and_many_are_grouped() {
        assert_eq!(compare(&run(&[10, 11]), &run(&[10, 12])).metrics[0].interval, None);
        let table = compare(&run(&[10, 11]), &run(&[10, 12])).table();
        assert!(table.contains("fewer than five windows"), "{table}");
        let slow: Vec<f64> = (0..100).map(|number| 1_000.0 + f64::from(number)).collect();
        let found = logarithms(&slow);
        assert!((found.expect("values").count - 10.0).abs() < 1e-12);
    }
}
