//! Whole runs a second: clients that each start a run of five tasks in a line, and wait until its result is on disk.
//!
//! Owns the closed loop and its figures. Start reading at [`run`].

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use steadfast::Engine;
use steadfast::graph::{Graphs, Run};
use steadfast_core::graph::KIND;
use steadfast_core::ids::ActorId;
use steadfast_core::json::Json;
use steadfast_core::limits;
use tokio::task::JoinSet;

use super::limit::RawSqlite;
use super::place::Place;
use super::report::{Progress, Report, Table, count, number, rounded};
use super::statistics::{percentile, ratio, us};
use super::{GRACE, Size, client_runtime, graphs};

#[derive(Args)]
pub(crate) struct Options {
    /// Clients at once, separated by commas; each waits for the end of its run before it starts the next
    #[arg(long, value_name = "CLIENTS", value_delimiter = ',', default_values_t = [1, 64, 1024],
          value_parser = clap::value_parser!(u64).range(1..=limits::REQUESTS_WAITING_MAX as u64))]
    concurrency: Vec<u64>,
    /// How many runs to measure at each concurrency
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    runs: u64,
}

impl Options {
    pub(super) fn of(size: Size) -> Self {
        let runs = match size {
            Size::Full => 10_000,
            Size::Short => 2_000,
        };
        Self { concurrency: vec![1, 64, 1024], runs }
    }
}

/// What came out at one concurrency.
#[derive(Serialize)]
struct Figures {
    concurrency: u64,
    runs: u64,
    runs_per_s: f64,
    p50_us: f64,
    p99_us: f64,
    fsyncs_per_run: f64,
    rows_per_run: u64,
    limit_runs_per_s: f64,
    ratio: f64,
}

pub(super) fn run(options: &Options, place: &Place, report: &Report) -> anyhow::Result<()> {
    let mut table = Table::new(
        "graph: whole runs of five tasks in a line, each client waits for the end of its run",
        ["clients", "runs/s", "p50 µs", "p99 µs", "fsyncs/run", "rows/run", "raw SQLite runs/s", "ratio"],
    );
    for &concurrency in &options.concurrency {
        let name = format!("graph-{concurrency}");
        // One client alone would take very long.
        let runs = if concurrency == 1 { options.runs.div_ceil(10) } else { options.runs };
        let figures = measure(concurrency, runs, &place.store(&name), &place.scratch(&format!("{name}-limit.db")))?;
        report.line("graph", &figures)?;
        table.row([
            count(figures.concurrency),
            number(figures.runs_per_s),
            number(figures.p50_us),
            number(figures.p99_us),
            number(figures.fsyncs_per_run),
            count(figures.rows_per_run),
            number(figures.limit_runs_per_s),
            number(figures.ratio),
        ]);
    }
    table.note("raw SQLite: as many rows as a run leaves, a thousand a commit, nothing else; ratio = runs/s ÷ raw, higher is better");
    Ok(report.table(&table)?)
}

fn measure(concurrency: u64, runs: u64, store: &Path, limit: &Path) -> anyhow::Result<Figures> {
    let progress = Progress::of(format!("graph with {concurrency} clients"));
    let figures = client_runtime()?.block_on(async {
        let engine = graphs::open(store, graphs::LINE).await?;
        let first = one_run(&engine).await?;
        let graphs = Graphs::of(&engine);
        let rows_per_run = graphs.run(&first)?.map_or(0, |run| run.token_count) + graphs.last_event(&first)?;
        let before = engine.metrics();
        let began = Instant::now();
        let mut times = run_in_a_loop(&engine, concurrency, runs).await?;
        let seconds = began.elapsed().as_secs_f64();
        let commits = engine.metrics().commits - before.commits;
        engine.stop(GRACE).await;
        times.sort_unstable();
        let mut raw = RawSqlite::make(limit)?;
        let written = raw.write_rows(&ActorId::new(KIND, "limit")?, rows_per_run * runs.min(2_000))?;
        let runs_per_s = rounded(times.len() as f64 / seconds);
        let limit_runs_per_s = rounded(written.rows_per_s() / rows_per_run as f64);
        anyhow::Ok(Figures {
            concurrency,
            runs: times.len() as u64,
            runs_per_s,
            p50_us: rounded(us(percentile(&times, 50))),
            p99_us: rounded(us(percentile(&times, 99))),
            fsyncs_per_run: rounded(ratio(commits as f64, times.len() as f64)),
            rows_per_run,
            limit_runs_per_s,
            ratio: ratio(runs_per_s, limit_runs_per_s),
        })
    })?;
    drop(progress);
    Ok(figures)
}

/// How long each run took, in no order.
async fn run_in_a_loop(engine: &Engine, concurrency: u64, runs: u64) -> anyhow::Result<Vec<Duration>> {
    let mut clients = JoinSet::new();
    let share = runs.div_ceil(concurrency);
    for _ in 0..concurrency {
        let engine = engine.clone();
        clients.spawn(async move {
            let mut times = Vec::new();
            for _ in 0..share {
                let began = Instant::now();
                one_run(&engine).await?;
                times.push(began.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let mut all = Vec::new();
    while let Some(times) = clients.join_next().await {
        all.append(&mut times?.context("a run did not end")?);
    }
    Ok(all)
}

/// Starts a run and waits for its end. Its id.
async fn one_run(engine: &Engine) -> anyhow::Result<String> {
    let graphs = Graphs::of(engine);
    let (id, _) = graphs.start(Run::new("line", Json::encode(&serde_json::json!({}))?)).await?;
    let output = steadfast::graph::result_of(graphs.wait(&id).await?)?;
    if output.as_str() != "5" {
        bail!("the run gave {output}, expected 5");
    }
    Ok(id)
}
