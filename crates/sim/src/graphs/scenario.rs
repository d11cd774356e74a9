//! The scenario of one run: a client starts it and waits for its end, others signal it, hold it up or cancel it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use steadfast::Kinds;
use steadfast::commit::TaskStart;
use steadfast_core::definition::workflow::Work;
use steadfast_core::definition::{Definition, DefinitionKind};
use steadfast_core::expression::Template;
use steadfast_core::failure::Failure;
use steadfast_core::graph::protocol::{Command, Start, Tracing};
use steadfast_core::graph::{KIND, Run};
use steadfast_core::ids::ActorId;
use steadfast_core::json::Json;
use steadfast_core::turn::prefix_end;
use steadfast_store::Reader;

use super::faults::{Fault, Faulty};
use super::story::Story;
use super::wishes::Asked;
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

/// One run.
pub(super) struct OneRun {
    subject: Subject,
    seed: u64,
    fault: Fault,
    root: ActorId,
    planned: VecDeque<Command>,
    /// The histories of all runs of the tree, as far as they were read.
    tree: BTreeMap<ActorId, Story>,
}

impl OneRun {
    pub(super) fn new(subject: &Subject, seed: u64, meddling: Meddling, fault: Fault) -> Self {
        let root = ActorId::new(KIND, "simulated").expect("letters");
        let mut random = Random::new(seed ^ 0x00c1_1e47);
        let planned = planned(subject, meddling, &mut random);
        let tree = BTreeMap::from([(root.clone(), Story::default())]);
        Self { subject: subject.clone(), seed, fault, root, planned, tree }
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
                let is_signal = matches!(operation.wish.command, Command::Signal { .. });
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
                return Ok(Some(Asked { run: run.clone(), command: Command::Signal { name, payload } }));
            }
        }
        Ok(None)
    }

    fn look_at_tree(&mut self, reader: &dyn Reader) -> Result<(), String> {
        let mut to_read: Vec<ActorId> = self.tree.keys().cloned().collect();
        while let Some(run) = to_read.pop() {
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
        let wish = match seen.operations.first() {
            None => Some(Asked { run: self.root.clone(), command: self.start() }),
            // Whoever else asks before that could be told that there is no such run.
            Some(start) if start.answer.is_none() => None,
            Some(_) => {
                let is_unanswered = |operation: &Operation<Asked>| operation.answer.is_none();
                let mut pauses = seen.operations.iter().filter(|operation| operation.wish.command == Command::Pause);
                let is_pausing = pauses.any(is_unanswered);
                match self.planned.pop_front_if(|next| *next != Command::Resume || !is_pausing) {
                    Some(command) => Some(Asked { run: self.root.clone(), command }),
                    None if seen.weather == Weather::Calm || random.percent(30) => self.signal(seen)?,
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
        let ended =
            |operation: &Operation<Asked>| operation.wish.command == Command::Wait && operation.answer.is_some();
        self.planned.is_empty() && operations.iter().any(ended)
    }

    fn after_a_crash(&self, seen: &Seen<'_, Asked>) -> Result<(), String> {
        invariants::after_a_crash(&self.root, seen)
    }

    fn at_the_end(&self, seen: &Seen<'_, Asked>) -> Result<(), String> {
        invariants::at_the_end(&self.root, seen)
    }
}
