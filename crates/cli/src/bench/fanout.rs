//! Fan-out: one run, N mock branches, joined with `append`.
//!
//! Owns what a branch costs, and whether that grows with their number. Start reading at [`run`].

use std::path::Path;
use std::time::Instant;

use anyhow::bail;
use clap::Args;
use serde::{Deserialize, Serialize};
use steadfast::graph::{Graphs, Run};
use steadfast_core::graph::KIND;
use steadfast_core::ids::ActorId;
use steadfast_core::json::Json;
use steadfast_core::limits;

use super::child::{self, Job};
use super::limit::RawSqlite;
use super::machine::peak_bytes;
use super::place::Place;
use super::report::{Progress, Report, Table, count, mib, number, rounded};
use super::statistics::{median, ms, ratio};
use super::{GRACE, Size, client_runtime, graphs};

#[derive(Args)]
pub(crate) struct Options {
    /// Branches of one run; may be given several times
    #[arg(long, value_name = "BRANCHES", default_values_t = [1_000, 10_000, 100_000], value_parser = clap::value_parser!(u64).range(1..=limits::BRANCHES_MAX))]
    width: Vec<u64>,
}

impl Options {
    pub(super) fn of(size: Size) -> Self {
        match size {
            Size::Full => Self { width: vec![1_000, 10_000, 100_000] },
            Size::Short => Self { width: vec![1_000, 10_000] },
        }
    }
}

/// Branches measured in all at a width, so that a small one is measured several times.
const BRANCHES_MEASURED: u64 = 50_000;

/// What the process that ran them saw.
#[derive(Serialize, Deserialize)]
pub(super) struct Measured {
    runs: u64,
    total_ms: f64,
    best_ms: f64,
    batch_turns_mean: f64,
    peak_bytes: u64,
    rows: u64,
}

#[derive(Serialize)]
struct Figures {
    width: u64,
    runs: u64,
    total_ms: f64,
    best_ms: f64,
    branch_us: f64,
    batch_turns_mean: f64,
    peak_bytes: u64,
    rows: u64,
    limit_ms: f64,
    ratio: f64,
}

#[derive(Serialize)]
struct Growth {
    width_smallest: u64,
    width_largest: u64,
    branch_us_smallest: f64,
    branch_us_largest: f64,
    ratio: f64,
}

pub(super) fn run(options: &Options, place: &Place, report: &Report) -> anyhow::Result<()> {
    let mut table = Table::new(
        "fanout: one run, mock branches, joined with append",
        ["branches", "runs", "ms", "best ms", "µs/branch", "turns/fsync", "peak MiB", "rows", "raw SQLite ms", "ratio"],
    );
    let mut all = Vec::new();
    for &width in &options.width {
        let figures = figures(width, place)?;
        report.line("fanout", &figures)?;
        table.row([
            count(figures.width),
            count(figures.runs),
            number(figures.total_ms),
            number(figures.best_ms),
            number(figures.branch_us),
            number(figures.batch_turns_mean),
            mib(figures.peak_bytes),
            count(figures.rows),
            number(figures.limit_ms),
            number(figures.ratio),
        ]);
        all.push(figures);
    }
    table.note("from the start of the run until its result is on disk, the median of the runs and the best; raw SQLite: a row for each token and each event, in batches of a thousand; ratio = ms ÷ raw, lower is better");
    if let Some(growth) = Growth::of(&all) {
        report.line("fanout_growth", &growth)?;
        let (largest, smallest) = (count(growth.width_largest), count(growth.width_smallest));
        let times = number(growth.ratio);
        table.note(format!("a branch of {largest} takes {times} times as long as a branch of {smallest}; 1 is flat"));
    }
    Ok(report.table(&table)?)
}

fn figures(width: u64, place: &Place) -> anyhow::Result<Figures> {
    let progress = Progress::of(format!("fanout with {} branches", count(width)));
    let store = place.store(&format!("fanout-{width}"));
    // A peak of memory is a process's for ever.
    let measured = child::ask(Job::FanOut { store, width })?;
    let Measured { runs, total_ms, best_ms, batch_turns_mean, peak_bytes, rows } = measured;
    let mut raw = RawSqlite::make(&place.scratch(&format!("fanout-{width}-limit.db")))?;
    let limit_ms = ms(raw.write_rows(&ActorId::new(KIND, "limit")?, rows)?.took);
    drop(progress);
    Ok(Figures {
        width,
        runs,
        total_ms: rounded(total_ms),
        best_ms: rounded(best_ms),
        branch_us: rounded(total_ms * 1e3 / width as f64),
        batch_turns_mean: rounded(batch_turns_mean),
        peak_bytes,
        rows,
        limit_ms: rounded(limit_ms),
        ratio: rounded(ratio(total_ms, limit_ms)),
    })
}

/// Runs the fan-out in this process, as often as it takes to measure it.
pub(super) fn measure(store: &Path, width: u64) -> anyhow::Result<Measured> {
    let runs = (BRANCHES_MEASURED / width).max(1);
    client_runtime()?.block_on(async {
        let engine = graphs::open(store, graphs::FAN_OUT).await?;
        let input = Json::encode(&serde_json::json!({ "width": width }))?;
        let began_at = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_micros();
        let mut times = Vec::new();
        for number in 0..runs {
            let id = format!("fanout-{began_at}-{number}");
            let began = Instant::now();
            let output = graphs::run(&engine, Run::new("fanout", input.clone()).with_id(&id)).await?;
            times.push(ms(began.elapsed()));
            if output.as_str() != format!("{{\"count\":{width}}}") {
                bail!("the run gave {output}, expected {width} values");
            }
        }
        let (metrics, peak_bytes) = (engine.metrics(), peak_bytes());
        let graphs = Graphs::of(&engine);
        let id = format!("fanout-{began_at}-0");
        let tokens = graphs.run(&id)?.map_or(0, |run| run.token_count);
        let events = graphs.last_event(&id)?;
        engine.stop(GRACE).await;
        Ok(Measured {
            runs,
            best_ms: times.iter().copied().fold(f64::INFINITY, f64::min),
            total_ms: median(times),
            batch_turns_mean: ratio(metrics.turns_committed as f64, metrics.commits as f64),
            peak_bytes,
            rows: tokens + events,
        })
    })
}

impl Growth {
    /// `None` when there are not two different widths.
    fn of(all: &[Figures]) -> Option<Self> {
        let smallest = all.iter().min_by_key(|figures| figures.width)?;
        let largest = all.iter().max_by_key(|figures| figures.width)?;
        (smallest.width != largest.width).then(|| Self {
            width_smallest: smallest.width,
            width_largest: largest.width,
            branch_us_smallest: smallest.branch_us,
            branch_us_largest: largest.branch_us,
            ratio: rounded(ratio(largest.branch_us, smallest.branch_us)),
        })
    }
}
