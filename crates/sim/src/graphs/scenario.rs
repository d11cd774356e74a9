//! The scenario of one run: a client starts it and waits for its end, others signal it, hold it up or cancel it; then it may be removed, and begun again under its id.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use steadfast::Kinds;
use steadfast::commit::TaskStart;
use steadfast::graph::{RunError, order_to_purge};
use steadfast_core::definition::workflow::Work;
use steadfast_core::definition::{Definition, DefinitionKind};
use steadfast_core::expression::Template;
use steadfast_core::failure::Failure;
use steadfast_core::graph::protocol::{Command, Start, Tracing};
use steadfast_core::graph::{KIND, Run};
use steadfast_core::ids::{ActorId, Sequence};
use steadfast_core::json::Json;
use steadfast_core::turn::prefix_end;
use steadfast_store::Reader;

use super::faults::{Fault, Faulty};
use super::invariants::Stage;
use super::story::Story;
use super::wishes::{Asked, What};
use super::{Subject, invariants, stand_ins};
use crate::clients::Operation;
use crate::disk::text;
use crate::random::Random;
use crate::scenario::{Scenario, Seen, Weather};

/// Where a run notes where each of its tokens waits for a signal.
const WAITS: &str = "waits/";

/// Signals looked for at once in one run.
const WAITS_AT_ONCE: usize = 20;

/// What else clients do to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meddling {
    /// Nothing.
    None,
    /// They hold it up, which changes nothing in the end.
    Pausing,
    /// They hold it up, and they may call it off.
    Cancelling,
}

/// What becomes of a run that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Afterwards {
    /// It stays.
    Stays,
    /// It is purged as soon as that is allowed.
    IsPurged,
    /// And another begins under its id.
    BeginsAgain,
}

impl Afterwards {
    /// That of the random workflow of `seed`.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        match Random::new(seed ^ 0x0009_0e5a).below(6) {
            0 => Self::IsPurged,
            1 => Self::BeginsAgain,
            _ => Self::Stays,
        }
    }
}

/// One run.
pub(super) struct OneRun {
    subject: Subject,
    seed: u64,
    fault: Fault,
    root: ActorId,
    planned: VecDeque<Command>,
    /// The histories of all runs of the tree, as far as they were read.
    tree: BTreeMap<ActorId, Story>,
    afterwards: Afterwards,
    /// All runs of the tree that was purged, and how they were listed.
    purged: BTreeMap<ActorId, Option<Sequence>>,
}

impl OneRun {
    pub(super) fn new(subject: &Subject, seed: u64, meddling: Meddling, fault: Fault) -> Self {
        let root = ActorId::new(KIND, "simulated").expect("letters");
        let mut random = Random::new(seed ^ 0x00c1_1e47);
        let planned = planned(subject, meddling, &mut random);
        let tree = BTreeMap::from([(root.clone(), Story::default())]);
        let (afterwards, purged) = (Afterwards::Stays, BTreeMap::new());
        Self { subject: subject.clone(), seed, fault, root, planned, tree, afterwards, purged }
    }

    pub(super) fn then(self, afterwards: Afterwards) -> Self {
        Self { afterwards, ..self }
    }

    fn start(&self) -> Command {
        let Subject { book, workflow, input, .. } = &self.subject;
        Command::Start(Start {
            workflow: workflow.clone(),
            version: super::Book::VERSION,
            pins: book.pins(),
            input: input.clone(),
            parent: None,
            // Decisions as events make a turn larger, and must change nothing else.
            tracing: if self.seed.is_multiple_of(4) { Tracing::On } else { Tracing::Off },
        })
    }

    /// A signal for a token that waits for one, unless one is on its way to that run.
    fn signal(&mut self, seen: &Seen<'_, Asked>) -> Result<Option<Asked>, String> {
        self.look_at_tree(seen.reader)?;
        // A run that was called off is not helped: it must end without.
        let given_up: BTreeSet<&str> = self.tree.values().flat_map(Story::given_up).collect();
        let going = |(run, story): &(&ActorId, &Story)| story.end.is_none() && !given_up.contains(run.name());
        for (run, _) in self.tree.iter().filter(going) {
            let is_on_its_way = seen.operations.iter().any(|operation| {
                let is_signal = matches!(operation.wish.command(), Some(Command::Signal { .. }));
                is_signal && operation.answer.is_none() && operation.wish.run == *run
            });
            if is_on_its_way {
                continue;
            }
            let end = prefix_end(WAITS);
            let from = Bound::Included(WAITS);
            let waits = seen.reader.scan(run, from, Bound::Excluded(&end), WAITS_AT_ONCE).map_err(text)?;
            if let Some((_, wait)) = waits.first() {
                // `wait/<name>/<since>/<token>`; a name has no slash in it.
                let wait: String = wait.decode().map_err(text)?;
                let name = wait.split('/').nth(1).ok_or("a wait has no name")?.to_owned();
                let payload = self.subject.payload(&name);
                return Ok(Some(Asked::told(run.clone(), Command::Signal { name, payload })));
            }
        }
        Ok(None)
    }

    /// What is wanted of a run that is over, once nobody wants anything else.
    fn afterwards(&mut self, seen: &Seen<'_, Asked>) -> Result<Option<Asked>, String> {
        let is_unanswered = |operation: &Operation<Asked>| operation.answer.is_none();
        if self.afterwards == Afterwards::Stays || seen.operations.iter().any(is_unanswered) {
            return Ok(None);
        }
        match invariants::stage(seen.operations) {
            Stage::Kept => {
                self.look_at_tree(seen.reader)?;
                let order = match order_to_purge(seen.reader, &self.root) {
                    Ok(order) => order.ok_or("a run that is over is not found")?,
                    Err(RunError::NotOver { .. }) => return Ok(None),
                    Err(error) => return Err(error.to_string()),
                };
                for run in self.tree.keys() {
                    self.purged.insert(run.clone(), number_of(seen.reader, run)?);
                }
                Ok(Some(Asked { run: self.root.clone(), what: What::Purged(order) }))
            }
            Stage::Purged if self.afterwards == Afterwards::BeginsAgain => {
                self.tree = BTreeMap::from([(self.root.clone(), Story::default())]);
                self.planned = VecDeque::from([Command::Wait]);
                Ok(Some(Asked::told(self.root.clone(), self.start())))
            }
            Stage::Purged | Stage::BegunAgain => Ok(None),
        }
    }

    fn look_at_tree(&mut self, reader: &dyn Reader) -> Result<(), String> {
        let mut to_read: Vec<ActorId> = self.tree.keys().cloned().collect();
        while let Some(run) = to_read.pop() {
            // One of the same name may not be gone yet; the next begins when it is.
            if let Some(before) = self.purged.get(&run)
                && number_of(reader, &run)?.is_none_or(|number| Some(number) == *before)
            {
                continue;
            }
            let story = self.tree.entry(run.clone()).or_default();
            story.read_on(reader, &run)?;
            let children: Vec<String> = story.children.keys().cloned().collect();
            for child in children {
                let child = ActorId::new(KIND, &child).map_err(text)?;
                if !self.tree.contains_key(&child) {
                    self.tree.insert(child.clone(), Story::default());
                    to_read.push(child);
                }
            }
        }
        Ok(())
    }
}

/// The number under which a run is listed.
fn number_of(reader: &dyn Reader, run: &ActorId) -> Result<Option<Sequence>, String> {
    Ok(reader.run(run).map_err(text)?.map(|row| row.number))
}

/// What clients do after the start, in this order.
fn planned(subject: &Subject, meddling: Meddling, random: &mut Random) -> VecDeque<Command> {
    let mut planned = VecDeque::from([Command::Wait]);
    for name in signals_of(subject) {
        if random.percent(40) {
            planned.push_back(Command::Signal { payload: subject.payload(&name), name });
        }
    }
    if meddling == Meddling::Cancelling && random.percent(12) {
        planned.push_back(Command::Cancel { reason: Some("simulated".to_owned()) });
    }
    // In any order; only what was held up goes on afterwards.
    for last in (1..planned.len()).rev() {
        planned.swap(last, random.below(last + 1));
    }
    if meddling != Meddling::None && random.percent(30) {
        let at = random.below(planned.len() + 1);
        planned.insert(at, Command::Pause);
        planned.push_back(Command::Resume);
    }
    planned
}

/// The signals that the run itself waits for, as far as their names are written out.
fn signals_of(subject: &Subject) -> Vec<String> {
    let found = subject.book.find(DefinitionKind::Workflow, &subject.workflow);
    let Some(Definition::Workflow(workflow)) = found.map(|definition| &**definition) else { return Vec::new() };
    let mut names: Vec<String> = workflow
        .nodes
        .iter()
        .filter_map(|node| match &node.work {
            Work::Wait(Template::Literal(name)) => name.as_str().map(str::to_owned),
            Work::Wait(_) | Work::Pass | Work::Task(_) | Work::Run(_) | Work::Workflow(_) | Work::Sleep(_) => None,
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

impl Scenario for OneRun {
    type Wish = Asked;

    fn kinds(&self) -> Kinds {
        let kind = Run::new(Arc::clone(&self.subject.book) as _);
        let mut kinds = Kinds::default();
        kinds.insert(KIND, Faulty { kind, fault: self.fault });
        kinds
    }

    fn wish(&mut self, seen: &Seen<'_, Asked>, random: &mut Random) -> Result<Option<Operation<Asked>>, String> {
        let number = seen.operations.len();
        let is_starting =
            seen.operations.iter().any(|operation| operation.wish.is_start() && operation.answer.is_none());
        let wish = match seen.operations.first() {
            None => Some(Asked::told(self.root.clone(), self.start())),
            // Whoever else asks before that could be told that there is no such run.
            Some(_) if is_starting => None,
            Some(_) => {
                let is_unanswered = |operation: &Operation<Asked>| operation.answer.is_none();
                let is_pause = |wish: &Asked| wish.command() == Some(&Command::Pause);
                let mut pauses = seen.operations.iter().filter(|operation| is_pause(&operation.wish));
                let is_pausing = pauses.any(is_unanswered);
                match self.planned.pop_front_if(|next| *next != Command::Resume || !is_pausing) {
                    Some(command) => Some(Asked::told(self.root.clone(), command)),
                    None if seen.weather == Weather::Calm || random.percent(30) => match self.afterwards(seen)? {
                        None if invariants::stage(seen.operations) != Stage::Purged => self.signal(seen)?,
                        wanted => wanted,
                    },
                    None => None,
                }
            }
        };
        Ok(wish.map(|wish| Operation::new(wish, number)))
    }

    fn outcome(&self, task: &TaskStart, reader: &dyn Reader) -> Result<Result<Json, Failure>, String> {
        stand_ins::outcome_of(&self.subject.book, self.seed, task, reader)
    }

    fn is_over(&self, operations: &[Operation<Asked>]) -> bool {
        let is_done = match self.afterwards {
            Afterwards::Stays => true,
            Afterwards::IsPurged => invariants::stage(operations) != Stage::Kept,
            Afterwards::BeginsAgain => invariants::stage(operations) == Stage::BegunAgain,
        };
        let waits = |operation: &&Operation<Asked>| operation.wish.is_wait();
        let has_ended = operations.iter().rfind(waits).is_some_and(|operation| operation.answer.is_some());
        self.planned.is_empty() && is_done && has_ended
    }

    fn after_a_crash(&self, seen: &Seen<'_, Asked>) -> Result<(), String> {
        invariants::after_a_crash(&self.root, seen)
    }

    fn at_the_end(&self, seen: &Seen<'_, Asked>) -> Result<(), String> {
        let stage = invariants::stage(seen.operations);
        if self.afterwards != Afterwards::Stays && stage == Stage::Kept {
            return Err(format!("{} is over, but cannot be purged", self.root));
        }
        invariants::at_the_end(&self.root, self.purged.keys(), seen)
    }
}
