//! What a simulation is about: who asks for what, what tasks give, and what must be true.
//!
//! Owns the seam between the world, which knows when things happen and go wrong, and the scenarios: [`crate::actors`] and
//! [`crate::graphs`].

use std::fmt::Debug;

use steadfast::Kinds;
use steadfast::commit::{TaskStart, Waiter};
use steadfast::runner::Delivery;
use steadfast_core::failure::Failure;
use steadfast_core::ids::{ActorId, RequestId};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;
use steadfast_store::Reader;

use crate::clients::Operation;
use crate::random::Random;

/// Something to simulate.
pub(crate) trait Scenario {
    /// What its clients want.
    type Wish: Wish;

    /// The kinds of its actors.
    fn kinds(&self) -> Kinds;

    /// Something new that a client wants now; nothing when there is none, or none yet.
    fn wish(
        &mut self,
        seen: &Seen<'_, Self::Wish>,
        random: &mut Random,
    ) -> Result<Option<Operation<Self::Wish>>, String>;

    /// What a task gives: the same each time that it is run.
    fn outcome(&self, task: &TaskStart, reader: &dyn Reader) -> Result<Result<Json, Failure>, String>;

    /// Whether the storm has nothing more to blow at.
    fn is_over(&self, operations: &[Operation<Self::Wish>]) -> bool;

    /// What must hold at any moment.
    fn after_a_crash(&self, seen: &Seen<'_, Self::Wish>) -> Result<(), String>;

    /// What must hold when everything has come to its end.
    fn at_the_end(&self, seen: &Seen<'_, Self::Wish>) -> Result<(), String>;
}

/// Something that a client wants of an actor.
pub(crate) trait Wish: Debug + Clone {
    /// Whom it is asked of.
    fn actor(&self) -> &ActorId;

    /// How it is asked.
    fn delivery(&self, id: RequestId, waiter: Waiter) -> Delivery;

    /// Whether one client may have been given both answers.
    fn agree(&self, one: &Json, other: &Json) -> bool {
        one == other
    }
}

/// What can be seen from outside.
pub(crate) struct Seen<'w, W> {
    pub(crate) operations: &'w [Operation<W>],
    /// What is on disk.
    pub(crate) reader: &'w dyn Reader,
    pub(crate) now: Timestamp,
    pub(crate) weather: Weather,
}

/// Whether things go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weather {
    /// They do.
    Stormy,
    /// No more. Whatever is asked for now is what everything else waits for.
    Calm,
}
