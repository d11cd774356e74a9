//! Who waits for a signal that nobody may send: the run itself, or a run below it.
//!
//! Owns the following of runs below, as far as it is needed for this, and what is said about them. Never sends a signal. Start reading at
//! [`Waits::news`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use steadfast::Engine;
use steadfast_core::graph::KIND;
use steadfast_core::ids::ActorId;
use steadfast_core::limits;
use steadfast_store::StoreError;

use crate::progress::{Facts, Kind};

/// What a tree of runs waits for.
pub(super) struct Waits {
    root: String,
    telling: Telling,
    /// The runs below that are under way, and how much of each history was seen.
    below: BTreeMap<String, u64>,
    looked_at: Instant,
    /// Tokens that wait, by run and number.
    waiting: BTreeMap<(String, u64), Wait>,
    /// Said once is enough, however many wait for the same.
    told: BTreeSet<Wait>,
}

/// A node and its signal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Wait {
    node: String,
    signal: String,
}

/// Whose waiting is told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    /// That of all runs.
    All,
    /// That of runs below only: the run itself is seen elsewhere.
    Below,
}

/// Runs below that are followed at once. More would cost more than it tells.
const BELOW_MAX: usize = 100;

/// How often runs below are looked at: people wait longer than this for signals.
const LOOK_BELOW_EVERY: Duration = Duration::from_millis(200);

impl Waits {
    pub(super) fn new(root: &str, telling: Telling) -> Self {
        Self {
            root: root.to_owned(),
            telling,
            below: BTreeMap::new(),
            looked_at: Instant::now(),
            waiting: BTreeMap::new(),
            told: BTreeSet::new(),
        }
    }

    /// Takes an event of the run itself.
    pub(super) fn take(&mut self, event_type: &str, data: &str) {
        let root = self.root.clone();
        self.take_of(&root, event_type, data);
    }

    fn take_of(&mut self, run: &str, event_type: &str, data: &str) {
        let Some(kind) = Kind::of(event_type) else { return };
        let Some(Facts { token: Some(token), node: Some(node), signal, run: child, .. }) = Facts::read(data) else {
            return;
        };
        match (kind, signal, child) {
            (Kind::Waiting, Some(signal), _) => {
                let wait = Wait { node: node.to_owned(), signal: signal.to_owned() };
                self.waiting.insert((run.to_owned(), token), wait);
            }
            (Kind::ChildStarted, _, Some(child)) if self.below.len() < BELOW_MAX => {
                self.below.insert(child.to_owned(), 0);
            }
            (Kind::ChildEnded, _, Some(child)) => {
                self.below.remove(child);
                self.waiting.retain(|(run, _), _| run != child);
            }
            (Kind::Completed | Kind::Failed | Kind::Cancelled, _, _) => {
                self.waiting.remove(&(run.to_owned(), token));
            }
            (
                Kind::Created
                | Kind::Waiting
                | Kind::Dispatched
                | Kind::RetryScheduled
                | Kind::ChildStarted
                | Kind::ChildEnded,
                _,
                _,
            ) => {}
        }
    }

    /// What is to be said now that was not said before. Every event of the run itself so far was taken.
    pub(super) fn news(&mut self, engine: &Engine) -> Result<Vec<String>, StoreError> {
        if self.looked_at.elapsed() >= LOOK_BELOW_EVERY {
            self.looked_at = Instant::now();
            self.look_below(engine)?;
        }
        let mut news = Vec::new();
        for ((run, _), wait) in &self.waiting {
            let is_root = *run == self.root;
            if is_root && self.telling == Telling::Below || !self.told.insert(wait.clone()) {
                continue;
            }
            let Wait { node, signal } = wait;
            news.push(if is_root {
                format!(
                    "node `{node}` waits for the signal `{signal}`, which can be given with `--signal {signal}=JSON`"
                )
            } else {
                format!(
                    "node `{node}` of the run `{run}` below waits for the signal `{signal}`, which nobody can give here"
                )
            });
        }
        Ok(news)
    }

    fn look_below(&mut self, engine: &Engine) -> Result<(), StoreError> {
        let runs: Vec<(String, u64)> = self.below.iter().map(|(run, seen)| (run.clone(), *seen)).collect();
        for (run, seen) in runs {
            let Ok(actor) = ActorId::new(KIND, &run) else { continue };
            let events = engine.events(&actor, seen, limits::PAGE_ROWS_MAX)?;
            for event in &events {
                self.take_of(&run, &event.event_type, event.data.as_str());
            }
            if let (Some(last), Some(seen)) = (events.last(), self.below.get_mut(&run)) {
                *seen = last.sequence;
            }
        }
        Ok(())
    }
}
