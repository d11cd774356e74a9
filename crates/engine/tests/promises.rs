//! What the engine promises, through its public face, with real threads and a real SQLite file.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use steadfast::commit::{Commit, Gather, Output, TaskNews, TaskStart, Waiter, commit_gathered};
use steadfast::core::failure::{Failure, FailureKind};
use steadfast::core::ids::ActorId;
use steadfast::core::json::Json;
use steadfast::core::limits::VALUE_DEPTH_MAX;
use steadfast::core::time::Timestamp;
use steadfast::core::turn::{Actor, Input, Kind, Storage, Turn, TurnError};
use steadfast::runner::{Delivery, Runner, Step, TaskOutcome, Told};
use steadfast::store::Store;
use steadfast::store::memory::MemoryStore;
use steadfast::{Engine, Function, Health, Kinds, RequestError, Settings, Task, shards_of};
use steadfast_sim::actors::fragile::{Heard, Knock};
use steadfast_sim::actors::{chain, counter, courier, errand, fragile, ticker};
use support::*;

fn run(task: &str, executor: &str) -> errand::Run {
    errand::Run { task: task.to_owned(), executor: executor.to_owned(), input: Json::encode("hello").unwrap() }
}

async fn heard(engine: &Engine, name: &str) -> Heard {
    engine.request(&actor(fragile::KIND, name), &()).await.unwrap().decode().unwrap()
}

#[tokio::test]
async fn what_was_answered_is_there_after_a_restart() {
    let place = Place::new();
    let counter = actor(counter::KIND, "a");
    let engine = place.start();
    add(&engine, &counter, 2).await;
    assert_eq!(add(&engine, &counter, 3).await, 5);
    stop(engine).await;
    assert_eq!(add(&place.start(), &counter, 0).await, 5);
}

#[tokio::test]
async fn a_request_asked_again_by_its_id_has_no_further_effect_and_the_same_answer() {
    let place = Place::new();
    let counter = actor(counter::KIND, "a");
    let engine = place.start();
    let ask = async |engine: &Engine| engine.request_as(&given("r1"), &counter, &counter::Add { add: 7 }).await;
    let (first, at_once) = tokio::join!(ask(&engine), ask(&engine));
    stop(engine).await;
    let engine = place.start();
    let later = ask(&engine).await;
    assert_eq!(
        [first.clone().unwrap(), at_once.unwrap(), later.unwrap()],
        [const { 7 }; 3].map(|n| Json::encode(&n).unwrap())
    );
    assert_eq!(add(&engine, &counter, 0).await, 7);
}

#[tokio::test]
async fn a_message_sent_again_by_its_id_arrives_once() {
    let place = Place::new();
    let counter = actor(counter::KIND, "a");
    let engine = place.start();
    for _ in 0..3 {
        engine.send_as(&given("m1"), &counter, &counter::Add { add: 7 }).await.unwrap();
    }
    eventually(|| add(&engine, &counter, 0), |count| *count == 7).await;
    stop(engine).await;
    let engine = place.start();
    engine.send_as(&given("m1"), &counter, &counter::Add { add: 7 }).await.unwrap();
    engine.send(&counter, &counter::Add { add: 1 }).await.unwrap();
    eventually(|| add(&engine, &counter, 0), |count| *count == 8).await;
}

#[tokio::test]
async fn a_kind_that_nobody_knows_is_refused() {
    let engine = Place::new().start();
    let answer = engine.request(&actor("riddle", "a"), &()).await;
    assert_eq!(answer.unwrap_err().to_string(), "this process does not know actors of kind `riddle`");
}

#[tokio::test]
async fn rows_of_a_kind_that_is_missing_wait_for_a_process_that_knows_it() {
    let place = Place::new();
    let (post, courier, errand) = (actor("post", "a"), actor(courier::KIND, "b"), actor(errand::KIND, "c"));
    let never = Function(|_| std::future::pending());
    let engine = place.builder().executor("work", never).start().unwrap();
    let asked = {
        let (engine, errand) = (engine.clone(), errand.clone());
        tokio::spawn(async move { engine.request_as(&given("e"), &errand, &run("t", "work")).await })
    };
    eventually(async || engine.metrics(), |metrics| metrics.tasks_started == 1).await;
    engine.stop(Duration::ZERO).await;
    drop(asked.await);

    let runs = Arc::new(AtomicUsize::new(0));
    let counting = runs.clone();
    let work = move |task: Task| {
        counting.fetch_add(1, Ordering::SeqCst);
        async move { Ok(task.input) }
    };
    let stranger = Engine::open(place.path()).unwrap().kind("post", courier::Courier);
    let stranger = stranger.executor("work", Function(work.clone())).start().unwrap();
    stranger.request(&post, &courier::Deliver { to: courier.clone(), count: 2 }).await.unwrap();
    assert_eq!(stranger.metrics().messages_parked, 2);
    stop(stranger).await;
    assert_eq!(runs.load(Ordering::SeqCst), 0, "nobody there could take the result");

    let engine = place.builder().kind("post", courier::Courier).executor("work", Function(work)).start().unwrap();
    let settled: errand::Settled =
        engine.request_as(&given("e"), &errand, &run("t", "work")).await.unwrap().decode().unwrap();
    assert_eq!(settled.attempt, 3, "it may have been started once in every life of the engine");
    eventually(async || engine.metrics(), |metrics| metrics.turns_committed >= 3).await;
    stop(engine).await;
    let store = steadfast::store::sqlite::SqliteStore::open(place.path()).unwrap();
    let received = steadfast::store::Store::reader(&store).unwrap().get(&courier, &courier::received_key(&post));
    assert_eq!(received.unwrap(), Some(Json::encode(&2).unwrap()));
}

#[tokio::test]
async fn a_turn_that_errs_is_refused_and_leaves_no_trace() {
    let engine = Place::new().start();
    let counter = actor(counter::KIND, "a");
    add(&engine, &counter, 5).await;
    let refused = engine.request(&counter, "not an amount").await.unwrap_err();
    assert!(matches!(&refused, RequestError::Refused(reason) if reason.contains("invalid type")), "{refused}");
    assert_eq!(add(&engine, &counter, 1).await, 6);
}

#[tokio::test]
async fn a_failing_message_is_kept_and_blocks_nobody() {
    let place = Place::new();
    let engine = place.start();
    let fragile = actor(fragile::KIND, "a");
    for knock in [Knock::Panic, Knock::Softly, Knock::Error, Knock::Softly] {
        engine.send(&fragile, &knock).await.unwrap();
    }
    eventually(|| heard(&engine, "a"), |heard| *heard == Heard { knocks: 2, letters: 2 }).await;
    let letters = engine.dead_letters(None, 10).unwrap();
    let mut errors: Vec<&str> = letters.iter().map(|letter| letter.error.as_str()).collect();
    errors.sort_unstable();
    assert_eq!(errors, ["knocked over", "the turn panicked: shattered, as asked"]);
    assert!(letters.iter().all(|letter| letter.attempts == 3 && letter.actor == fragile));
    assert_eq!(engine.dead_letters(Some(letters[0].id), 10).unwrap(), letters[1..], "they are listed page by page");
}

#[tokio::test]
async fn a_dead_letter_is_tried_again_with_all_its_tries_or_thrown_away() {
    let place = Place::new();
    let engine = place.start();
    engine.send(&actor(fragile::KIND, "a"), &Knock::Error).await.unwrap();
    eventually(|| heard(&engine, "a"), |heard| heard.letters == 1).await;
    let first = engine.dead_letters(None, 10).unwrap()[0].id;
    let (taken, too_late) = tokio::join!(engine.redrive(first), engine.redrive(first));
    assert_eq!(taken, Ok(()));
    assert_eq!(too_late.unwrap_err().to_string(), format!("there is no dead letter `{first}`"));

    eventually(|| heard(&engine, "a"), |heard| heard.letters == 2).await;
    let letters = engine.dead_letters(None, 10).unwrap();
    assert_eq!(letters.iter().map(|letter| letter.attempts).collect::<Vec<_>>(), [3]);
    assert_ne!(letters[0].id, first);
    engine.discard(letters[0].id).await.unwrap();
    assert!(engine.discard(letters[0].id).await.is_err());
    assert_eq!(engine.dead_letters(None, 10).unwrap(), []);
}

#[tokio::test]
async fn an_alarm_that_came_due_while_nobody_ran_fires_at_the_start() {
    let place = Place::new();
    let ticker = actor(ticker::KIND, "a");
    let engine = place.start();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    let start = ticker::Start { first: Timestamp(now + 300), every_ms: 10, times: 3 };
    engine.request(&ticker, &start).await.unwrap();
    stop(engine).await;
    tokio::time::sleep(Duration::from_millis(350)).await;
    let engine = place.start();
    let events = eventually(async || engine.events(&ticker, 0, 10).unwrap(), |events| events.len() == 3).await;
    let ticks: Vec<ticker::Tick> = events.iter().map(|event| event.data.decode().unwrap()).collect();
    let due: Vec<u64> = ticks.iter().map(|tick| tick.due.0 - now).collect();
    assert_eq!(due, [300, 310, 320], "no restart pushes an alarm back");
    assert!(ticks.iter().all(|tick| tick.at >= tick.due));
}

#[tokio::test]
async fn a_task_gives_its_result_to_the_turn_that_asked() {
    let place = Place::new();
    let echo = Function(async |task: Task| {
        assert_eq!(task.idempotency_key(), "errand:a/ok");
        Ok(task.input)
    });
    let engine = place.builder().executor("echo", echo).start().unwrap();
    let settled: errand::Settled =
        engine.request(&actor(errand::KIND, "a"), &run("ok", "echo")).await.unwrap().decode().unwrap();
    assert_eq!(settled, errand::Settled { task: "ok".to_owned(), is_ok: true, attempt: 1 });
}

#[tokio::test]
async fn a_task_that_fails_or_panics_ends_as_a_failure() {
    let place = Place::new();
    let refuse = Function(async |_| Err(Failure::last(FailureKind::TaskFailed, "no")));
    let panic = Function(async |_| -> Result<Json, Failure> { panic!("{}", fragile::LAST_WORDS) });
    let engine = place.builder().executor("refuse", refuse).executor("panic", panic).start().unwrap();
    for executor in ["refuse", "panic"] {
        let settled: errand::Settled =
            engine.request(&actor(errand::KIND, "a"), &run(executor, executor)).await.unwrap().decode().unwrap();
        assert!(!settled.is_ok, "{executor}");
    }
}

#[tokio::test]
async fn a_task_that_was_cut_off_runs_again_with_the_next_attempt() {
    let place = Place::new();
    let errand = actor(errand::KIND, "a");
    let started = Arc::new(AtomicUsize::new(0));
    let counting = started.clone();
    let never = Function(move |_| {
        counting.fetch_add(1, Ordering::SeqCst);
        std::future::pending()
    });
    let engine = place.builder().executor("work", never).start().unwrap();
    let asked = {
        let (engine, errand) = (engine.clone(), errand.clone());
        tokio::spawn(async move { engine.request_as(&given("r"), &errand, &run("t", "work")).await })
    };
    eventually(async || started.load(Ordering::SeqCst), |count| *count == 1).await;
    engine.stop(Duration::ZERO).await;
    assert_eq!(asked.await.unwrap(), Err(RequestError::Stopped));

    let engine = place.builder().executor("work", Function(async |task: Task| Ok(task.input))).start().unwrap();
    let settled: errand::Settled =
        engine.request_as(&given("r"), &errand, &run("t", "work")).await.unwrap().decode().unwrap();
    assert_eq!(settled, errand::Settled { task: "t".to_owned(), is_ok: true, attempt: 2 });
}

#[tokio::test]
async fn a_stop_waits_for_running_tasks_and_keeps_their_results() {
    let place = Place::new();
    let errand = actor(errand::KIND, "a");
    let (started, mut is_started) = tokio::sync::mpsc::unbounded_channel();
    let slow = Function(move |task: Task| {
        started.send(()).unwrap();
        async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            Ok(task.input)
        }
    });
    let engine = place.builder().executor("slow", slow).start().unwrap();
    let asking = engine.clone();
    tokio::spawn(async move { asking.request_as(&given("r"), &actor(errand::KIND, "a"), &run("t", "slow")).await });
    is_started.recv().await.unwrap();
    let clone = engine.clone();
    stop(engine).await;
    let engine = place.start();
    let events = engine.events(&errand, 0, 10).unwrap();
    assert_eq!(events.len(), 1, "it was settled before the engine stopped");
    assert_eq!(clone.request(&errand, &run("t", "slow")).await, Err(RequestError::Stopped));
    assert_eq!(clone.events(&errand, 0, 10).unwrap_err().to_string(), "the store failed: the engine has stopped");
}

#[tokio::test]
async fn more_tasks_than_memory_holds_all_run_once() {
    let place = Place::new();
    let runs = Arc::new(AtomicUsize::new(0));
    let counting = runs.clone();
    let count = Function(move |task: Task| {
        counting.fetch_add(1, Ordering::SeqCst);
        async move { Ok(task.input) }
    });
    let settings = Settings { tasks_running_max: 3, tasks_queued_max: 5, ..small_settings() };
    let engine = place.builder().executor("count", count).settings(settings).start().unwrap();
    let asked: Vec<_> = (0..500)
        .map(|number| {
            let engine = engine.clone();
            tokio::spawn(async move {
                let errand = actor(errand::KIND, &(number % 7).to_string());
                engine.request(&errand, &run(&format!("t{number}"), "count")).await.unwrap()
            })
        })
        .collect();
    for answer in asked {
        answer.await.unwrap();
    }
    assert_eq!(runs.load(Ordering::SeqCst), 500);
}

#[tokio::test]
async fn actors_that_leave_memory_come_back_as_they_were() {
    let place = Place::new();
    let engine = place.builder().settings(small_settings()).start().unwrap();
    for round in 1..=3 {
        for name in 0..100 {
            assert_eq!(add(&engine, &actor(counter::KIND, &name.to_string()), 1).await, round);
        }
    }
    assert!(engine.metrics().evictions > 100, "{:?}", engine.metrics());
}

#[tokio::test]
async fn messages_beyond_the_memory_bound_wait_on_disk_and_keep_their_order() {
    let place = Place::new();
    let engine = place.builder().settings(small_settings()).start().unwrap();
    let (from, to) = (actor(courier::KIND, "from"), actor(courier::KIND, "to"));
    for _ in 0..5 {
        engine.request(&from, &courier::Deliver { to: to.clone(), count: 1_000 }).await.unwrap();
    }
    let metrics = eventually(async || engine.metrics(), |metrics| metrics.turns_committed >= 5_005).await;
    assert!(metrics.messages_spilled > 1_000, "{metrics:?}");
    stop(engine).await;
    let store = steadfast::store::sqlite::SqliteStore::open(place.path()).unwrap();
    let reader = steadfast::store::Store::reader(&store).unwrap();
    assert_eq!(reader.get(&to, courier::VIOLATION).unwrap(), None);
    assert_eq!(reader.get(&to, &courier::received_key(&from)).unwrap(), Some(Json::encode(&5_000).unwrap()));
}

#[tokio::test]
async fn a_chain_over_several_runners_comes_back_up() {
    let place = Place::new();
    let engine = place.builder().settings(small_settings()).start().unwrap();
    let levels = engine.request(&chain::first("deep"), &chain::Nest { depth: 2_000 }).await.unwrap();
    assert_eq!(levels.decode::<u64>().unwrap(), 2_000);
}

#[tokio::test]
async fn a_caller_beyond_the_bound_is_told_that_the_engine_is_busy() {
    let place = Place::new();
    let settings = Settings { requests_waiting_max: 1, request_patience_ms: 20, ..Settings::default() };
    let never = Function(|_| std::future::pending());
    let engine = place.builder().executor("never", never).settings(settings).start().unwrap();
    let waiting = engine.clone();
    let first = tokio::spawn(async move { waiting.request(&actor(errand::KIND, "a"), &run("t", "never")).await });
    eventually(async || engine.metrics(), |metrics| metrics.tasks_started == 1).await;
    let second = engine.request(&actor(counter::KIND, "a"), &counter::Add { add: 1 }).await;
    assert_eq!(second, Err(RequestError::Busy(1)));
    first.abort();
    // Its place is free once the caller is gone.
    drop(first.await);
    assert_eq!(add(&engine, &actor(counter::KIND, "a"), 1).await, 1);
}

#[tokio::test]
async fn a_full_disk_stops_acknowledging_says_why_and_goes_on_by_itself() {
    let store = FailingStore::default();
    let engine = with_all_kinds(Engine::on(Arc::new(store.clone()))).settings(small_settings()).start().unwrap();
    let counter = actor(counter::KIND, "a");
    add(&engine, &counter, 5).await;
    store.set_full(true);
    let refused = engine.request(&counter, &counter::Add { add: 1 }).await.unwrap_err();
    let reason = "no space left for the store: the test says so; free some space, the engine goes on by itself";
    assert_eq!(refused.to_string(), format!("not acknowledged: {reason}; ask again with the same id"));
    assert_eq!(engine.health(), Health::Unwell(reason.to_owned()));
    let still = engine.request(&counter, &counter::Add { add: 1 }).await.unwrap_err();
    assert!(matches!(still, RequestError::Unavailable(_)), "{still}");

    store.set_full(false);
    eventually(async || engine.health(), |health| *health == Health::Well).await;
    assert_eq!(add(&engine, &counter, 1).await, 6, "nothing of the refused requests is there");
}

#[tokio::test]
async fn a_task_result_that_comes_while_the_disk_is_full_is_not_lost() {
    let store = FailingStore::default();
    let runs = Arc::new(AtomicUsize::new(0));
    let (release, released) = tokio::sync::watch::channel(false);
    let counting = runs.clone();
    let gated = Function(move |task: Task| {
        counting.fetch_add(1, Ordering::SeqCst);
        let mut released = released.clone();
        async move {
            drop(released.wait_for(|is_released| *is_released).await);
            Ok(task.input)
        }
    });
    let engine = with_all_kinds(Engine::on(Arc::new(store.clone()))).executor("gated", gated).start().unwrap();
    let errand = actor(errand::KIND, "a");
    let waiting = engine.clone();
    let asked =
        tokio::spawn(
            async move { waiting.request_as(&given("r"), &actor(errand::KIND, "a"), &run("t", "gated")).await },
        );
    eventually(async || runs.load(Ordering::SeqCst), |count| *count == 1).await;
    store.set_full(true);
    release.send(true).unwrap();
    eventually(async || engine.health(), |health| *health != Health::Well).await;
    store.set_full(false);
    eventually(async || engine.events(&errand, 0, 10).unwrap(), |events| events.len() == 1).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1, "the task did not have to run again");
    // The first caller was called off with the lost batch, or answered by the one that held; asking again tells.
    drop(asked.await);
    let settled: errand::Settled =
        engine.request_as(&given("r"), &errand, &run("t", "gated")).await.unwrap().decode().unwrap();
    assert!(settled.is_ok);
}

#[tokio::test]
async fn a_request_over_the_limit_is_refused_by_name() {
    let engine = Place::new().start();
    let body = "x".repeat(9 * 1024 * 1024);
    let refused = engine.request(&actor(counter::KIND, "a"), &body).await.unwrap_err();
    assert!(refused.to_string().contains("VALUE_BYTES_MAX"), "{refused}");
}

#[test]
fn an_engine_without_an_async_runtime_says_so() {
    let error = Place::new().builder().start().map(drop).unwrap_err();
    assert_eq!(error.to_string(), "an engine starts inside a tokio runtime; call `start` from async code");
}

#[tokio::test]
async fn an_answer_kept_for_a_caller_of_an_earlier_life_goes_to_nobody_else() {
    let place = Place::new();
    let errand = actor(errand::KIND, "a");
    let (started, mut is_started) = tokio::sync::mpsc::unbounded_channel();
    let never = Function(move |_| {
        started.send(()).unwrap();
        std::future::pending()
    });
    let engine = place.builder().executor("work", never).start().unwrap();
    let alice = {
        let (engine, errand) = (engine.clone(), errand.clone());
        tokio::spawn(async move { engine.request(&errand, &run("of-alice", "work")).await })
    };
    is_started.recv().await.unwrap();
    engine.stop(Duration::ZERO).await;
    drop(alice.await);

    let engine = place.builder().executor("work", Function(async |task: Task| Ok(task.input))).start().unwrap();
    let bob: errand::Settled = engine.request(&errand, &run("of-bob", "work")).await.unwrap().decode().unwrap();
    assert_eq!(bob.task, "of-bob");
}

/// A kind whose actors break the engine's thread, not only their turn.
struct Grenade;

impl Kind for Grenade {
    fn load(&self, _id: &ActorId, _storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        Ok(Box::new(Self))
    }
}

impl Actor for Grenade {
    fn turn(&mut self, _turn: &mut Turn<'_>, _input: &Input) -> Result<(), TurnError> {
        Err(TurnError::failed("so that it is dropped"))
    }
}

impl Drop for Grenade {
    fn drop(&mut self) {
        if !std::thread::panicking() && std::thread::current().name().is_some_and(|name| name.starts_with("runner")) {
            panic!("{}", fragile::LAST_WORDS);
        }
    }
}

#[tokio::test]
async fn an_engine_that_fails_by_its_own_fault_says_so_to_everybody() {
    let place = Place::new();
    let engine = place.builder().kind("grenade", Grenade).start().unwrap();
    let reason = "the engine has failed by a fault of its own; start it again";
    let thrower = engine.request(&actor("grenade", "a"), &()).await.unwrap_err();
    assert!(matches!(thrower, RequestError::Unavailable(_)), "{thrower}");
    eventually(async || engine.health(), |health| *health == Health::Unwell(reason.to_owned())).await;
    let bystander = engine.request(&actor(counter::KIND, "b"), &counter::Add { add: 1 }).await.unwrap_err();
    assert_eq!(bystander, RequestError::Unavailable(reason.to_owned()));
    stop(engine).await;
    assert_eq!(add(&place.start(), &actor(counter::KIND, "b"), 1).await, 1);
}

#[tokio::test]
async fn a_busy_actor_does_not_slow_down_by_what_it_has_written_before() {
    let place = Place::new();
    let engine = place.start();
    let (from, to) = (actor(courier::KIND, "from"), actor(courier::KIND, "to"));
    // One actor works off a long backlog: its turns are in every batch, so it is never without uncommitted writes.
    engine.request(&from, &courier::Deliver { to, count: 50_000 }).await.unwrap();
    eventually(async || engine.metrics(), |metrics| metrics.turns_committed >= 50_001).await;
}

#[tokio::test]
async fn tasks_behind_many_of_an_unknown_kind_are_started() {
    let place = Place::new();
    let never = Function(|_| std::future::pending());
    let settings = Settings { tasks_queued_max: 2, ..small_settings() };
    let stranger = place.builder().kind("stranger", errand::Errand).executor("work", never).settings(settings.clone());
    let stranger = stranger.start().unwrap();
    let (strange, known) = (actor("stranger", "a"), same_shard_as(&actor("stranger", "a")));
    let mut asked = Vec::new();
    for number in 0..10 {
        let (engine, strange) = (stranger.clone(), strange.clone());
        asked.push(tokio::spawn(async move { engine.request(&strange, &run(&format!("t{number}"), "work")).await }));
    }
    eventually(async || stranger.metrics(), |metrics| metrics.tasks_started == 10).await;
    let engine = stranger.clone();
    let last = known.clone();
    asked.push(tokio::spawn(async move { engine.request_as(&given("k"), &last, &run("last", "work")).await }));
    eventually(async || stranger.metrics(), |metrics| metrics.tasks_started == 11).await;
    stranger.stop(Duration::ZERO).await;
    for answer in asked {
        drop(answer.await);
    }
    let engine = place.builder().executor("work", Function(async |task: Task| Ok(task.input))).settings(settings);
    let engine = engine.start().unwrap();
    let settled: errand::Settled =
        engine.request_as(&given("k"), &known, &run("last", "work")).await.unwrap().decode().unwrap();
    assert!(settled.is_ok);
}

/// An errand in the shard of another actor, whose tasks come after that actor's.
fn same_shard_as(other: &ActorId) -> ActorId {
    (0..).map(|number: u32| actor(errand::KIND, &number.to_string())).find(|id| id.shard() == other.shard()).unwrap()
}

/// Answers a question more than once, and questions that nobody asked.
struct Chatty;

impl Kind for Chatty {
    fn load(&self, _id: &ActorId, _storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        Ok(Box::new(Self))
    }
}

impl Actor for Chatty {
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError> {
        let Input::Request(request) = input else { return Err(TurnError::failed("requests only")) };
        if request.body.as_str() == "\"speak\"" {
            for (to, answer) in [("d", "late"), ("d", "later"), ("never-asked", "hm")] {
                turn.reply(&given(to), answer)?;
            }
            turn.reply(&request.id, "spoken")?;
        } else if request.id == given("never-asked") {
            turn.reply(&request.id, "asked after all")?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn the_first_answer_stands_and_only_to_what_was_asked() {
    let place = Place::new();
    let engine = place.builder().kind("chatty", Chatty).start().unwrap();
    let chatty = actor("chatty", "a");
    let ask =
        async |id: &str, body: &str| engine.request_as(&given(id), &chatty, body).await.unwrap().decode::<String>();
    let (first, ()) = tokio::join!(ask("d", "wait"), async {
        // Once the question is on disk it can be answered.
        eventually(async || engine.metrics(), |metrics| metrics.turns_committed >= 1).await;
        assert_eq!(ask("s1", "speak").await, Ok("spoken".to_owned()));
    });
    assert_eq!(first, Ok("late".to_owned()));
    assert_eq!(ask("s2", "speak").await, Ok("spoken".to_owned()));
    assert_eq!(ask("d", "wait").await, Ok("late".to_owned()));
    assert_eq!(ask("never-asked", "wait").await, Ok("asked after all".to_owned()));
}

#[tokio::test]
async fn a_message_and_a_request_of_one_id_are_two_things() {
    let engine = Place::new().start();
    let counter = actor(counter::KIND, "a");
    engine.send_as(&given("x"), &counter, &counter::Add { add: 1 }).await.unwrap();
    let answer = engine.request_as(&given("x"), &counter, &counter::Add { add: 2 }).await.unwrap();
    assert_eq!(answer.decode(), Ok(3));
}

/// Dispatches a task, and fails at its result.
struct Ungrateful;

impl Kind for Ungrateful {
    fn load(&self, _id: &ActorId, _storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        Ok(Box::new(Self))
    }
}

impl Actor for Ungrateful {
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError> {
        match input {
            Input::Message(_) => turn.dispatch("t", "work", &()),
            Input::DeadLetter(_) => Ok(()),
            Input::TaskResult(_) | Input::Alarm { .. } | Input::Request(_) => Err(TurnError::failed("no, thank you")),
        }
    }
}

/// Steps and commits without time going by. What is to be started.
fn settle(runner: &mut Runner, gather: &Gather, store: &MemoryStore, now: Timestamp) -> Vec<TaskStart> {
    let mut started = Vec::new();
    loop {
        while runner.step(now) == Step::Ran {}
        let Commit::Done(outputs) = commit_gathered(gather, store) else { return started };
        started.extend(outputs.into_iter().filter_map(|output| match output {
            Output::Task(TaskNews::Start(start)) => Some(start),
            Output::Task(TaskNews::Cancel(_)) | Output::Answer(..) => None,
        }));
    }
}

#[test]
fn a_result_that_was_given_up_is_not_taken_again() {
    let store = MemoryStore::default();
    let gather = Arc::new(Gather::new(store.begin_boot().unwrap(), 100));
    let mut kinds = Kinds::default();
    kinds.insert("ungrateful", Ungrateful);
    let (actor, mut now) = (actor("ungrateful", "a"), Timestamp(0));
    let reader = store.reader().unwrap();
    let mut runner =
        Runner::start(gather.clone(), Arc::new(kinds), &Settings::default(), reader, shards_of(0, 1), now).unwrap();
    let (waiter, _told) = Waiter::new(None);
    let (id, body) = (gather.anonymous_request(), Json::null());
    runner.deliver(Delivery::Send { actor: actor.clone(), id, body, waiter }, now);
    let started = settle(&mut runner, &gather, &store, now);
    let [TaskStart { task, sequence, attempt, .. }] = &started[..] else { panic!("{started:?}") };
    let outcome = TaskOutcome {
        task: task.clone(),
        sequence: *sequence,
        attempt: *attempt,
        outcome: Ok(Json::null()),
        told: Told::default(),
    };
    let letters = || store.reader().unwrap().dead_letters(actor.shard(), None, 10).unwrap();
    runner.deliver(Delivery::Task { actor: actor.clone(), outcome: outcome.clone() }, now);
    while letters().is_empty() {
        now = now.plus_ms(1_000);
        settle(&mut runner, &gather, &store, now);
    }
    // At once: after some time without a turn the actor leaves memory, and what it remembers goes with it.
    runner.deliver(Delivery::Task { actor: actor.clone(), outcome }, now);
    for _ in 0..10 {
        settle(&mut runner, &gather, &store, now);
        now = now.plus_ms(3_600_000);
    }
    assert_eq!(letters().len(), 1, "{:?}", letters());
}

#[tokio::test]
async fn a_result_deeper_than_values_may_be_is_the_tasks_failure() {
    let place = Place::new();
    let deep = Function(async |task: Task| {
        let depth = task.input.decode().unwrap();
        Ok(Json::parse(&format!("{}{}", "[".repeat(depth), "]".repeat(depth))).unwrap())
    });
    let engine = place.builder().executor("deep", deep).start().unwrap();
    for (depth, is_ok) in [(VALUE_DEPTH_MAX, true), (VALUE_DEPTH_MAX + 1, false), (10_000, false)] {
        let task = depth.to_string();
        let run = errand::Run { input: Json::encode(&depth).unwrap(), ..run(&task, "deep") };
        let settled: errand::Settled = engine.request(&actor(errand::KIND, "a"), &run).await.unwrap().decode().unwrap();
        assert_eq!(settled.is_ok, is_ok, "{depth}");
    }
}
