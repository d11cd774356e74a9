//! Nesting: a chain of actors, each of which calls the next and waits for its answer.
//!
//! Owns what a level costs in time and memory, and whether that grows with the depth. The chain is asked under a fixed id, so a run that
//! was killed goes on in the same store. Start reading at [`run`].

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use steadfast::Engine;
use steadfast_core::ids::{ActorId, RequestId};
use steadfast_sim::actors::chain::{self, Chain, Nest};
use steadfast_store::Store;
use steadfast_store::sqlite::SqliteStore;

use super::child::{self, Job};
use super::limit::RawSqlite;
use super::machine::peak_bytes;
use super::place::Place;
use super::report::{Progress, Report, Table, count, mib, number, rounded};
use super::statistics::{ms, ratio};
use super::{GRACE, Size, client_runtime, unless_unwell};

#[derive(Args)]
pub(crate) struct Options {
    /// Levels below the first; may be given several times
    #[arg(long, value_name = "LEVELS", default_values_t = [1_000, 100_000], value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    depth: Vec<u64>,
}

impl Options {
    pub(super) fn of(size: Size) -> Self {
        match size {
            Size::Full | Size::Short => Self { depth: vec![1_000, 100_000] },
        }
    }
}

/// What the process that ran the chain saw.
#[derive(Serialize, Deserialize)]
pub(super) struct Measured {
    levels: u64,
    resumed: bool,
    total_ms: f64,
    batch_turns_mean: f64,
    peak_bytes: u64,
    grown_bytes: u64,
}

#[derive(Serialize)]
struct Figures {
    depth: u64,
    levels: u64,
    resumed: bool,
    total_ms: f64,
    level_us: f64,
    batch_turns_mean: f64,
    peak_bytes: u64,
    level_bytes: f64,
    /// Absent when only a part was measured.
    limit_ms: Option<f64>,
    ratio: Option<f64>,
}

#[derive(Serialize)]
struct Growth {
    depth_smallest: u64,
    depth_largest: u64,
    level_us_smallest: f64,
    level_us_largest: f64,
    ratio: f64,
}

pub(super) fn run(options: &Options, place: &Place, report: &Report) -> anyhow::Result<()> {
    let mut table = Table::new(
        "nest: a chain of calls, down and up again",
        ["levels", "ms", "µs/level", "turns/fsync", "peak MiB", "bytes/level", "raw SQLite ms", "ratio"],
    );
    let mut all = Vec::new();
    for &depth in &options.depth {
        let figures = figures(depth, place, options.depth.len())?;
        report.line("nest", &figures)?;
        table.row([
            count(figures.levels),
            number(figures.total_ms),
            number(figures.level_us),
            number(figures.batch_turns_mean),
            mib(figures.peak_bytes),
            number(figures.level_bytes),
            figures.limit_ms.map_or("-".to_owned(), number),
            figures.ratio.map_or("-".to_owned(), number),
        ]);
        if figures.resumed {
            table.note(format!(
                "{} levels: the chain was in the store already, whole or in part; times are of what was left",
                count(depth)
            ));
        }
        all.push(figures);
    }
    table
        .note("raw SQLite: the same rows, two a level, in batches of the same size; ratio = ms ÷ raw, lower is better");
    if let Some(growth) = Growth::of(&all) {
        report.line("nest_growth", &growth)?;
        let (largest, smallest) = (count(growth.depth_largest), count(growth.depth_smallest));
        let times = number(growth.ratio);
        table.note(format!("a level of {largest} takes {times} times as long as a level of {smallest}; 1 is flat"));
    }
    Ok(report.table(&table)?)
}

fn figures(depth: u64, place: &Place, depths: usize) -> anyhow::Result<Figures> {
    let progress = Progress::of(format!("nest with {} levels", count(depth)));
    let store = place.store(&format!("nest-{depth}"));
    // A peak of memory is a process's for ever, so several depths need a process each. A single one runs here: what is killed then
    // is the very process that holds the store.
    let measured = if depths == 1 { measure(&store, depth)? } else { child::ask(Job::Nest { store, depth })? };
    let Measured { levels, resumed, total_ms, batch_turns_mean, peak_bytes, grown_bytes } = measured;
    if levels != depth {
        bail!("the chain answered {levels} levels, expected {depth}");
    }
    let limit_ms = if resumed {
        None
    } else {
        let mut raw = RawSqlite::make(&place.scratch(&format!("nest-{depth}-limit.db")))?;
        Some(rounded(ms(raw.write_chain(&chain_of(depth)?, batch_turns_mean.round() as usize)?.took)))
    };
    drop(progress);
    Ok(Figures {
        depth,
        levels,
        resumed,
        total_ms: rounded(total_ms),
        level_us: rounded(total_ms * 1e3 / depth as f64),
        batch_turns_mean: rounded(batch_turns_mean),
        peak_bytes,
        level_bytes: rounded(grown_bytes as f64 / depth as f64),
        limit_ms,
        ratio: limit_ms.map(|limit| rounded(ratio(total_ms, limit))),
    })
}

/// Runs a chain in this process, or goes on with it.
pub(super) fn measure(store: &Path, depth: u64) -> anyhow::Result<Measured> {
    let name = format!("nest-{depth}");
    let (first, request) = (chain::first(&name), RequestId::given(&name)?);
    let store = Arc::new(SqliteStore::open(store)?);
    let resumed = store.reader()?.request(&first, &request)?.is_some();
    client_runtime()?.block_on(async {
        let engine = Engine::on(store).kind(chain::KIND, Chain).start()?;
        let peak_before = peak_bytes();
        let began = Instant::now();
        let nest = Nest { depth };
        let asked = engine.request_as(&request, &first, &nest);
        let answer = unless_unwell(&engine, asked).await?.context("the chain did not answer")?;
        let total_ms = ms(began.elapsed());
        let (metrics, peak_bytes) = (engine.metrics(), peak_bytes());
        engine.stop(GRACE).await;
        Ok(Measured {
            levels: answer.decode()?,
            resumed,
            total_ms,
            batch_turns_mean: ratio(metrics.turns_committed as f64, metrics.commits as f64),
            peak_bytes,
            grown_bytes: peak_bytes.saturating_sub(peak_before),
        })
    })
}

fn chain_of(depth: u64) -> anyhow::Result<Vec<ActorId>> {
    (0..=depth).map(|level| Ok(ActorId::new(chain::KIND, &format!("nest-{depth}/{level}"))?)).collect()
}

impl Growth {
    /// `None` when there are not two different depths, each measured as a whole.
    fn of(all: &[Figures]) -> Option<Self> {
        let whole = || all.iter().filter(|figures| !figures.resumed);
        let smallest = whole().min_by_key(|figures| figures.depth)?;
        let largest = whole().max_by_key(|figures| figures.depth)?;
        (smallest.depth != largest.depth).then(|| Self {
            depth_smallest: smallest.depth,
            depth_largest: largest.depth,
            level_us_smallest: smallest.level_us,
            level_us_largest: largest.level_us,
            ratio: rounded(ratio(largest.level_us, smallest.level_us)),
        })
    }
}
