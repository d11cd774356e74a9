//! Recovery: a process is killed with many tasks in flight; the next one finishes them.
//!
//! Owns the killing and the counting: every task must be executed to its end and settled exactly once, however often it was begun. The
//! limit is the same work without a death. Start reading at [`run`].

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use steadfast::{Engine, Function, Settings, Task};
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::ids::{ActorId, RequestId};
use steadfast_core::json::Json;
use steadfast_core::limits;
use steadfast_sim::actors::errand::{self, Errand, Run, Settled};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::child::{self, Child, Job};
use super::machine::us_since_1970;
use super::place::Place;
use super::report::{Progress, Report, Table, count, number, rounded};
use super::sleepers::ms_since;
use super::statistics::ratio;
use super::{GRACE, Size, client_runtime, unless_unwell};

#[derive(Args)]
pub(crate) struct Options {
    /// How many tasks are in flight when the process is killed
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    count: u64,
}

impl Options {
    pub(super) fn of(size: Size) -> Self {
        match size {
            Size::Full | Size::Short => Self { count: 1_000 },
        }
    }
}

/// Which errands, and where their tasks note what they did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Errands {
    store: PathBuf,
    effects: PathBuf,
    /// Tells this run's from those of another on the same store.
    run: String,
    count: u64,
}

/// What the process saw that finished them.
#[derive(Serialize, Deserialize)]
pub(super) struct Finished {
    first_ms: f64,
    last_ms: f64,
    settled: u64,
    settled_twice: u64,
}

#[derive(Serialize)]
struct Figures {
    count: u64,
    first_ms: f64,
    last_ms: f64,
    limit_last_ms: f64,
    ratio: f64,
    executions: u64,
    lost: u64,
    repeated_settlements: u64,
}

const EXECUTOR: &str = "bench";
const TASK: &str = "task";
const BEGUN: &str = "begun";
const ENDED: &str = "ended";

/// More than two: enough to see that there is more than one.
const EVENTS_READ: usize = 10;

pub(super) fn run(options: &Options, place: &Place, report: &Report) -> anyhow::Result<()> {
    let progress = Progress::of(format!("recover with {} tasks", count(options.count)));
    let errands = |store: PathBuf, name: &str| Errands {
        store,
        effects: place.scratch(&format!("{name}.effects")),
        run: format!("{name}-{}", us_since_1970()),
        count: options.count,
    };
    let killed = errands(place.store("recover"), "recover");
    let mut first_life = Child::start(Job::HangErrands(killed.clone()))?;
    first_life.report::<()>()?;
    first_life.kill().context("the first process could not be killed")?;
    let finished: Finished = child::ask(Job::FinishErrands(killed.clone()))?;
    let undisturbed = errands(place.scratch("recover-limit.db"), "recover-limit");
    let limit: Finished = child::ask(Job::FinishErrands(undisturbed))?;
    drop(progress);

    let effects = Effects::read(&killed.effects)?;
    let unfinished = options.count - finished.settled;
    let figures = Figures {
        count: options.count,
        first_ms: rounded(finished.first_ms),
        last_ms: rounded(finished.last_ms),
        limit_last_ms: rounded(limit.last_ms),
        ratio: rounded(ratio(finished.last_ms, limit.last_ms)),
        executions: effects.executions,
        lost: unfinished.max(options.count.saturating_sub(effects.ended.len() as u64)),
        repeated_settlements: finished.settled_twice,
    };
    report.line("recover", &figures)?;
    report.table(&table(&figures))?;
    if figures.lost > 0 || figures.repeated_settlements > 0 {
        let Figures { lost, repeated_settlements, .. } = figures;
        bail!("{lost} tasks were lost and {repeated_settlements} were settled more than once, expected none");
    }
    Ok(())
}

fn table(figures: &Figures) -> Table {
    let mut table = Table::new(
        "recover: tasks in flight when the process is killed",
        ["tasks", "ms to first", "ms to last", "undisturbed ms", "ratio", "executions", "lost", "settled twice"],
    );
    table.row([
        count(figures.count),
        number(figures.first_ms),
        number(figures.last_ms),
        number(figures.limit_last_ms),
        number(figures.ratio),
        count(figures.executions),
        count(figures.lost),
        count(figures.repeated_settlements),
    ]);
    table.note("ms from the start of the next process until the result is on disk and answered");
    table.note(
        "undisturbed: a process that starts and does the same tasks for the first time; ratio = last ÷ undisturbed",
    );
    table
}

/// What the tasks noted.
struct Effects {
    executions: u64,
    /// How often each was executed to its end.
    ended: BTreeMap<String, u64>,
}

impl Effects {
    fn read(file: &Path) -> anyhow::Result<Self> {
        let mut effects = Self { executions: 0, ended: BTreeMap::new() };
        for line in fs::read_to_string(file).context("the effects cannot be read")?.lines() {
            effects.executions += 1;
            if let Some((ENDED, task)) = line.split_once(' ') {
                *effects.ended.entry(task.to_owned()).or_default() += 1;
            }
        }
        Ok(effects)
    }
}

/// The first life: starts tasks that never end, says when all have begun, and waits to be killed.
pub(super) fn hang(errands: &Errands, say_all_begun: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let begun = Arc::new(Semaphore::new(0));
    let (effects, each_begun) = (open_effects(errands)?, begun.clone());
    let executor = Function(move |task: Task| {
        let (noted, each_begun) = (note(&effects, BEGUN, &task), each_begun.clone());
        async move {
            match noted {
                Ok(()) => each_begun.add_permits(1),
                Err(_) => each_begun.close(),
            }
            std::future::pending::<Result<Json, Failure>>().await
        }
    });
    client_runtime()?.block_on(async {
        let engine = errands.engine()?.executor(EXECUTOR, executor).start()?;
        let mut asked = ask_all(&engine, errands)?;
        let all = u32::try_from(errands.count).context("too many tasks")?;
        tokio::select! {
            all_begun = unless_unwell(&engine, begun.acquire_many(all)) => drop(all_begun?.context("an effect cannot be noted")?),
            Some(answer) = asked.join_next() => {
                bail!("an errand was answered before its task had ended: {}", answer?.context("it failed")?)
            }
        }
        say_all_begun()?;
        std::future::pending().await
    })
}

/// The next life, in a process that was started at `spawned_at_us`: ends all tasks, and asks for the answers again.
pub(super) fn finish(errands: &Errands, spawned_at_us: u64) -> anyhow::Result<Finished> {
    let effects = open_effects(errands)?;
    let executor = Function(move |task: Task| {
        let noted = note(&effects, ENDED, &task);
        async move { noted.map(|()| Json::null()).map_err(|error| Failure::last(FailureKind::Internal, &error.to_string())) }
    });
    client_runtime()?.block_on(async {
        let engine = errands.engine()?.executor(EXECUTOR, executor).start()?;
        let mut asked = ask_all(&engine, errands)?;
        let (mut first_ms, mut settled) = (None, 0);
        while let Some(answer) = unless_unwell(&engine, asked.join_next()).await? {
            let ended: Settled = answer?.context("an errand did not answer")?.decode()?;
            first_ms.get_or_insert_with(|| ms_since(spawned_at_us));
            settled += u64::from(ended.is_ok);
        }
        let last_ms = ms_since(spawned_at_us);
        let settled_twice = settled_twice(&engine, errands)?;
        engine.stop(GRACE).await;
        Ok(Finished { first_ms: first_ms.unwrap_or(last_ms), last_ms, settled, settled_twice })
    })
}

impl Errands {
    fn engine(&self) -> anyhow::Result<steadfast::Builder> {
        let count = usize::try_from(self.count)?;
        let settings = Settings {
            // All at once is what this benchmark is about.
            tasks_running_max: count.max(limits::TASKS_RUNNING_MAX),
            requests_waiting_max: count.max(limits::REQUESTS_WAITING_MAX),
            ..Settings::default()
        };
        Ok(Engine::open(&self.store)?.kind(errand::KIND, Errand).settings(settings))
    }

    fn actor(&self, number: u64) -> anyhow::Result<ActorId> {
        Ok(ActorId::new(errand::KIND, &format!("{}/{number}", self.run))?)
    }
}

/// Asks every errand to run its task, each under its own id: asked again, it only waits for the answer.
fn ask_all(engine: &Engine, errands: &Errands) -> anyhow::Result<JoinSet<steadfast::Answer>> {
    let mut asked = JoinSet::new();
    for number in 0..errands.count {
        let (engine, actor) = (engine.clone(), errands.actor(number)?);
        let id = RequestId::given(&format!("{}.{number}", errands.run))?;
        let run = Run { task: TASK.to_owned(), executor: EXECUTOR.to_owned(), input: Json::null() };
        asked.spawn(async move { engine.request_as(&id, &actor, &run).await });
    }
    Ok(asked)
}

fn settled_twice(engine: &Engine, errands: &Errands) -> anyhow::Result<u64> {
    let mut twice = 0;
    for number in 0..errands.count {
        let events = engine.events(&errands.actor(number)?, 0, EVENTS_READ)?;
        twice += u64::from(events.iter().filter(|event| *event.event_type == *errand::SETTLED).count() > 1);
    }
    Ok(twice)
}

fn open_effects(errands: &Errands) -> anyhow::Result<Arc<Mutex<File>>> {
    let file = OpenOptions::new().create(true).append(true).open(&errands.effects);
    Ok(Arc::new(Mutex::new(file.context("the effects cannot be noted")?)))
}

/// One line, by one write at the end of the file: a kill leaves whole lines only.
fn note(effects: &Mutex<File>, what: &str, task: &Task) -> std::io::Result<()> {
    let line = format!("{what} {}\n", task.idempotency_key());
    effects.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())
}
