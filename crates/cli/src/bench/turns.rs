//! Durable turns a second: clients that each ask a counter to add one, and wait until the sum is on disk.
//!
//! Owns the closed loop and its figures. The engine and raw SQLite take turns, round by round, because a machine has moods; each figure is
//! the median of the rounds. Start reading at [`run`].

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use steadfast::{Engine, RequestError};
use steadfast_core::ids::ActorId;
use steadfast_core::limits;
use steadfast_sim::actors::counter::{self, Add, Counter};
use tokio::task::JoinSet;

use super::limit::RawSqlite;
use super::place::Place;
use super::report::{Progress, Report, Table, count, number, rounded};
use super::statistics::{median, percentile, ratio, us};
use super::{GRACE, Size, client_runtime};

#[derive(Args)]
pub(crate) struct Options {
    /// Clients at once, separated by commas; each waits for its answer before it asks again
    #[arg(long, value_name = "CLIENTS", value_delimiter = ',', default_values_t = [1, 64, 1024],
          value_parser = clap::value_parser!(u64).range(1..=limits::REQUESTS_WAITING_MAX as u64))]
    concurrency: Vec<u64>,
    /// How long to measure the engine at each concurrency; the limit takes as long again
    #[arg(long, default_value_t = 5.0, conflicts_with = "count", value_parser = seconds)]
    seconds: f64,
    /// How many turns to measure at each concurrency, instead of a time
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    count: Option<u64>,
}

impl Options {
    pub(super) fn of(size: Size) -> Self {
        let seconds = match size {
            Size::Full => 5.0,
            Size::Short => 2.0,
        };
        Self { concurrency: vec![1, 64, 1024], seconds, count: None }
    }
}

/// How much one round measures.
#[derive(Clone, Copy)]
pub(crate) enum Amount {
    Time(Duration),
    Count(u64),
}

/// How often the engine and the limit take turns.
#[derive(Clone, Copy)]
struct Rounds {
    number: u64,
    each: Amount,
}

/// What came out at one concurrency.
#[derive(Serialize)]
struct Figures {
    concurrency: u64,
    turns: u64,
    turns_per_s: f64,
    p50_us: f64,
    p99_us: f64,
    batch_turns_mean: f64,
    fsyncs_per_s: f64,
    limit_turns_per_s: f64,
    ratio: f64,
}

/// What came out of one round.
struct Round {
    turns: u64,
    turns_per_s: f64,
    p50_us: f64,
    p99_us: f64,
    batch_turns_mean: f64,
    fsyncs_per_s: f64,
    limit_turns_per_s: f64,
}

/// Many short ones: what disturbs the disk for a while disturbs both alike.
const ROUNDS_MAX: u64 = 10;
const WARM_UP_MAX: Duration = Duration::from_millis(300);

pub(super) fn run(options: &Options, place: &Place, report: &Report) -> anyhow::Result<()> {
    let mut table = Table::new(
        "turns: durable one-row turns, each client waits for its answer",
        ["clients", "turns/s", "p50 µs", "p99 µs", "turns/fsync", "fsyncs/s", "raw SQLite turns/s", "ratio"],
    );
    for &concurrency in &options.concurrency {
        let name = format!("turns-{concurrency}");
        let rounds = options.rounds(concurrency);
        let figures = measure(concurrency, rounds, &place.store(&name), &place.scratch(&format!("{name}-limit.db")))?;
        report.line("turns", &figures)?;
        table.row([
            count(figures.concurrency),
            number(figures.turns_per_s),
            number(figures.p50_us),
            number(figures.p99_us),
            number(figures.batch_turns_mean),
            number(figures.fsyncs_per_s),
            number(figures.limit_turns_per_s),
            number(figures.ratio),
        ]);
    }
    table.note(
        "raw SQLite: the same rows in batches of the same size, nothing else; ratio = turns/s ÷ raw, higher is better",
    );
    Ok(report.table(&table)?)
}

impl Options {
    fn rounds(&self, concurrency: u64) -> Rounds {
        match self.count {
            // Each client asks at least once a round.
            Some(count) => {
                let number = (count / concurrency).clamp(1, ROUNDS_MAX);
                Rounds { number, each: Amount::Count(count.div_ceil(number)) }
            }
            None => Rounds {
                number: ROUNDS_MAX,
                each: Amount::Time(Duration::from_secs_f64(self.seconds / ROUNDS_MAX as f64)),
            },
        }
    }
}

impl Amount {
    pub(crate) fn is_reached(self, count: u64, time: Duration) -> bool {
        match self {
            Self::Time(enough) => time >= enough,
            Self::Count(enough) => count >= enough,
        }
    }
}

fn measure(concurrency: u64, rounds: Rounds, store: &Path, limit: &Path) -> anyhow::Result<Figures> {
    let counters = counters(concurrency)?;
    let mut progress = Progress::of(format!("turns with {concurrency} clients"));
    client_runtime()?.block_on(async {
        let engine = Engine::open(store)?.kind(counter::KIND, Counter).start()?;
        let mut raw = RawSqlite::make(limit)?;
        raw.insert_counters(&counters)?;
        let Rounds { number, each } = rounds;
        warm_up(&engine, &counters, each).await?;
        let mut measured = Vec::new();
        for done in 0..number {
            progress.at(done, number);
            measured.push(round(&engine, &mut raw, &counters, each).await?);
        }
        engine.stop(GRACE).await;
        Ok(Figures::of(concurrency, &measured))
    })
}

fn counters(concurrency: u64) -> anyhow::Result<Vec<ActorId>> {
    (0..concurrency).map(|number| Ok(ActorId::new(counter::KIND, &format!("bench/{number}"))?)).collect()
}

/// Loads every actor and writes every row once, then runs for a moment.
async fn warm_up(engine: &Engine, counters: &[ActorId], amount: Amount) -> anyhow::Result<()> {
    ask_in_a_loop(engine, counters, Amount::Count(1)).await?;
    match amount {
        Amount::Time(time) => drop(ask_in_a_loop(engine, counters, Amount::Time(time.min(WARM_UP_MAX))).await?),
        Amount::Count(_) => {}
    }
    Ok(())
}

async fn round(engine: &Engine, raw: &mut RawSqlite, counters: &[ActorId], amount: Amount) -> anyhow::Result<Round> {
    let before = engine.metrics();
    let began = Instant::now();
    let mut times = ask_in_a_loop(engine, counters, amount).await?;
    let seconds = began.elapsed().as_secs_f64();
    let after = engine.metrics();
    times.sort_unstable();
    let commits = (after.commits - before.commits) as f64;
    let batch_turns_mean = ratio((after.turns_committed - before.turns_committed) as f64, commits);
    // Nothing else runs on this thread now, so it may block.
    let limit = raw.count_on(counters, batch_turns_mean.round() as usize, amount)?;
    Ok(Round {
        turns: times.len() as u64,
        turns_per_s: times.len() as f64 / seconds,
        p50_us: us(percentile(&times, 50)),
        p99_us: us(percentile(&times, 99)),
        batch_turns_mean,
        fsyncs_per_s: commits / seconds,
        limit_turns_per_s: limit.rows_per_s(),
    })
}

/// One client per counter. How long each request took, in no order.
async fn ask_in_a_loop(engine: &Engine, counters: &[ActorId], amount: Amount) -> anyhow::Result<Vec<Duration>> {
    let mut clients = JoinSet::new();
    let began = Instant::now();
    let share = match amount {
        Amount::Time(_) => amount,
        Amount::Count(count) => Amount::Count(count.div_ceil(counters.len() as u64)),
    };
    for counter in counters {
        clients.spawn(ask(engine.clone(), counter.clone(), share, began));
    }
    let mut all = Vec::new();
    while let Some(times) = clients.join_next().await {
        all.append(&mut times?.context("a counter did not answer")?);
    }
    Ok(all)
}

async fn ask(engine: Engine, counter: ActorId, share: Amount, began: Instant) -> Result<Vec<Duration>, RequestError> {
    let mut times = Vec::new();
    let mut asked = Instant::now();
    while !share.is_reached(times.len() as u64, asked - began) {
        engine.request(&counter, &Add { add: 1 }).await?;
        let answered = Instant::now();
        times.push(answered - asked);
        asked = answered;
    }
    Ok(times)
}

impl Figures {
    fn of(concurrency: u64, rounds: &[Round]) -> Self {
        let middle = |figure: fn(&Round) -> f64| rounded(median(rounds.iter().map(figure)));
        Self {
            concurrency,
            turns: rounds.iter().map(|round| round.turns).sum(),
            turns_per_s: middle(|round| round.turns_per_s),
            p50_us: middle(|round| round.p50_us),
            p99_us: middle(|round| round.p99_us),
            batch_turns_mean: middle(|round| round.batch_turns_mean),
            fsyncs_per_s: middle(|round| round.fsyncs_per_s),
            limit_turns_per_s: middle(|round| round.limit_turns_per_s),
            // Of the figures that are printed, so that a reader can check it.
            ratio: ratio(middle(|round| round.turns_per_s), middle(|round| round.limit_turns_per_s)),
        }
    }
}

pub(super) fn seconds(text: &str) -> anyhow::Result<f64> {
    let seconds: f64 = text.parse()?;
    if !(0.01..=86_400.0).contains(&seconds) {
        bail!("{seconds} is not between 0.01 and 86400");
    }
    Ok(seconds)
}
