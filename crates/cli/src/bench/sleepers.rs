//! Sleepers: many actors with an alarm a day ahead cost disk, but neither memory nor time to start.
//!
//! Owns the making, the start on what was made, and the same start on an empty store, which is the limit. Each in a process of its own.
//! Start reading at [`run`].

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use serde::{Deserialize, Serialize};
use steadfast::{Engine, RequestError};
use steadfast_core::ids::ActorId;
use steadfast_core::time::Timestamp;
use steadfast_sim::actors::counter::{self, Add, Counter};
use steadfast_sim::actors::ticker::{self, Start, Ticker};
use tokio::task::JoinSet;

use super::child::{self, Job};
use super::machine::{resident_bytes, us_since_1970};
use super::place::Place;
use super::report::{Progress, Report, Table, count, mib, number, rounded};
use super::statistics::{median, ratio};
use super::{GRACE, Size, client_runtime};

#[derive(Args)]
pub(crate) struct Options {
    /// How many sleep
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    count: u64,
}

impl Options {
    pub(super) fn of(size: Size) -> Self {
        let count = match size {
            Size::Full => 1_000_000,
            Size::Short => 50_000,
        };
        Self { count }
    }
}

/// What the process that made them saw.
#[derive(Serialize, Deserialize)]
pub(super) struct Made {
    seconds: f64,
    rss_bytes: u64,
}

/// What a process saw that started on them.
#[derive(Serialize, Deserialize)]
pub(super) struct Served {
    first_request_ms: f64,
    rss_bytes: u64,
}

#[derive(Serialize)]
struct Figures {
    count: u64,
    made_per_s: f64,
    maker_rss_bytes: u64,
    file_bytes: u64,
    first_request_ms: f64,
    limit_first_request_ms: f64,
    ratio: f64,
    rss_bytes: u64,
    limit_rss_bytes: u64,
    rss_ratio: f64,
}

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const IN_FLIGHT: u64 = 4_096;
/// Long enough for what runs after a start, or after the last request.
const IDLE: Duration = Duration::from_millis(300);
const STARTS: usize = 5;
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(super) fn run(options: &Options, place: &Place, report: &Report) -> anyhow::Result<()> {
    let (store, empty) = (place.store("sleepers"), place.scratch("sleepers-limit.db"));
    let made: Made = child::ask(Job::MakeSleepers { store: store.clone(), count: options.count })?;
    let (served, limit) = start_both(&store, &empty)?;
    let figures = Figures {
        count: options.count,
        made_per_s: rounded(ratio(options.count as f64, made.seconds)),
        maker_rss_bytes: made.rss_bytes,
        file_bytes: file_bytes(&store),
        first_request_ms: rounded(served.first_request_ms),
        limit_first_request_ms: rounded(limit.first_request_ms),
        ratio: rounded(ratio(served.first_request_ms, limit.first_request_ms)),
        rss_bytes: served.rss_bytes,
        limit_rss_bytes: limit.rss_bytes,
        rss_ratio: rounded(ratio(served.rss_bytes as f64, limit.rss_bytes as f64)),
    };
    report.line("sleepers", &figures)?;
    Ok(report.table(&table(&figures))?)
}

fn table(figures: &Figures) -> Table {
    let mut table = Table::new(
        "sleepers: actors with an alarm a day ahead",
        ["", "actors", "file MiB", "ms from process start to first answer", "idle memory MiB"],
    );
    table.row([
        "with sleepers".to_owned(),
        count(figures.count),
        mib(figures.file_bytes),
        number(figures.first_request_ms),
        mib(figures.rss_bytes),
    ]);
    let (ms, bytes) = (figures.limit_first_request_ms, figures.limit_rss_bytes);
    table.row(["empty store".to_owned(), count(0), String::new(), number(ms), mib(bytes)]);
    let ratios = (number(figures.ratio), number(figures.rss_ratio));
    table.row(["ratio".to_owned(), String::new(), String::new(), ratios.0, ratios.1]);
    let (speed, memory) = (number(figures.made_per_s), mib(figures.maker_rss_bytes));
    table.note(format!("made at {speed} a second by a process that had {memory} MiB when it was done"));
    table.note("the empty store is the limit: what sleeps should cost neither time nor memory; 1 is ideal");
    table
}

/// The medians of several starts, with the sleepers and without in turn.
fn start_both(store: &Path, empty: &Path) -> anyhow::Result<(Served, Served)> {
    let mut progress = Progress::of("sleepers: starting");
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for number in 0..STARTS {
        progress.at(number as u64, STARTS as u64);
        with.push(child::ask::<Served>(Job::ServeFirst { store: store.to_owned() })?);
        without.push(child::ask::<Served>(Job::ServeFirst { store: empty.to_owned() })?);
    }
    let middle = |all: &[Served]| Served {
        first_request_ms: median(all.iter().map(|served| served.first_request_ms)),
        rss_bytes: median(all.iter().map(|served| served.rss_bytes as f64)) as u64,
    };
    Ok((middle(&with), middle(&without)))
}

/// Makes sleepers in this process.
pub(super) fn make(store: &Path, count: u64) -> anyhow::Result<Made> {
    client_runtime()?.block_on(async {
        let engine = Engine::open(store)?.kind(ticker::KIND, Ticker).start()?;
        let began = Instant::now();
        let first = Timestamp(us_since_1970() / 1000).plus_ms(DAY_MS);
        let next = Arc::new(AtomicU64::new(0));
        let mut makers = JoinSet::new();
        for _ in 0..IN_FLIGHT.min(count) {
            makers.spawn(make_next(engine.clone(), next.clone(), count, first));
        }
        let mut progress = Progress::of("sleepers: making");
        while !makers.is_empty() {
            if let Ok(Some(made)) = tokio::time::timeout(LOOK_EVERY, makers.join_next()).await {
                made?.context("a sleeper was not made")?;
            }
            progress.at(next.load(Ordering::Relaxed).min(count), count);
        }
        let seconds = began.elapsed().as_secs_f64();
        tokio::time::sleep(IDLE).await;
        let rss_bytes = resident_bytes();
        engine.stop(GRACE).await;
        Ok(Made { seconds, rss_bytes })
    })
}

async fn make_next(engine: Engine, next: Arc<AtomicU64>, count: u64, first: Timestamp) -> Result<(), RequestError> {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return Ok(());
        }
        let ticker = steadfast_sim::actors::actor(ticker::KIND, &format!("bench/{number}"));
        engine.request(&ticker, &Start { first, every_ms: 0, times: 1 }).await?;
    }
}

/// Starts on a store and serves one request in this process, which was started at `spawned_at_us`.
pub(super) fn serve_first(store: &Path, spawned_at_us: u64) -> anyhow::Result<Served> {
    client_runtime()?.block_on(async {
        let engine = Engine::open(store)?.kind(ticker::KIND, Ticker).kind(counter::KIND, Counter).start()?;
        let counter = ActorId::new(counter::KIND, "bench/first")?;
        engine.request(&counter, &Add { add: 1 }).await.context("the first request was not served")?;
        let first_request_ms = ms_since(spawned_at_us);
        tokio::time::sleep(IDLE).await;
        let rss_bytes = resident_bytes();
        engine.stop(GRACE).await;
        Ok(Served { first_request_ms, rss_bytes })
    })
}

/// Milliseconds since a moment that another process noted.
pub(super) fn ms_since(at_us: u64) -> f64 {
    us_since_1970().saturating_sub(at_us) as f64 / 1e3
}

/// The store with its `-wal` file.
pub(super) fn file_bytes(store: &Path) -> u64 {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
    let mut wal = store.as_os_str().to_owned();
    wal.push("-wal");
    length(store) + length(Path::new(&wal))
}
