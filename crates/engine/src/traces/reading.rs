//! From the history to spans.
//!
//! Owns what is open: when attempts and calls began whose end was not read yet, within a bound. What is not in memory, after a restart or beyond the bound, is read again from the
//! history of its run when its end comes. Never waits, never sends. Start reading at [`Reading::advance`].

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use steadfast_core::graph::{self, view};
use steadfast_core::ids::ActorId;
use steadfast_core::time::Timestamp;
use steadfast_store::rows::{EventRow, HistoryPlace, RunRow};
use steadfast_store::{Reader, StoreError};

use super::SPANS_AT_ONCE;
use super::span::{self, Span, Trouble};
use crate::graph::storage::CommittedStorage;

/// Runs, attempts and calls that are held open, about 100 bytes each. When there are more, all are forgotten: what goes on is found again in the history.
const OPEN_MAX: usize = 100_000;

/// Events read at once. Some hold large values, of which nothing is kept.
const EVENTS_AT_ONCE: usize = 64;

/// Events after which what was found so far is sent.
const EVENTS_MAX: usize = 64 * EVENTS_AT_ONCE;

/// How far the history was read, what is open there, and what is ready to be sent.
pub(super) struct Reading {
    /// The last event of which everything is in `spans` or was sent.
    pub(super) place: HistoryPlace,
    pub(super) spans: Vec<Span>,
    open: OpenRuns,
}

/// What is behind the place up to which was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Nothing,
    Perhaps,
}

/// What is open, by run.
struct OpenRuns {
    by_run: HashMap<ActorId, OpenRun>,
    /// Of runs, attempts and calls.
    count: usize,
    count_max: usize,
}

struct OpenRun {
    root: Arc<str>,
    /// By token: each is at one thing at a time.
    by_token: HashMap<u64, Open>,
    seen: Seen,
}

/// Since when the events of a run were read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    All,
    /// Not those from before it came into memory.
    Later,
}

/// An attempt or a call that has begun.
struct Open {
    at: Timestamp,
    attempt: Option<u32>,
    executor: Option<Arc<str>>,
}

/// What is read of an event. Values that a run was given or gives are passed by.
#[derive(Deserialize)]
struct Facts {
    token: u64,
    node: String,
    attempt: Option<u32>,
    executor: Option<Arc<str>>,
    /// The run that is called, and of what.
    run: Option<String>,
    workflow: Option<String>,
    error: Option<Trouble>,
}

/// What is read of the end of a run.
#[derive(Deserialize)]
struct Ended {
    error: Option<Trouble>,
}

/// What an event means for spans.
#[derive(Clone, Copy)]
enum Meaning {
    RunBegins,
    RunEnds,
    Begins,
    Ends,
    /// A token is called off, at whatever it was.
    CalledOff,
    Nothing,
}

fn meaning(event_type: &str) -> Meaning {
    match event_type {
        "workflow.started" => Meaning::RunBegins,
        "workflow.completed" | "workflow.failed" | "workflow.cancelled" => Meaning::RunEnds,
        "task.dispatched" | "subworkflow.started" => Meaning::Begins,
        "task.completed" | "task.failed" | "subworkflow.completed" | "subworkflow.failed" | "subworkflow.cancelled" => {
            Meaning::Ends
        }
        "token.cancelled" => Meaning::CalledOff,
        _ => Meaning::Nothing,
    }
}

impl Reading {
    /// Begins behind a place.
    pub(super) fn after(place: HistoryPlace) -> Self {
        Self { place, spans: Vec::new(), open: OpenRuns::at_most(OPEN_MAX) }
    }

    /// Reads on, until there is enough to send or nothing more. After an error it can be called again.
    pub(super) fn advance(&mut self, reader: &dyn Reader) -> Result<Rest, StoreError> {
        for _ in 0..EVENTS_MAX / EVENTS_AT_ONCE {
            let events = reader.history(None, self.place, EVENTS_AT_ONCE)?;
            if events.is_empty() {
                return Ok(Rest::Nothing);
            }
            for (place, event) in events {
                if event.actor.kind() == graph::KIND {
                    let span = self.open.take(reader, &event)?;
                    self.spans.extend(span);
                }
                self.place = place;
            }
            if self.spans.len() >= SPANS_AT_ONCE {
                break;
            }
        }
        Ok(Rest::Perhaps)
    }
}

impl OpenRuns {
    fn at_most(count_max: usize) -> Self {
        Self { by_run: HashMap::new(), count: 0, count_max }
    }

    /// Takes an event in, and gives the span that ends with it.
    fn take(&mut self, reader: &dyn Reader, event: &EventRow) -> Result<Option<Span>, StoreError> {
        let actor = &event.actor;
        match meaning(&event.event_type) {
            Meaning::Nothing => {}
            Meaning::RunBegins => {
                // An id may have been that of a run that was removed.
                self.forget(actor);
                self.run(reader, actor, Seen::All)?;
            }
            Meaning::RunEnds => {
                self.forget(actor);
                return run_span(reader, event);
            }
            Meaning::Begins => {
                let Some(facts) = decoded(event) else { return Ok(None) };
                if self.run(reader, actor, Seen::Later)?.is_some_and(|run| run.begin(event.at, facts)) {
                    self.count += 1;
                }
            }
            Meaning::Ends => {
                let Some(facts) = decoded(event) else { return Ok(None) };
                return self.end(reader, event, facts);
            }
            Meaning::CalledOff => {
                let Some(facts) = decoded::<Facts>(event) else { return Ok(None) };
                // It may have waited, which is no span; and a call is called off by an event of its own.
                if self.find(reader, event, facts.token)? {
                    return self.end(reader, event, facts);
                }
            }
        }
        Ok(None)
    }

    /// The run of an event; nothing when it was removed. One that is not in memory is put there.
    fn run(&mut self, reader: &dyn Reader, actor: &ActorId, seen: Seen) -> Result<Option<&mut OpenRun>, StoreError> {
        if self.count >= self.count_max {
            *self = Self::at_most(self.count_max);
        }
        if !self.by_run.contains_key(actor) {
            let Some(RunRow { root, .. }) = reader.run(actor)? else { return Ok(None) };
            self.by_run.insert(actor.clone(), OpenRun { root, by_token: HashMap::new(), seen });
            self.count += 1;
        }
        Ok(self.by_run.get_mut(actor))
    }

    fn forget(&mut self, actor: &ActorId) {
        let gone = self.by_run.remove(actor);
        self.count -= gone.map_or(0, |run| 1 + run.by_token.len());
    }

    /// Whether something of this token is open; if that is not known, the history of the run is read again up to here.
    fn find(&mut self, reader: &dyn Reader, event: &EventRow, token: u64) -> Result<bool, StoreError> {
        // So that there is room for what comes next.
        let found_max = self.count_max / 2;
        let Some(run) = self.run(reader, &event.actor, Seen::Later)? else { return Ok(false) };
        let before = run.by_token.len();
        if run.seen == Seen::Later && !run.by_token.contains_key(&token) {
            run.read_again(reader, event, found_max)?;
        }
        let (is_open, after) = (run.by_token.contains_key(&token), run.by_token.len());
        self.count = self.count + after - before;
        Ok(is_open)
    }

    /// The span of an attempt or a call that ends. One whose beginning is not known, or that took no time at all, ends when it begins.
    fn end(&mut self, reader: &dyn Reader, event: &EventRow, facts: Facts) -> Result<Option<Span>, StoreError> {
        let is_open = self.find(reader, event, facts.token)?;
        let Some(run) = self.by_run.get_mut(&event.actor) else { return Ok(None) };
        let open = run.by_token.remove(&facts.token);
        self.count -= usize::from(is_open);
        Ok(Some(work_span(event, &run.root, facts, open)))
    }
}

impl OpenRun {
    /// Something begins. Whether that is one more.
    fn begin(&mut self, at: Timestamp, facts: Facts) -> bool {
        let Facts { token, attempt, executor, .. } = facts;
        self.by_token.insert(token, Open { at, attempt, executor }).is_none()
    }

    /// Finds what is open just before an event; no more than so many.
    fn read_again(&mut self, reader: &dyn Reader, until: &EventRow, found_max: usize) -> Result<(), StoreError> {
        let mut after = 0;
        loop {
            let events = reader.events(&until.actor, after, EVENTS_AT_ONCE)?;
            let Some(last) = events.last().map(|event| event.sequence) else { break };
            for event in events.iter().filter(|event| event.sequence < until.sequence) {
                match meaning(&event.event_type) {
                    Meaning::Begins if self.by_token.len() < found_max => {
                        decoded(event).map(|facts| self.begin(event.at, facts));
                    }
                    Meaning::Ends | Meaning::CalledOff => {
                        decoded(event).map(|facts: Facts| self.by_token.remove(&facts.token));
                    }
                    Meaning::Begins | Meaning::RunBegins | Meaning::RunEnds | Meaning::Nothing => {}
                }
            }
            if last >= until.sequence {
                break;
            }
            after = last;
        }
        self.seen = Seen::All;
        Ok(())
    }
}

/// The span of a run that has ended with this event.
fn run_span(reader: &dyn Reader, event: &EventRow) -> Result<Option<Span>, StoreError> {
    let Some(row) = reader.run(&event.actor)? else { return Ok(None) };
    let Some(Ended { error }) = decoded(event) else { return Ok(None) };
    let run = event.actor.name();
    let storage = CommittedStorage { actor: &event.actor, reader };
    let caller = view::caller(&storage).map_err(|error| StoreError::Failed(error.to_string()))?;
    let mut attributes = vec![
        ("steadfast.run", json!(run)),
        ("steadfast.root", json!(row.root)),
        ("steadfast.workflow", json!(row.workflow)),
        ("steadfast.version", json!(row.version)),
        ("steadfast.status", json!(status(event))),
    ];
    if let Some(caller) = &caller {
        attributes.push(("steadfast.parent", json!(caller.actor.name())));
        attributes.push(("steadfast.attempt", json!(caller.attempt)));
    }
    attributes.extend(error_type(error.as_ref()));
    Ok(Some(Span {
        trace: span::trace_id(&row.root),
        id: span::run_id(run),
        parent: caller.map(|_| span::call_id(run)),
        name: row.workflow.to_string(),
        started: row.started_at,
        ended: event.at,
        attributes,
        error,
    }))
}

/// The span of an attempt, or of a call of another workflow.
fn work_span(event: &EventRow, root: &str, facts: Facts, open: Option<Open>) -> Span {
    let Facts { token, node, attempt, run: called, workflow, error, .. } = facts;
    let run = event.actor.name();
    let (at, begun, executor) =
        open.map_or((None, None, None), |Open { at, attempt, executor }| (Some(at), attempt, executor));
    // Whoever calls a token off does not say which attempt it was at.
    let attempt = attempt.or(begun);
    let mut attributes = vec![
        ("steadfast.run", json!(run)),
        ("steadfast.node", json!(node)),
        ("steadfast.token", json!(token)),
        ("steadfast.status", json!(status(event))),
    ];
    attributes.extend(attempt.map(|attempt| ("steadfast.attempt", json!(attempt))));
    attributes.extend(executor.map(|executor| ("steadfast.executor", json!(executor))));
    attributes.extend(called.as_ref().map(|called| ("steadfast.called_run", json!(called))));
    attributes.extend(workflow.map(|workflow| ("steadfast.called_workflow", json!(workflow))));
    attributes.extend(at.is_none().then_some(("steadfast.start_unknown", json!(true))));
    attributes.extend(error_type(error.as_ref()));
    let id = match &called {
        Some(called) => span::call_id(called),
        None => span::attempt_id(run, token, attempt.unwrap_or(0)),
    };
    Span {
        trace: span::trace_id(root),
        id,
        parent: Some(span::run_id(run)),
        name: node,
        started: at.unwrap_or(event.at),
        ended: event.at,
        attributes,
        error,
    }
}

/// How something ended: `completed`, `failed` or `cancelled`.
fn status(event: &EventRow) -> &str {
    event.event_type.rsplit_once('.').map_or("", |(_, status)| status)
}

fn error_type(error: Option<&Trouble>) -> Option<(&'static str, serde_json::Value)> {
    error.map(|error| ("error.type", json!(error.kind)))
}

/// What an event says. One that cannot be read is no reason to send nothing any more.
fn decoded<T: DeserializeOwned>(event: &EventRow) -> Option<T> {
    let EventRow { actor, sequence, .. } = event;
    let warn = |error| tracing::warn!(%actor, sequence, %error, "an event cannot be read; its span is left out");
    event.data.decode().map_err(warn).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use steadfast_core::definition;
    use steadfast_core::json::Json;
    use steadfast_store::memory::MemoryStore;

    use super::*;
    use crate::Engine;
    use crate::graph::{Graphs, Run};

    const WIDE: &str = r#"
kind: workflow
name: wide
nodes: { a: {}, b: { run: { mock: { value: 1, delay: 1ms } } } }
transitions: [{ from: a, to: b, spawn: 20 }]
"#;

    #[tokio::test(flavor = "multi_thread")]
    async fn more_than_is_held_open_is_sent_all_the_same() {
        let engine = Engine::on(Arc::new(MemoryStore::default())).graphs().start().unwrap();
        let graphs = Graphs::of(&engine);
        graphs.apply(&definition::read("wide.yaml", WIDE).definitions).await.unwrap();
        for id in ["first", "second"] {
            graphs.start(Run::new("wide", Json::parse("{}").unwrap()).with_id(id)).await.unwrap();
            graphs.wait(id).await.unwrap();
        }
        let mut reading = Reading::after(HistoryPlace::default());
        reading.open = OpenRuns::at_most(8);
        while engine.with_reader(|reader| reading.advance(reader)).unwrap().unwrap() == Rest::Perhaps {}
        assert!(reading.open.count <= 8);
        let ids: std::collections::BTreeSet<&str> = reading.spans.iter().map(|span| &*span.id).collect();
        assert_eq!((ids.len(), reading.spans.len()), (2 * 21, 2 * 21));
        let is_unknown = |span: &&Span| span.attributes.contains(&("steadfast.start_unknown", json!(true)));
        let unknown = reading.spans.iter().filter(is_unknown).count();
        assert!((1..2 * 20).contains(&unknown), "{unknown}");
        engine.stop(Duration::ZERO).await;
    }
}
