//! What is promised of a task that is called off, with real threads and a real SQLite file.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use steadfast::core::ids::ActorId;
use steadfast::core::json::Json;
use steadfast::core::turn::{Actor, Input, Kind, Storage, Turn, TurnError};
use steadfast::{Engine, Function, Settings, Task};
use steadfast_sim::actors::errand::{self, With};
use support::*;

/// Starts a task and returns without waiting for its end.
fn ask(engine: &Engine, task: &str, executor: &str) -> tokio::task::JoinHandle<steadfast::Answer> {
    let run =
        errand::Run { task: task.to_owned(), executor: executor.to_owned(), input: Json::encode("hello").unwrap() };
    let (engine, id) = (engine.clone(), given(task));
    tokio::spawn(async move { engine.request_as(&id, &errand(), &run).await })
}

fn errand() -> ActorId {
    actor(errand::KIND, "a")
}

async fn cancel(engine: &Engine, task: &str, with: With) {
    engine.request(&errand(), &errand::Cancel { cancel: task.to_owned(), with }).await.unwrap();
}

/// Counts starts and never ends; counts what is dropped too.
#[derive(Clone, Default)]
struct Endless {
    started: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

struct CountsItsDrop(Arc<AtomicUsize>);

impl Drop for CountsItsDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Endless {
    fn executor(&self) -> impl steadfast::Executor + use<> {
        let Self { started, dropped } = self.clone();
        Function(move |_| {
            started.fetch_add(1, Ordering::SeqCst);
            let counted = CountsItsDrop(dropped.clone());
            async move {
                std::future::pending::<()>().await;
                drop(counted);
                Ok(Json::null())
            }
        })
    }

    fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }

    fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }
}

fn one_at_a_time() -> Settings {
    Settings { tasks_running_max: 1, ..small_settings() }
}

fn echo() -> impl steadfast::Executor {
    Function(async |task: Task| Ok(task.input))
}

#[tokio::test]
async fn a_cancelled_task_that_waits_never_starts() {
    let (place, endless) = (Place::new(), Endless::default());
    let waiting = Endless::default();
    let builder = place.builder().executor("first", endless.executor()).executor("waiting", waiting.executor());
    let engine = builder.executor("echo", echo()).settings(one_at_a_time()).start().unwrap();
    let first = ask(&engine, "first", "first");
    eventually(async || endless.started(), |started| *started == 1).await;
    let asked: Vec<_> = (0..20).map(|number| ask(&engine, &format!("t{number}"), "waiting")).collect();
    eventually(async || engine.metrics(), |metrics| metrics.turns_committed >= 21).await;
    for number in 0..20 {
        cancel(&engine, &format!("t{number}"), With::Nothing).await;
    }
    for answer in asked {
        assert_eq!(answer.await.unwrap().unwrap().decode::<String>().unwrap(), errand::CANCELLED);
    }
    // The only place comes free: what is next in line is the one that was not cancelled.
    let last = ask(&engine, "last", "echo");
    cancel(&engine, "first", With::Nothing).await;
    assert!(last.await.unwrap().unwrap().decode::<errand::Settled>().unwrap().is_ok);
    first.await.unwrap().unwrap();
    assert_eq!(waiting.started(), 0);
}

#[tokio::test]
async fn a_cancelled_task_that_runs_is_dropped_and_its_place_is_free() {
    let (place, endless) = (Place::new(), Endless::default());
    let builder = place.builder().executor("endless", endless.executor()).executor("echo", echo());
    let engine = builder.settings(one_at_a_time()).start().unwrap();
    let running = ask(&engine, "t", "endless");
    eventually(async || endless.started(), |started| *started == 1).await;
    cancel(&engine, "t", With::Nothing).await;
    running.await.unwrap().unwrap();
    eventually(async || endless.dropped(), |dropped| *dropped == 1).await;
    assert!(ask(&engine, "next", "echo").await.unwrap().unwrap().decode::<errand::Settled>().unwrap().is_ok);
    assert_eq!(engine.metrics().tasks_cancelled, 1);
}

#[tokio::test]
async fn a_result_that_races_with_the_cancel_of_its_task_is_dropped() {
    let place = Place::new();
    let engine = place.builder().executor("echo", echo()).start().unwrap();
    for number in 0..200 {
        let task = format!("t{number}");
        let asked = ask(&engine, &task, "echo");
        // Now before its dispatch, now while it runs, now after its result, as it comes.
        tokio::time::sleep(Duration::from_micros(number * 7)).await;
        cancel(&engine, &task, With::Nothing).await;
        asked.await.unwrap().unwrap();
    }
    stop(engine).await;
    let engine = place.start();
    // An errand refuses a result that it does not wait for, which would be kept as a dead letter.
    assert_eq!(engine.dead_letters(None, 10).unwrap(), []);
    assert_eq!(engine.events(&errand(), 0, 1_000).unwrap().len(), 200, "each task was settled or cancelled, once");
}

#[tokio::test]
async fn a_cancelled_task_stays_cancelled_after_a_restart() {
    let (place, endless) = (Place::new(), Endless::default());
    let settings = Settings { tasks_queued_max: 2, ..one_at_a_time() };
    let engine = place.builder().executor("endless", endless.executor()).settings(settings.clone()).start().unwrap();
    // One runs, two wait in memory, the others on disk.
    let asked: Vec<_> = (0..6).map(|number| ask(&engine, &format!("t{number}"), "endless")).collect();
    eventually(async || engine.metrics(), |metrics| metrics.turns_committed >= 6 && metrics.tasks_started >= 1).await;
    for number in 0..6 {
        cancel(&engine, &format!("t{number}"), With::Nothing).await;
    }
    for answer in asked {
        answer.await.unwrap().unwrap();
    }
    engine.stop(Duration::ZERO).await;

    let again = Endless::default();
    let builder = place.builder().executor("endless", again.executor()).executor("echo", echo());
    let engine = builder.settings(settings).start().unwrap();
    ask(&engine, "after", "echo").await.unwrap().unwrap();
    assert_eq!(again.started(), 0);
}

#[tokio::test]
async fn of_a_dispatch_and_a_cancel_in_one_turn_the_last_stands() {
    let (place, endless) = (Place::new(), Endless::default());
    let echoed = Arc::new(AtomicUsize::new(0));
    let counting = echoed.clone();
    let echo = Function(move |task: Task| {
        counting.fetch_add(1, Ordering::SeqCst);
        async move { Ok(task.input) }
    });
    let engine = place.builder().executor("endless", endless.executor()).executor("echo", echo).start().unwrap();
    let (withdrawn, replaced) = (ask(&engine, "withdrawn", "endless"), ask(&engine, "replaced", "endless"));
    eventually(async || endless.started(), |started| *started == 2).await;
    cancel(&engine, "withdrawn", With::DispatchBefore).await;
    assert_eq!(withdrawn.await.unwrap().unwrap().decode::<String>().unwrap(), errand::CANCELLED);
    cancel(&engine, "replaced", With::DispatchAfter).await;
    assert!(replaced.await.unwrap().unwrap().decode::<errand::Settled>().unwrap().is_ok);
    eventually(async || endless.dropped(), |dropped| *dropped == 2).await;
    assert_eq!(echoed.load(Ordering::SeqCst), 1, "only the one that was dispatched last");
}

#[tokio::test]
async fn cancelling_what_is_unknown_or_settled_does_nothing() {
    let place = Place::new();
    let engine = place.builder().executor("echo", echo()).start().unwrap();
    cancel(&engine, "t", With::Nothing).await;
    assert!(ask(&engine, "t", "echo").await.unwrap().unwrap().decode::<errand::Settled>().unwrap().is_ok);
    cancel(&engine, "t", With::Nothing).await;
    assert_eq!(engine.events(&errand(), 0, 10).unwrap().len(), 1);
    assert_eq!(engine.metrics().tasks_cancelled, 0);
}

/// Dispatches and cancels many tasks in one turn each.
struct Crowd;

impl Kind for Crowd {
    fn load(&self, _id: &ActorId, _storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        Ok(Box::new(Self))
    }
}

impl Actor for Crowd {
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError> {
        let Input::Request(request) = input else { return Ok(()) };
        for number in 0..50_000 {
            match request.body.as_str() {
                "\"dispatch\"" => turn.dispatch(&format!("t{number}"), "endless", &number)?,
                _ => turn.cancel(&format!("t{number}"))?,
            }
        }
        turn.reply(&request.id, &())
    }
}

#[tokio::test]
async fn fifty_thousand_tasks_cancelled_in_one_turn_end_at_once() {
    let (place, endless) = (Place::new(), Endless::default());
    let builder = place.builder().kind("crowd", Crowd).executor("endless", endless.executor());
    let engine = builder.executor("echo", echo()).start().unwrap();
    engine.request(&actor("crowd", "a"), "dispatch").await.unwrap();
    eventually(async || endless.started(), |started| *started == Settings::default().tasks_running_max).await;
    engine.request(&actor("crowd", "a"), "cancel").await.unwrap();
    ask(&engine, "next", "echo").await.unwrap().unwrap();
    let most = Settings::default().tasks_running_max;
    eventually(async || endless.dropped(), |dropped| *dropped == most).await;
    assert_eq!(endless.started(), most, "no cancelled task took the place of another");
}
