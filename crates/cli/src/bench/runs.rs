//! Many finished runs in a store: whether looking, starting and restarting cost more than with few.
//!
//! Owns the filling and the comparison. Both stores are filled through the engine, and looked at in processes of their own. Start reading at [`run`].

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use serde::{Deserialize, Serialize};
use steadfast::Engine;
use steadfast::graph::{Graphs, Run, RunError};
use steadfast_core::ids::Sequence;
use steadfast_core::json::Json;
use steadfast_core::limits;
use steadfast_store::rows::{HistoryPlace, RunFilter};
use tokio::task::JoinSet;

use super::child::{self, Job};
use super::place::Place;
use super::report::{Progress, Report, Table, count, mib, number, rounded};
use super::sleepers::{file_bytes, ms_since};
use super::statistics::{median, ratio, us};
use super::{GRACE, Size, client_runtime, graphs};

#[derive(Args)]
pub(crate) struct Options {
    /// How many runs the larger store has
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    count: u64,
}

impl Options {
    pub(super) fn of(size: Size) -> Self {
        match size {
            Size::Full => Self { count: 100_000 },
            Size::Short => Self { count: 10_000 },
        }
    }
}

/// What a store was filled with, and how fast.
#[derive(Serialize, Deserialize)]
pub(super) struct Filled {
    runs_per_s: f64,
}

/// How long each thing took, in microseconds.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Looked(BTreeMap<String, f64>);

#[derive(Serialize)]
struct Figures {
    what: String,
    count: u64,
    count_small: u64,
    us: f64,
    small_us: f64,
    ratio: f64,
}

const SMALL: u64 = 1_000;
const IN_FLIGHT: u64 = 1_024;
const SAMPLES: u64 = 100;
const STARTS: usize = 5;
const PAGE: usize = 50;
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(super) fn run(options: &Options, place: &Place, report: &Report) -> anyhow::Result<()> {
    let (store, small) = (place.store("runs"), place.scratch("runs-small.db"));
    let Filled { runs_per_s } = child::ask(Job::FillRuns { store: store.clone(), count: options.count })?;
    child::ask::<Filled>(Job::FillRuns { store: small.clone(), count: SMALL })?;
    let (many, few) = look_at_both(&store, options.count, &small)?;
    let mut table = Table::new(
        "runs: a store of many finished runs, beside one of few",
        ["", "µs with many", "µs with few", "ratio"],
    );
    for (what, us) in many {
        let small_us = few.get(&what).copied().unwrap_or_default();
        table.row([what.clone(), number(us), number(small_us), number(ratio(us, small_us))]);
        let (us, small_us, ratio) = (rounded(us), rounded(small_us), rounded(ratio(us, small_us)));
        report.line("runs", &Figures { what, count: options.count, count_small: SMALL, us, small_us, ratio })?;
    }
    let (runs, few) = (count(options.count), count(SMALL));
    table.note(format!(
        "many: {runs} runs, {} MiB, made at {} a second; few: {few}",
        mib(file_bytes(&store)),
        number(runs_per_s)
    ));
    table.note("ratio = many ÷ few: what is finished should cost nothing; 1 is ideal");
    Ok(report.table(&table)?)
}

/// The medians of several processes, with many and with few in turn.
fn look_at_both(
    store: &Path,
    count: u64,
    small: &Path,
) -> anyhow::Result<(BTreeMap<String, f64>, BTreeMap<String, f64>)> {
    let mut progress = Progress::of("runs: looking");
    let (mut many, mut few) = (Vec::new(), Vec::new());
    for number in 0..STARTS {
        progress.at(number as u64, STARTS as u64);
        many.push(child::ask::<Looked>(Job::LookAtRuns { store: store.to_owned(), count })?);
        few.push(child::ask::<Looked>(Job::LookAtRuns { store: small.to_owned(), count: SMALL })?);
    }
    let middle = |all: &[Looked]| {
        let names = all.first().into_iter().flat_map(|Looked(times)| times.keys());
        let of = |name: &String| median(all.iter().filter_map(|Looked(times)| times.get(name).copied()));
        names.map(|name| (name.clone(), of(name))).collect()
    };
    Ok((middle(&many), middle(&few)))
}

/// Makes runs in this process, each of which ends at once.
pub(super) fn fill(store: &Path, count: u64) -> anyhow::Result<Filled> {
    client_runtime()?.block_on(async {
        let engine = graphs::open(store, graphs::ONE).await?;
        let began = Instant::now();
        let next = Arc::new(AtomicU64::new(0));
        let mut makers = JoinSet::new();
        for _ in 0..IN_FLIGHT.min(count) {
            makers.spawn(make_next(Graphs::of(&engine), next.clone(), count));
        }
        let mut progress = Progress::of("runs: making");
        while !makers.is_empty() {
            if let Ok(Some(made)) = tokio::time::timeout(LOOK_EVERY, makers.join_next()).await {
                made?.context("a run was not made")?;
            }
            progress.at(next.load(Ordering::Relaxed).min(count), count);
        }
        let runs_per_s = rounded(count as f64 / began.elapsed().as_secs_f64());
        engine.stop(GRACE).await;
        Ok(Filled { runs_per_s })
    })
}

async fn make_next(graphs: Graphs, next: Arc<AtomicU64>, count: u64) -> anyhow::Result<()> {
    while next.fetch_add(1, Ordering::Relaxed) < count {
        graphs.start(new_run()?).await?;
    }
    Ok(())
}

fn new_run() -> anyhow::Result<Run> {
    Ok(Run::new("one", Json::encode(&serde_json::json!({}))?))
}

/// Looks at a store in this process, which was started at `spawned_at_us`.
pub(super) fn look(store: &Path, count: u64, spawned_at_us: u64) -> anyhow::Result<Looked> {
    client_runtime()?.block_on(async {
        let engine = Engine::open(store)?.graphs().start()?;
        let graphs = Graphs::of(&engine);
        graphs.start(new_run()?).await?;
        let mut times = BTreeMap::from([("restart to first start".to_owned(), ms_since(spawned_at_us) * 1e3)]);
        let mut begun = Vec::new();
        for _ in 0..SAMPLES {
            let began = Instant::now();
            graphs.start(new_run()?).await?;
            begun.push(us(began.elapsed()));
        }
        times.insert("start".to_owned(), median(begun));
        look_around(&graphs, count, &mut times)?;
        engine.stop(GRACE).await;
        Ok(Looked(times))
    })
}

/// Places all over the list, from the newest run to the oldest.
fn places(graphs: &Graphs, count: u64) -> anyhow::Result<Vec<Option<Sequence>>> {
    let step = (count / SAMPLES).clamp(1, limits::PAGE_ROWS_MAX as u64) as usize;
    let mut all = vec![None];
    while let Some(next) = graphs.list(RunFilter::default(), all.last().copied().flatten(), step)?.next {
        all.push(Some(next));
    }
    let samples = SAMPLES as usize;
    Ok((0..samples).map(|sample| all[all.len() * sample / samples]).collect())
}

fn look_around(graphs: &Graphs, count: u64, times: &mut BTreeMap<String, f64>) -> anyhow::Result<()> {
    let all = RunFilter::default();
    let places = places(graphs, count)?;
    let ids: Vec<String> = places
        .iter()
        .map(|place| Ok(graphs.list(all, *place, 1)?.runs.first().context("a run is missing")?.id.clone()))
        .collect::<anyhow::Result<_>>()?;
    let by_workflow = RunFilter { workflow: Some("one"), ..all };
    let completed = RunFilter { status: Some("completed"), ..all };
    let failed = RunFilter { status: Some("failed"), ..all };
    let root = RunFilter { root: Some(&ids[0]), ..all };
    let mut time = |what: &str, look: &dyn Fn(usize) -> Result<(), RunError>| {
        let mut taken = Vec::new();
        for sample in 0..places.len() {
            let began = Instant::now();
            look(sample)?;
            taken.push(us(began.elapsed()));
        }
        times.insert(what.to_owned(), median(taken));
        anyhow::Ok(())
    };
    time("list", &|_| graphs.list(all, None, PAGE).map(drop))?;
    time("list from anywhere", &|sample| graphs.list(all, places[sample], PAGE).map(drop))?;
    time("list of a workflow", &|sample| graphs.list(by_workflow, places[sample], PAGE).map(drop))?;
    time("list of the completed", &|sample| graphs.list(completed, places[sample], PAGE).map(drop))?;
    time("list of the failed, none", &|_| graphs.list(failed, None, PAGE).map(drop))?;
    time("list of a tree", &|_| graphs.list(root, None, PAGE).map(drop))?;
    time("counts", &|_| graphs.counts().map(drop))?;
    time("show", &|sample| graphs.run(&ids[sample]).map(drop))?;
    time("events of everything", &|_| graphs.history(None, HistoryPlace::default(), PAGE).map(drop))?;
    time("events of a tree", &|sample| graphs.history(Some(&ids[sample]), HistoryPlace::default(), PAGE).map(drop))
}
