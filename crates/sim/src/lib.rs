//! Deterministic simulation of the runtime: one seed, one history.
//!
//! Owns a world in which the engine's own state machines run without threads and without a clock. A seed decides the order of
//! everything: turns, deliveries, commits, crashes at any point of a commit, commits that fail or seem to, eviction between turns, repeated
//! and late results, jumps of the clock. A failing seed prints itself and replays exactly.
//!
//! What is asked in that world, what tasks give there and what must be true is a *scenario*. There are two: [`actors`], small ones that show
//! the runtime ([`simulate`]), and [`graphs`], runs of random workflows ([`graphs::simulate`]) or of a user's
//! ([`graphs::simulate_workflow`]). Start reading at `world`.

pub mod actors;
mod clients;
mod disk;
pub mod graphs;
mod history;
pub mod plan;
mod process;
mod random;
mod scenario;
mod store;
mod world;

pub use history::History;
pub use steadfast::mutation::Mutation;

use plan::Plan;
use scenario::Scenario;
use world::World;

/// A promise was broken.
#[derive(Debug)]
pub struct Violation {
    /// Which, and how.
    pub what: String,
    /// What led to it.
    pub history: History,
}

/// A simulation that went well.
#[derive(Debug, PartialEq, Eq)]
pub struct Survived {
    /// What happened.
    pub history: History,
    /// How many commits there were.
    pub commits: u64,
    /// How many times the process ended.
    pub crashes: u64,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.what)?;
        write!(f, "{}", self.history)
    }
}

/// Runs the simulation of `seed`, of the small actors, with the faults of `plan`.
///
/// A [`Mutation`] other than `None` has an effect only in a build with the feature `mutations`.
pub fn simulate(seed: u64, plan: Plan, mutation: Mutation) -> Result<Survived, Box<Violation>> {
    let actors = actors::scenario::Actors { operations_max: plan.operations };
    run(actors, seed, plan, mutation).map(|world| world.survived())
}

/// Runs a scenario. The world as it is at the end.
fn run<S: Scenario>(scenario: S, seed: u64, plan: Plan, mutation: Mutation) -> Result<World<S>, Box<Violation>> {
    let begun = World::new(scenario, seed, plan, mutation);
    let mut world = begun.map_err(|what| Box::new(Violation { what, history: History::default() }))?;
    match world.run() {
        Ok(()) => Ok(world),
        Err(what) => Err(Box::new(Violation { what, history: world.history })),
    }
}

/// Keeps the panics that a simulation makes on purpose off the screen. Others are shown as ever.
pub fn hide_intended_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let is_intended = panic.payload_as_str() == Some(actors::fragile::LAST_WORDS);
            if !is_intended {
                others(panic);
            }
        }));
    });
}
