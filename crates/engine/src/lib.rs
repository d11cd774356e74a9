//! Durable actors in one process.
//!
//! Owns the running of actors: turns, group commit, the output gate, alarms, retries, dead letters, tasks and recovery. What an actor
//! *does* is a pure function in [`core`]; where its rows lie is in [`store`]. Serves no HTTP: requests go out in [`effects`] and [`traces`]. Start reading at [`Engine`], then
//! [`runner`] and [`commit`].
//!
//! The modules [`runner`], [`commit`], [`tasks`] and [`mutation`] are public because the simulator drives them step by step, without threads and
//! without a clock. Programs use [`Engine`].

pub mod commit;
mod dead_letters;
pub mod effects;
mod engine;
mod engine_message;
pub mod graph;
mod kinds;
mod load;
mod log;
mod metrics;
pub mod mutation;
mod readers;
pub mod runner;
mod settings;
pub mod tasks;
mod threads;
pub mod traces;
mod watch;
pub mod workers;

pub use steadfast_core as core;
pub use steadfast_store as store;

pub use commit::{Answer, Health, RequestError};
pub use dead_letters::{DeadLetterId, NotADeadLetterId, StoredDeadLetter};
pub use engine::{Builder, Engine, StartError};
pub use engine_message::{Below, RemovalOrder};
pub use kinds::Kinds;
pub use load::{Load, Spread};
pub use metrics::Metrics;
pub use settings::Settings;
pub use tasks::{Executor, Function, NotDone, ParkedTask, Task, TaskFuture};
pub use threads::{runner_of, shards_of};
pub use watch::{Watched, Watching};
pub use workers::Workers;

/// The documents' Rust, run as tests.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/actors.md")]
    struct Actors;

    #[doc = include_str!("../../../docs/graphs.md")]
    struct Graphs;

    #[doc = include_str!("../../../docs/effects.md")]
    struct Effects;
}
