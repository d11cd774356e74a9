//! Small actors that show the runtime: used by the simulator, the benchmarks and the engine's tests.
//!
//! Each has one file; none is for users. The scenario in which the simulator sets them going is `scenario`, what its clients ask for is
//! `wishes`, and what must come of it `invariants`.

pub mod chain;
pub mod counter;
pub mod courier;
pub mod errand;
pub mod fragile;
mod invariants;
pub(crate) mod scenario;
pub mod ticker;
mod wishes;

use steadfast_core::ids::ActorId;

/// The actor `name` of `kind`, for names that are written in code.
///
/// # Panics
/// When the name is not allowed.
#[must_use]
pub fn actor(kind: &str, name: &str) -> ActorId {
    ActorId::new(kind, name).expect("the name is written in code")
}
