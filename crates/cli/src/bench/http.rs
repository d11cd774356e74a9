//! Starts a second over HTTP: connections that each start a run of one node, and wait until its result is on disk.
//!
//! Owns the closed loop and its figures. The server is a process of its own, as `steadfast serve` is. Starts and its empty route take turns, round by
//! round, because a machine has moods; each figure is the median of the rounds. Start reading at [`run`].

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use steadfast::effects::Commands;
use tokio::task::LocalSet;

use super::child::{Child, Job};
use super::place::Place;
use super::raw_http::{Connection, request};
use super::report::{Progress, Report, Table, count, number, rounded};
use super::statistics::{median, percentile, ratio, us};
use super::turns::{Amount, seconds};
use super::{Size, graphs};
use crate::serve::{self, Service};

#[derive(Args)]
pub(crate) struct Options {
    /// Connections at once, separated by commas; each waits for the end of its run before it starts the next
    #[arg(long, value_delimiter = ',', default_values_t = [1, 64, 256], value_parser = clap::value_parser!(u64).range(1..=4_096))]
    connections: Vec<u64>,
    /// How long to measure starts at each number of connections; the limit takes as long again
    #[arg(long, default_value_t = 5.0, conflicts_with = "count", value_parser = seconds)]
    seconds: f64,
    /// How many starts to measure at each number of connections, instead of a time
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    count: Option<u64>,
}

impl Options {
    pub(super) fn of(size: Size) -> Self {
        let seconds = match size {
            Size::Full => 5.0,
            Size::Short => 1.0,
        };
        Self { connections: vec![1, 64, 256], seconds, count: None }
    }

    fn amount(&self) -> Amount {
        match self.count {
            Some(count) => Amount::Count(count.div_ceil(ROUNDS)),
            None => Amount::Time(Duration::from_secs_f64(self.seconds / ROUNDS as f64)),
        }
    }
}

/// What came out with one number of connections.
#[derive(Serialize)]
struct Figures {
    connections: u64,
    starts: u64,
    starts_per_s: f64,
    p50_us: f64,
    p99_us: f64,
    limit_per_s: f64,
    ratio: f64,
    turns_per_fsync: f64,
}

/// What came out of one round.
struct Round {
    starts: u64,
    starts_per_s: f64,
    p50_us: f64,
    p99_us: f64,
    limit_per_s: f64,
    turns_per_fsync: f64,
}

const ROUNDS: u64 = 5;
const DONE: &[u8] = br#""status":"completed""#;

pub(super) fn run(options: &Options, place: &Place, report: &Report) -> anyhow::Result<()> {
    let mut table = Table::new(
        "http: starts of a run of one node over HTTP, each connection waits for its result",
        ["connections", "starts/s", "p50 µs", "p99 µs", "limit/s", "ratio", "turns/fsync"],
    );
    for &connections in &options.connections {
        let figures = measure(connections, options.amount(), &place.store(&format!("http-{connections}")))?;
        report.line("http", &figures)?;
        table.row([
            count(figures.connections),
            number(figures.starts_per_s),
            number(figures.p50_us),
            number(figures.p99_us),
            number(figures.limit_per_s),
            number(figures.ratio),
            number(figures.turns_per_fsync),
        ]);
    }
    table.note(
        "limit: `GET /healthz` of the same server, which does nothing; ratio = starts/s ÷ limit, higher is better",
    );
    table.note("this program makes the requests, and shares the machine with the server");
    Ok(report.table(&table)?)
}

/// The server's process: what `steadfast serve` does, until the parent is gone.
pub(super) fn serve(store: PathBuf, say: impl FnOnce(SocketAddr) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let service = Service::here(store, listen, Commands::Refused);
    let served = serve::serve(service, async |address, engine| {
        graphs::apply(engine, graphs::ONE).await?;
        say(address)?;
        std::future::pending().await
    });
    served.map(drop)
}

fn measure(connections: u64, amount: Amount, store: &Path) -> anyhow::Result<Figures> {
    let mut progress = Progress::of(format!("http with {connections} connections"));
    let mut server = Child::start(Job::ServeHttp { store: store.to_owned() })?;
    let address: SocketAddr = server.report()?;
    // One thread, so that the server keeps the other cores.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let measured = LocalSet::new().block_on(&runtime, async {
        let mut clients = Clients::open(address, connections).await?;
        clients.start_runs(Amount::Count(connections)).await?;
        let mut rounds = Vec::new();
        for done in 0..ROUNDS {
            progress.at(done, ROUNDS);
            rounds.push(round(&mut clients, amount).await?);
        }
        anyhow::Ok(rounds)
    })?;
    server.kill()?;
    Ok(Figures::of(connections, &measured))
}

async fn round(clients: &mut Clients, amount: Amount) -> anyhow::Result<Round> {
    let before = clients.commits().await?;
    let began = Instant::now();
    let mut times = clients.start_runs(amount).await?;
    let time = began.elapsed().as_secs_f64();
    let after = clients.commits().await?;
    times.sort_unstable();
    let began = Instant::now();
    let idle = clients.do_nothing(amount).await?;
    Ok(Round {
        starts: times.len() as u64,
        starts_per_s: times.len() as f64 / time,
        p50_us: us(percentile(&times, 50)),
        p99_us: us(percentile(&times, 99)),
        limit_per_s: idle.len() as f64 / began.elapsed().as_secs_f64(),
        turns_per_fsync: ratio((after.turns - before.turns) as f64, (after.fsyncs - before.fsyncs) as f64),
    })
}

/// All connections to one server.
struct Clients {
    address: SocketAddr,
    connections: Vec<Connection>,
}

/// What the server has committed so far.
struct Commits {
    turns: u64,
    fsyncs: u64,
}

impl Clients {
    async fn open(address: SocketAddr, number: u64) -> anyhow::Result<Self> {
        let mut connections = Vec::new();
        for _ in 0..number {
            connections.push(Connection::open(address).await?);
        }
        Ok(Self { address, connections })
    }

    /// How long each start took until the run was over, in no order.
    async fn start_runs(&mut self, amount: Amount) -> anyhow::Result<Vec<Duration>> {
        let start = request(self.address, "POST /v1/workflows/one/runs", r#"{"wait":"60s"}"#);
        self.ask_in_a_loop(start, 201, DONE, amount).await
    }

    /// The same with the server's empty route.
    async fn do_nothing(&mut self, amount: Amount) -> anyhow::Result<Vec<Duration>> {
        self.ask_in_a_loop(request(self.address, "GET /healthz", ""), 200, b"ok", amount).await
    }

    async fn ask_in_a_loop(
        &mut self,
        request: Vec<u8>,
        status: u16,
        expected: &'static [u8],
        amount: Amount,
    ) -> anyhow::Result<Vec<Duration>> {
        let began = Instant::now();
        let share = match amount {
            Amount::Time(_) => amount,
            Amount::Count(count) => Amount::Count(count.div_ceil(self.connections.len() as u64)),
        };
        let request: Rc<[u8]> = request.into();
        let ask = |mut connection: Connection| {
            let request = request.clone();
            tokio::task::spawn_local(async move {
                let times = ask(&mut connection, &request, status, expected, share, began).await?;
                anyhow::Ok((connection, times))
            })
        };
        let asked: Vec<_> = self.connections.drain(..).map(ask).collect();
        let mut all = Vec::new();
        for asked in asked {
            let (connection, mut times) = asked.await??;
            self.connections.push(connection);
            all.append(&mut times);
        }
        Ok(all)
    }

    async fn commits(&mut self) -> anyhow::Result<Commits> {
        let request = request(self.address, "GET /metrics", "");
        let connection = self.connections.first_mut().context("there is no connection")?;
        let text = String::from_utf8_lossy(connection.ask(&request, 200).await?);
        let counted = |name: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            found.with_context(|| format!("the server does not count `{name}`"))
        };
        Ok(Commits { turns: counted("steadfast_turns_committed_total")?, fsyncs: counted("steadfast_commits_total")? })
    }
}

async fn ask(
    connection: &mut Connection,
    request: &[u8],
    status: u16,
    expected: &[u8],
    share: Amount,
    began: Instant,
) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    let mut asked = Instant::now();
    while !share.is_reached(times.len() as u64, asked - began) {
        let body = connection.ask(request, status).await?;
        if !body.windows(expected.len()).any(|bytes| bytes == expected) {
            bail!("the server answered {}", String::from_utf8_lossy(body));
        }
        let answered = Instant::now();
        times.push(answered - asked);
        asked = answered;
    }
    Ok(times)
}

impl Figures {
    fn of(connections: u64, rounds: &[Round]) -> Self {
        let middle = |figure: fn(&Round) -> f64| rounded(median(rounds.iter().map(figure)));
        let (starts_per_s, limit_per_s) = (middle(|round| round.starts_per_s), middle(|round| round.limit_per_s));
        Self {
            connections,
            starts: rounds.iter().map(|round| round.starts).sum(),
            starts_per_s,
            p50_us: middle(|round| round.p50_us),
            p99_us: middle(|round| round.p99_us),
            limit_per_s,
            ratio: ratio(starts_per_s, limit_per_s),
            turns_per_fsync: middle(|round| round.turns_per_fsync),
        }
    }
}
