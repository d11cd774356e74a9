//! What must be true of runs, whatever happened.
//!
//! Owns the promises of the coordinator as checks on what is on disk and what clients were told. Never looks into a run's memory. What a
//! history must be like is in [`super::story`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use serde_json::Value;
use steadfast_core::graph::KIND;
use steadfast_core::graph::protocol::{Outcome, RunStatus, Waited};
use steadfast_core::graph::view::{self, ArtifactStatus, ArtifactView};
use steadfast_core::ids::{ActorId, Shard};
use steadfast_core::json::Json;
use steadfast_core::turn::prefix_end;
use steadfast_store::Reader;
use steadfast_store::rows::{Head, HistoryPlace, RunFilter};

use super::generate::ORDER;
use super::story::Story;
use super::wishes::{Asked, is_started};
use crate::clients::Operation;
use crate::disk::{OnDisk, text};
use crate::scenario::Seen;

/// Rows that belong to what is under way. A run that is over has none.
const TRANSIENT: [&str; 10] =
    ["group/", "branch/", "overlay/", "items/", "step/", "timer/", "timer.at/", "wait/", "waits/", "waiter/"];

/// What was wanted of a run as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nobody wants it to go.
    Kept,
    /// It is to go, or is gone.
    Purged,
    /// Another is to be of its name.
    BegunAgain,
}

/// What clients wanted so far.
pub(super) fn stage(operations: &[Operation<Asked>]) -> Stage {
    let last = operations.iter().rfind(|operation| operation.wish.is_purge() || operation.wish.is_start());
    match operations.iter().any(|operation| operation.wish.is_purge()) {
        false => Stage::Kept,
        true if last.is_some_and(|operation| operation.wish.is_purge()) => Stage::Purged,
        true => Stage::BegunAgain,
    }
}

/// What must hold at any moment: every history is sound, and what a client was told is on disk.
pub(super) fn after_a_crash(root: &ActorId, seen: &Seen<'_, Asked>) -> Result<(), String> {
    match stage(seen.operations) {
        Stage::Kept => {
            for run in tree(seen.reader, root)? {
                Story::of(seen.reader, &run)?;
            }
        }
        Stage::Purged => return is_gone_when_told(root, seen),
        // Those of before may still go, and have the same names.
        Stage::BegunAgain => drop(Story::of(seen.reader, root)?),
    }
    match told(seen.operations)? {
        None => Ok(()),
        Some(told) => {
            let stored = outcome(seen.reader, root)?;
            if stored.as_ref() == Some(&told) {
                Ok(())
            } else {
                Err(format!("a client was told that {root} ended with {told:?}, on disk is {stored:?}"))
            }
        }
    }
}

/// What must hold when everything has come to its end.
pub(super) fn at_the_end<'a>(
    root: &ActorId,
    purged: impl Iterator<Item = &'a ActorId>,
    seen: &Seen<'_, Asked>,
) -> Result<(), String> {
    after_a_crash(root, seen)?;
    no_dead_letters(seen.reader)?;
    for operation in seen.operations {
        if operation.wish.is_start() && !operation.answer.as_ref().is_some_and(is_started) {
            return Err(format!("{:?} was answered {:?}", operation.wish, operation.answer));
        }
    }
    let runs = match stage(seen.operations) {
        Stage::Kept | Stage::BegunAgain => tree(seen.reader, root)?,
        Stage::Purged => Vec::new(),
    };
    for run in purged.filter(|run| !runs.contains(run)) {
        has_no_rows(seen.reader, run)?;
    }
    for run in &runs {
        is_over(seen.reader, run).map_err(|what| format!("{run}: {what}"))?;
    }
    are_listed(seen.reader, &runs)?;
    match told(seen.operations)? {
        Some(Outcome::Completed(output)) => in_order(&output.decode().map_err(text)?),
        Some(Outcome::Failed(_) | Outcome::Cancelled { .. }) => Ok(()),
        None => Err(format!("nobody was told how {root} ended")),
    }
}

/// What the client that waits for the end was told; of a run that was begun again, of its second end.
fn told(operations: &[Operation<Asked>]) -> Result<Option<Outcome>, String> {
    let starts = operations.iter().filter(|operation| operation.wish.is_start()).count();
    Ok(outcomes(operations)?.into_iter().nth(starts.saturating_sub(1)))
}

/// What clients were told that wait for an end: of the run, and of the one that was begun again.
pub(super) fn outcomes(operations: &[Operation<Asked>]) -> Result<Vec<Outcome>, String> {
    let waits = operations.iter().filter(|operation| operation.wish.is_wait());
    let outcome = |answer: &Json| match answer.decode().map_err(text)? {
        Waited::Ended(outcome) => Ok(outcome),
        Waited::AskAgain => Err("nobody else waits, and the caller is told to ask again".to_owned()),
        Waited::NotFound => Err("a run that was started is not found".to_owned()),
    };
    waits.filter_map(|operation| operation.answer.as_ref()).map(outcome).collect()
}

/// When a client was told that the run is gone, it is.
fn is_gone_when_told(root: &ActorId, seen: &Seen<'_, Asked>) -> Result<(), String> {
    let is_told = |operation: &Operation<Asked>| operation.wish.is_purge() && operation.answer.is_some();
    if seen.operations.iter().any(is_told) { has_no_rows(seen.reader, root) } else { Ok(()) }
}

/// Nothing of a run is left in any table.
fn has_no_rows(reader: &dyn Reader, run: &ActorId) -> Result<(), String> {
    let rows = reader.rows_of(run, usize::MAX - 1).map_err(text)?;
    let is_known = view::run(&OnDisk { actor: run, reader }, run.name()).map_err(text)?.is_some();
    let is_listed = reader.run(run).map_err(text)?.is_some();
    let head = reader.head(run).map_err(text)?;
    if rows > 0 || is_known || is_listed || head != Head::default() {
        return Err(format!("{run} was purged, but {rows} rows of it are left; {head:?}, listed: {is_listed}"));
    }
    Ok(())
}

/// All runs that `root` has started, directly or not, and itself.
fn tree(reader: &dyn Reader, root: &ActorId) -> Result<Vec<ActorId>, String> {
    let mut found = vec![root.clone()];
    let mut next = 0;
    while let Some(run) = found.get(next) {
        let children = Story::of(reader, run)?.children;
        for child in children.keys() {
            found.push(ActorId::new(KIND, child).map_err(text)?);
        }
        next += 1;
    }
    Ok(found)
}

fn outcome(reader: &dyn Reader, run: &ActorId) -> Result<Option<Outcome>, String> {
    let stored = reader.get(run, "outcome").map_err(text)?;
    stored.map(|json| json.decode().map_err(text)).transpose()
}

/// A run refuses only what must never reach it.
fn no_dead_letters(reader: &dyn Reader) -> Result<(), String> {
    for shard in Shard::all() {
        if let Some(letter) = reader.dead_letters(shard, None, 1).map_err(text)?.first() {
            return Err(format!("{} refused an input: {}; it was {}", letter.actor, letter.error, letter.input));
        }
    }
    Ok(())
}

fn is_over(reader: &dyn Reader, run: &ActorId) -> Result<(), String> {
    let storage = OnDisk { actor: run, reader };
    let shown = view::run(&storage, run.name()).map_err(text)?.ok_or("there is no such run")?;
    let story = Story::of(reader, run)?;
    let told = story.end.clone().ok_or("its history has no end")?;
    if told != format!("workflow.{}", shown.status.name()) {
        return Err(format!("it is {}, but its history ends with `{told}`", shown.status.name()));
    }
    let tokens = view::tokens(&storage).map_err(text)?;
    if let Some(active) = tokens.iter().find(|token| !token.status.is_terminal()) {
        return Err(format!("token {} at `{}` is {}, although the run is over", active.id, active.node, active.status));
    }
    let numbers: BTreeSet<u64> = tokens.iter().map(|token| token.id.0).collect();
    if numbers.len() as u64 != shown.token_count || numbers.len() != tokens.len() || story.ended != numbers {
        return Err(format!(
            "it made {} tokens; on disk are {numbers:?}, and of {:?} its history tells the end",
            shown.token_count, story.ended
        ));
    }
    nothing_is_left(reader, run)?;
    let artifacts = view::artifacts(&storage).map_err(text)?;
    let is_final = |artifact: &ArtifactView| artifact.status == ArtifactStatus::Committed;
    if !artifacts.iter().all(|artifact| is_final(artifact) && shown.status == RunStatus::Completed) {
        return Err(format!("it is {}, but has the artifacts {artifacts:?}", shown.status.name()));
    }
    children_are_over(reader, &story)
}

/// The list holds every run as it is, the counts are right, and the history of the tree is that of its runs.
fn are_listed(reader: &dyn Reader, runs: &[ActorId]) -> Result<(), String> {
    let listed = reader.runs(RunFilter::default(), None, usize::MAX).map_err(text)?;
    let shown: BTreeMap<&ActorId, &str> = listed.iter().map(|row| (&row.actor, &*row.status)).collect();
    let mut events = 0;
    for run in runs {
        let storage = OnDisk { actor: run, reader };
        let is = view::run(&storage, run.name()).map_err(text)?.ok_or("there is no such run")?.status.name();
        if shown.get(run) != Some(&is) {
            return Err(format!("{run} is {is}, but listed as {:?}", shown.get(run)));
        }
        events += reader.head(run).map_err(text)?.last_event;
    }
    let counted: u64 = reader.run_counts().map_err(text)?.iter().map(|found| found.count).sum();
    if listed.len() != runs.len() || counted != runs.len() as u64 {
        return Err(format!("there are {} runs; listed are {}, counted {counted}", runs.len(), listed.len()));
    }
    let told = reader.history(None, HistoryPlace::default(), usize::MAX).map_err(text)?;
    let root = runs.first().map(ActorId::name);
    let of_tree = root.map(|root| reader.history(Some(root), HistoryPlace::default(), usize::MAX));
    let of_tree = of_tree.transpose().map_err(text)?.unwrap_or_default();
    if told.len() as u64 != events || told.len() != of_tree.len() {
        let (all, of_tree) = (told.len(), of_tree.len());
        return Err(format!("the runs have told {events} events, their tree {of_tree}, everything {all}"));
    }
    Ok(())
}

fn nothing_is_left(reader: &dyn Reader, run: &ActorId) -> Result<(), String> {
    for prefix in TRANSIENT {
        let end = prefix_end(prefix);
        let rows = reader.scan(run, Bound::Included(prefix), Bound::Excluded(&end), 1).map_err(text)?;
        if let Some((key, value)) = rows.first() {
            return Err(format!("the row `{key}` is left, with {value}"));
        }
    }
    Ok(())
}

/// Every run that it started is over, and ended as it was told.
fn children_are_over(reader: &dyn Reader, story: &Story) -> Result<(), String> {
    for (child, told) in &story.children {
        let actor = ActorId::new(KIND, child).map_err(text)?;
        let storage = OnDisk { actor: &actor, reader };
        let shown = view::run(&storage, child).map_err(text)?;
        let status = shown.map(|run| run.status).ok_or_else(|| format!("its run {child} does not exist"))?;
        let is_as_told = match told.as_deref() {
            // It was called off, and may have come to its end at the same time.
            Some("workflow.cancelled") => status.is_over(),
            Some("workflow.completed") => status == RunStatus::Completed,
            Some("workflow.failed") => status == RunStatus::Failed,
            Some(_) | None => false,
        };
        if !is_as_told {
            return Err(format!("its run {child} is {}, it was told {told:?}", status.name()));
        }
    }
    Ok(())
}

/// Lists of branch numbers, under names that begin with [`ORDER`], grow: a join merges in the order of branches, whatever the order in which they
/// arrived.
fn in_order(output: &Value) -> Result<(), String> {
    match output {
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| match name.starts_with(ORDER) {
            true => grows(name, value),
            false => in_order(value),
        }),
        Value::Array(items) => items.iter().try_for_each(in_order),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn grows(name: &str, value: &Value) -> Result<(), String> {
    let Value::Array(items) = value else { return Ok(()) };
    items.iter().try_for_each(|item| grows(name, item))?;
    let numbers: Vec<u64> = items.iter().filter_map(Value::as_u64).collect();
    if numbers.is_sorted_by(|a, b| a < b) {
        Ok(())
    } else {
        Err(format!("`{name}` was merged out of order: {numbers:?}"))
    }
}
