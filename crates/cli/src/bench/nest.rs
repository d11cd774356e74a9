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
use steadfast::graph::{Graphs, Run};
use steadfast_core::graph::KIND;
use steadfast_core::ids::{ActorId, RequestId};
use steadfast_core::json::Json;
use steadfast_sim::actors::chain::{self, Chain, Nest};
use steadfast_store::Store;
use steadfast_store::sqlite::SqliteStore;

use super::child::{self, Job};
use super::limit::RawSqlite;
use super::machine::peak_bytes;
use super::place::Place;
use super::report::{Progress, Report, Table, count, mib, number, rounded};
use super::statistics::{ms, ratio};
use super::{GRACE, Size, client_runtime, graphs, unless_unwell};

#[derive(Args)]
pub(crate) struct Options {
    /// Levels below the first; may be given several times [default: 1000 and 100000, or 10000 with --workflow]
    #[arg(long, value_name = "LEVELS", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    depth: Vec<u64>,
    /// Each level is a run of a workflow that calls itself, instead of a small actor
    #[arg(long)]
    workflow: bool,
}

impl Options {
    pub(super) fn of(size: Size) -> Self {
        match size {
            Size::Full | Size::Short => Self { depth: Vec::new(), workflow: false },
        }
    }
}

/// What a level is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Levels {
    /// A small actor.
    Actors,
    /// A run of a workflow that calls itself.
    Runs,
}

impl Options {
    /// The same for runs of a workflow.
    pub(super) fn of_workflows() -> Self {
        Self { depth: Vec::new(), workflow: true }
    }

    fn levels(&self) -> Levels {
        if self.workflow { Levels::Runs } else { Levels::Actors }
    }

    fn depths(&self) -> Vec<u64> {
        match self.levels() {
            _ if !self.depth.is_empty() => self.depth.clone(),
            Levels::Actors => vec![1_000, 100_000],
            Levels::Runs => vec![1_000, 10_000],
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
    /// Rows that a level leaves; of a chain of actors the limit knows them.
    rows_per_level: u64,
}

#[derive(Serialize)]
struct Figures {
    of: Levels,
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
    let (levels, depths) = (options.levels(), options.depths());
    let title = match levels {
        Levels::Actors => "nest: a chain of calls, down and up again",
        Levels::Runs => "nest --workflow: runs of a workflow that calls itself",
    };
    let mut table = Table::new(
        title,
        ["levels", "ms", "µs/level", "turns/fsync", "peak MiB", "bytes/level", "raw SQLite ms", "ratio"],
    );
    let mut all = Vec::new();
    for &depth in &depths {
        let figures = figures(levels, depth, place, depths.len())?;
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
    table.note(match levels {
        Levels::Actors => {
            "raw SQLite: the same rows, two a level, in batches of the same size; ratio = ms ÷ raw, lower is better"
        }
        Levels::Runs => {
            "raw SQLite: as many rows as the runs leave, a thousand a commit; ratio = ms ÷ raw, lower is better"
        }
    });
    if let Some(growth) = Growth::of(&all) {
        report.line("nest_growth", &growth)?;
        let (largest, smallest) = (count(growth.depth_largest), count(growth.depth_smallest));
        let times = number(growth.ratio);
        table.note(format!("a level of {largest} takes {times} times as long as a level of {smallest}; 1 is flat"));
    }
    Ok(report.table(&table)?)
}

fn figures(of: Levels, depth: u64, place: &Place, depths: usize) -> anyhow::Result<Figures> {
    let progress = Progress::of(format!("nest with {} levels", count(depth)));
    let name = match of {
        Levels::Actors => format!("nest-{depth}"),
        Levels::Runs => format!("nest-workflow-{depth}"),
    };
    let store = place.store(&name);
    // A peak of memory is a process's for ever, so several depths need a process each. A single one runs here: what is killed then
    // is the very process that holds the store.
    let measured = if depths == 1 { measure(&store, of, depth)? } else { child::ask(Job::Nest { store, of, depth })? };
    let Measured { levels, resumed, total_ms, batch_turns_mean, peak_bytes, grown_bytes, rows_per_level } = measured;
    if levels != depth {
        bail!("the chain answered {levels} levels, expected {depth}");
    }
    let limit_ms = if resumed {
        None
    } else {
        let mut raw = RawSqlite::make(&place.scratch(&format!("{name}-limit.db")))?;
        let written = match of {
            Levels::Actors => raw.write_chain(&chain_of(depth)?, batch_turns_mean.round() as usize)?,
            Levels::Runs => raw.write_rows(&ActorId::new(KIND, "limit")?, rows_per_level * depth)?,
        };
        Some(rounded(ms(written.took)))
    };
    drop(progress);
    Ok(Figures {
        of,
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
pub(super) fn measure(store: &Path, of: Levels, depth: u64) -> anyhow::Result<Measured> {
    match of {
        Levels::Actors => measure_actors(store, depth),
        Levels::Runs => measure_runs(store, depth),
    }
}

fn measure_runs(store: &Path, depth: u64) -> anyhow::Result<Measured> {
    let id = format!("nest-{depth}");
    client_runtime()?.block_on(async {
        let engine = graphs::open(store, graphs::NEST).await?;
        let runs = Graphs::of(&engine);
        let resumed = runs.run(&id)?.is_some();
        let peak_before = peak_bytes();
        let began = Instant::now();
        let input = Json::encode(&serde_json::json!({ "depth": depth }))?;
        let output = graphs::run(&engine, Run::new("nest", input).with_id(&id)).await?;
        let total_ms = ms(began.elapsed());
        let (metrics, peak_bytes) = (engine.metrics(), peak_bytes());
        let rows_per_level = runs.run(&id)?.map_or(0, |run| run.token_count) + runs.last_event(&id)?;
        engine.stop(GRACE).await;
        let output: serde_json::Value = output.decode()?;
        Ok(Measured {
            levels: output["levels"].as_u64().context("the run gave no number of levels")?,
            resumed,
            total_ms,
            batch_turns_mean: ratio(metrics.turns_committed as f64, metrics.commits as f64),
            peak_bytes,
            grown_bytes: peak_bytes.saturating_sub(peak_before),
            rows_per_level,
        })
    })
}

fn measure_actors(store: &Path, depth: u64) -> anyhow::Result<Measured> {
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
            rows_per_level: 2,
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
