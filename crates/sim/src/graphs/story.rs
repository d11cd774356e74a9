//! The history of a run, and what must be true of every history.
//!
//! Owns the promises about events: no gap, every token is made once and ends once, a join fires once, an attempt is settled once, and
//! nothing comes after the end.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use steadfast_core::ids::ActorId;
use steadfast_core::limits::PAGE_ROWS_MAX;
use steadfast_store::Reader;
use steadfast_store::rows::EventRow;

use crate::disk::text;

/// What the events of a run tell.
#[derive(Default)]
pub(super) struct Story {
    last: u64,
    created: BTreeSet<u64>,
    pub(super) ended: BTreeSet<u64>,
    opened: BTreeSet<u64>,
    fired: BTreeSet<u64>,
    settled: BTreeMap<(u64, u64), Settled>,
    /// The runs it started, and how each ended as far as it has heard.
    pub(super) children: BTreeMap<String, Option<String>>,
    /// The type of its last event, once it has told its end.
    pub(super) end: Option<String>,
}

/// How an attempt was settled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Settled {
    Completed,
    Failed,
}

/// What events say, as far as it matters here.
#[derive(Deserialize)]
struct Facts {
    #[serde(default)]
    token: Option<u64>,
    #[serde(default)]
    attempt: Option<u64>,
    #[serde(default)]
    instance: Option<u64>,
    #[serde(default)]
    run: Option<String>,
}

impl Story {
    /// Reads the history of a run, from its first event.
    pub(super) fn of(reader: &dyn Reader, run: &ActorId) -> Result<Self, String> {
        let mut story = Self::default();
        story.read_on(reader, run)?;
        Ok(story)
    }

    /// Reads what is new.
    pub(super) fn read_on(&mut self, reader: &dyn Reader, run: &ActorId) -> Result<(), String> {
        loop {
            let events = reader.events(run, self.last, PAGE_ROWS_MAX).map_err(text)?;
            for event in &events {
                self.take(event).map_err(|what| {
                    format!("{run}: event {} (`{}` {}): {what}", event.sequence, event.event_type, event.data)
                })?;
            }
            if events.len() < PAGE_ROWS_MAX {
                return Ok(());
            }
        }
    }

    /// The runs that it waits for no longer.
    pub(super) fn given_up(&self) -> impl Iterator<Item = &str> {
        self.children.iter().filter(|(_, told)| told.is_some()).map(|(run, _)| run.as_str())
    }

    fn take(&mut self, event: &EventRow) -> Result<(), String> {
        if event.sequence != self.last + 1 {
            return Err(format!("it comes after event {}", self.last));
        }
        if (event.sequence == 1) != (&*event.event_type == "workflow.started") {
            return Err("a history begins with `workflow.started`, once".to_owned());
        }
        if let Some(end) = &self.end {
            return Err(format!("the run had told its end, `{end}`"));
        }
        self.last = event.sequence;
        if event.event_type.starts_with("decision.") {
            return Ok(());
        }
        let facts: Facts = event.data.decode().map_err(text)?;
        match &*event.event_type {
            "token.created" => once(&mut self.created, facts.token, "this token was made before"),
            "token.completed" | "token.failed" | "token.timed_out" | "token.cancelled" => {
                self.must_be_made(facts.token)?;
                once(&mut self.ended, facts.token, "this token had ended")
            }
            "token.waiting" => self.must_be_active(facts.token),
            "fan_out.started" => once(&mut self.opened, facts.instance, "this instance was opened before"),
            "fan_in.completed" => {
                if !facts.instance.is_some_and(|instance| self.opened.contains(&instance)) {
                    return Err("this instance was never opened".to_owned());
                }
                once(&mut self.fired, facts.instance, "this join had fired")
            }
            "task.dispatched" => self.must_be_active(facts.token),
            "task.completed" => self.settle(&facts, Settled::Completed),
            "task.failed" => self.settle(&facts, Settled::Failed),
            "subworkflow.started" => self.begin_child(facts.run),
            "subworkflow.completed" | "subworkflow.failed" | "subworkflow.cancelled" => {
                self.end_child(facts.run, &event.event_type)
            }
            "workflow.completed" | "workflow.failed" | "workflow.cancelled" => {
                self.end = Some(event.event_type.to_string());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// An attempt is settled once. One thing more may be told of it: that its result does not fit its schema.
    fn settle(&mut self, facts: &Facts, how: Settled) -> Result<(), String> {
        self.must_be_active(facts.token)?;
        let (Some(token), Some(attempt)) = (facts.token, facts.attempt) else {
            return Err("it names no attempt".to_owned());
        };
        let before = self.settled.insert((token, attempt), how);
        match (before, how) {
            (None, _) => Ok(()),
            (Some(_), _) => Err("this attempt was settled before".to_owned()),
        }
    }

    fn begin_child(&mut self, run: Option<String>) -> Result<(), String> {
        let run = run.ok_or("it names no run")?;
        match self.children.insert(run, None) {
            None => Ok(()),
            Some(_) => Err("this run was started before".to_owned()),
        }
    }

    fn end_child(&mut self, run: Option<String>, how: &str) -> Result<(), String> {
        let run = run.ok_or("it names no run")?;
        match self.children.get_mut(&run) {
            None => Err("this run was never started".to_owned()),
            Some(Some(before)) => Err(format!("it was told of this run before: `{before}`")),
            Some(told) => {
                *told = Some(how.replace("subworkflow", "workflow"));
                Ok(())
            }
        }
    }

    fn must_be_made(&self, token: Option<u64>) -> Result<(), String> {
        let is_made = token.is_some_and(|token| self.created.contains(&token));
        if is_made { Ok(()) } else { Err("this token was never made".to_owned()) }
    }

    fn must_be_active(&self, token: Option<u64>) -> Result<(), String> {
        self.must_be_made(token)?;
        let has_ended = token.is_some_and(|token| self.ended.contains(&token));
        if has_ended { Err("this token had ended".to_owned()) } else { Ok(()) }
    }
}

fn once(seen: &mut BTreeSet<u64>, number: Option<u64>, otherwise: &str) -> Result<(), String> {
    let number = number.ok_or("it names nothing")?;
    if seen.insert(number) { Ok(()) } else { Err(otherwise.to_owned()) }
}
