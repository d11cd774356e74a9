//! What lines of the log have in common.

use steadfast_core::graph::KIND;
use steadfast_core::ids::ActorId;

/// The id of the run that an actor is, for the field `run` of a line; nothing for other actors.
pub(crate) fn run_of(actor: &ActorId) -> Option<&str> {
    (actor.kind() == KIND).then(|| actor.name())
}
