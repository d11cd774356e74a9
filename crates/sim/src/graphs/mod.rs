//! Workflows under simulation: random ones, and those of a user.
//!
//! Owns the scenario of one run with all that it starts (`scenario`), what stands in for the outside (`stand_ins`), random workflows
//! (`generate`), what must be true of every run (`invariants`, `story`) and the faults that show that this is looked at (`faults`).
//! Start reading at [`simulate`].

mod book;
mod faults;
mod generate;
mod invariants;
mod scenario;
mod stand_ins;
mod story;
mod wishes;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use steadfast::mutation::Mutation;
use steadfast_core::graph::protocol::Outcome;
use steadfast_core::json::Json;

pub use book::Book;
pub use faults::Fault;
pub use generate::{Generated, Mode, generate};

use crate::plan::Plan;
use crate::{History, Survived, Violation};
pub use scenario::Afterwards;
use scenario::{Meddling, OneRun};

/// A workflow that is to be simulated.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Its definition, and those of all that it names.
    pub book: Arc<Book>,
    /// Its name.
    pub workflow: Arc<str>,
    /// What it is given.
    pub input: Json,
    /// What signals bring, by their names. One that is not here brings an empty object.
    pub signals: BTreeMap<String, Json>,
}

/// A run that went well, which is not to say that it completed.
#[derive(Debug)]
pub struct Ended {
    /// What it took.
    pub survived: Survived,
    /// How it ended.
    pub outcome: Outcome,
}

impl Subject {
    fn payload(&self, signal: &str) -> Json {
        let empty = || Json::from_stored("{}");
        self.signals.get(signal).cloned().unwrap_or_else(empty)
    }
}

/// Simulates the random workflow of `seed` with the faults of `plan`.
///
/// What does not depend on timing must end as it does when nothing goes wrong.
pub fn simulate(seed: u64, plan: Plan, fault: Fault) -> Result<Survived, Box<Violation>> {
    let Generated { text, mode, subject } = generate(seed);
    let described = |mut violation: Box<Violation>| {
        violation.what = format!("{}\nThe workflow, {mode:?}:\n{text}", violation.what);
        violation
    };
    let meddling = match mode {
        Mode::Confluent => Meddling::Pausing,
        Mode::Free => Meddling::Cancelling,
    };
    let one = OneRun::new(&subject, seed, meddling, fault).then(Afterwards::of_seed(seed));
    let (survived, outcomes) = run(one, seed, plan, fault.mutation()).map_err(described)?;
    if mode == Mode::Confluent {
        let expected = simulate_workflow(&subject, seed, Plan::still()).map_err(described)?.outcome;
        if let Some(other) = outcomes.iter().find(|outcome| without_ids(outcome) != without_ids(&expected)) {
            let what = format!("the run ended with {other:?}, undisturbed it ends with {expected:?}");
            return Err(described(Box::new(Violation { what, history: survived.history })));
        }
    }
    Ok(survived)
}

/// Simulates a run of a workflow with the faults of `plan`.
pub fn simulate_workflow(subject: &Subject, seed: u64, plan: Plan) -> Result<Ended, Box<Violation>> {
    let one = OneRun::new(subject, seed, Meddling::None, Fault::None);
    let (survived, mut outcomes) = run(one, seed, plan, Mutation::None)?;
    match outcomes.pop() {
        Some(outcome) => Ok(Ended { survived, outcome }),
        None => Err(violation("nobody was told how the run ended", survived.history)),
    }
}

/// Runs it. How it ended, each time that it was begun.
fn run(run: OneRun, seed: u64, plan: Plan, mutation: Mutation) -> Result<(Survived, Vec<Outcome>), Box<Violation>> {
    let world = crate::run(run, seed, plan, mutation)?;
    match invariants::outcomes(&world.operations) {
        Ok(outcomes) => Ok((world.survived(), outcomes)),
        Err(what) => Err(violation(&what, world.history)),
    }
}

/// An outcome without the ids of the runs that a failure names: they follow from the numbers of tokens, which are given in the order of events.
fn without_ids(outcome: &Outcome) -> Outcome {
    let mut outcome = outcome.clone();
    if let Outcome::Failed(failure) = &mut outcome
        && let Some(Ok(mut details)) = failure.details.as_ref().map(Json::decode::<Value>)
    {
        let mut inner = Some(&mut details);
        while let Some(level) = inner {
            level.as_object_mut().map(|level| level.remove("run"));
            inner = level.get_mut("cause");
        }
        failure.details = Json::encode(&details).ok();
    }
    outcome
}

fn violation(what: &str, history: History) -> Box<Violation> {
    Box::new(Violation { what: what.to_owned(), history })
}
