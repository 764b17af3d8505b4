//! sysbench's OLTP scripts: their options, named and defaulted as sysbench does.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use tare_load::LoadError;
use tare_load::workload::numbers::Zipfian;
use tare_load::workload::sysbench::{Counts, Draw, Engine, Script, Settings};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DrawName {
    Uniform,
    Gaussian,
    Special,
    Pareto,
    /// As in sysbench 1.1
    Zipfian,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "sysbench's OLTP scripts")]
pub(crate) struct SysbenchOptions {
    /// Operations: the events of this script, on sysbench's tables
    #[arg(long, value_name = "SCRIPT", value_parser = scripts())]
    pub sysbench: Option<Script>,
    /// Number of tables: sbtest1, sbtest2, …
    #[arg(long, value_name = "N", default_value_t = 1, requires = "sysbench", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub tables: u32,
    /// Rows per table
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "sysbench", value_parser = clap::value_parser!(u64).range(1..=2_147_483_647))]
    pub table_size: u64,
    /// Rows per range
    #[arg(long, value_name = "N", default_value_t = 100, requires = "sysbench", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub range_size: u64,
    /// Distribution of the rows
    #[arg(long, value_enum, default_value_t = DrawName::Special, requires = "sysbench")]
    pub rand_type: DrawName,
    /// gaussian and special: number of draws that are averaged
    #[arg(long, value_name = "N", default_value_t = 12, requires = "sysbench", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rand_spec_iter: u32,
    /// special: width of the band, in percent of the rows
    #[arg(long, value_name = "PERCENT", default_value_t = 1, requires = "sysbench", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub rand_spec_pct: u8,
    /// special: share of draws from the band, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 75, requires = "sysbench", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub rand_spec_res: u8,
    /// pareto: parameter h
    #[arg(long, value_name = "H", default_value_t = 0.2, requires = "sysbench")]
    pub rand_pareto_h: f64,
    /// zipfian: exponent
    #[arg(long, value_name = "EXPONENT", default_value_t = 0.8, requires = "sysbench")]
    pub rand_zipfian_exp: f64,
    /// Point SELECTs per event
    #[arg(long, value_name = "N", default_value_t = 10, requires = "sysbench")]
    pub point_selects: u8,
    /// Leave ranges out of all events, whatever their counts
    #[arg(long, requires = "sysbench")]
    pub no_range_selects: bool,
    /// Simple ranges per event
    #[arg(long, value_name = "N", default_value_t = 1, requires = "sysbench")]
    pub simple_ranges: u8,
    /// Sum ranges per event
    #[arg(long, value_name = "N", default_value_t = 1, requires = "sysbench")]
    pub sum_ranges: u8,
    /// Ordered ranges per event
    #[arg(long, value_name = "N", default_value_t = 1, requires = "sysbench")]
    pub order_ranges: u8,
    /// Ordered ranges without duplicates (DISTINCT) per event
    #[arg(long, value_name = "N", default_value_t = 1, requires = "sysbench")]
    pub distinct_ranges: u8,
    /// UPDATEs of the indexed column per event
    #[arg(long, value_name = "N", default_value_t = 1, requires = "sysbench")]
    pub index_updates: u8,
    /// UPDATEs of another column per event
    #[arg(long, value_name = "N", default_value_t = 1, requires = "sysbench")]
    pub non_index_updates: u8,
    /// DELETEs per event, each followed by an INSERT of the same row
    #[arg(long, value_name = "N", default_value_t = 1, requires = "sysbench")]
    pub delete_inserts: u8,
    /// Make every statement its own transaction
    #[arg(long, requires = "sysbench")]
    pub skip_trx: bool,
}

fn scripts() -> impl TypedValueParser<Value = Script> {
    PossibleValuesParser::new(Script::ALL.map(Script::name)).try_map(|name| {
        Script::ALL.into_iter().find(|script| script.name() == name).ok_or("no such script")
    })
}

/// Converts the options to the parameters of a script on such a server.
pub(crate) fn settings(
    chosen: &SysbenchOptions,
    script: Script,
    engine: Engine,
) -> Result<Settings, LoadError> {
    Ok(Settings {
        script,
        engine,
        tables: chosen.tables,
        table_size: chosen.table_size,
        range_size: chosen.range_size,
        draw: draw(chosen)?,
        counts: Counts {
            point_selects: chosen.point_selects,
            range_selects: !chosen.no_range_selects,
            simple_ranges: chosen.simple_ranges,
            sum_ranges: chosen.sum_ranges,
            order_ranges: chosen.order_ranges,
            distinct_ranges: chosen.distinct_ranges,
            index_updates: chosen.index_updates,
            non_index_updates: chosen.non_index_updates,
            delete_inserts: chosen.delete_inserts,
            skip_trx: chosen.skip_trx,
        },
    })
}

fn draw(chosen: &SysbenchOptions) -> Result<Draw, LoadError> {
    let wrong = |what: &str| Err(LoadError::Usage(what.to_owned()));
    let rounds = chosen.rand_spec_iter;
    Ok(match chosen.rand_type {
        DrawName::Uniform => Draw::Uniform,
        DrawName::Gaussian => Draw::Gaussian { rounds },
        DrawName::Special => Draw::Special {
            rounds,
            width: chosen.rand_spec_pct.into(),
            values: chosen.rand_spec_res.into(),
        },
        DrawName::Pareto if chosen.rand_pareto_h > 0.0 && chosen.rand_pareto_h < 1.0 => {
            Draw::pareto(chosen.rand_pareto_h)
        }
        DrawName::Pareto => return wrong("--rand-pareto-h must be between 0 and 1"),
        DrawName::Zipfian if (0.0..=10.0).contains(&chosen.rand_zipfian_exp) => {
            Draw::Zipfian(Zipfian::new(chosen.table_size, chosen.rand_zipfian_exp))
        }
        DrawName::Zipfian => return wrong("--rand-zipfian-exp must be from 0 to 10"),
    })
}
