//! Faults built into the engine on purpose, to show that the simulator finds them.
//!
//! Owns their names. Only a build with the feature `mutations` can have one; in every other build the answer is a constant
//! and the code behind it is gone.

/// Something the engine does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mutation {
    /// Nothing.
    #[default]
    None,
    /// Answers leave before the turn is on disk; task starts are lost until the next boot.
    GateOpen,
    /// A consumed message stays on disk.
    MessageKept,
    /// A request's id is not remembered.
    RequestForgotten,
    /// An alarm is not written.
    AlarmUnwritten,
    /// A task's result is accepted although the task is settled.
    SettledTwice,
    /// After a failed commit the actors stay in memory as they are.
    RollbackSkipped,
    /// A cancelled task stays on disk.
    CancelledKept,
    /// Whoever runs tasks does not hear that one is cancelled.
    CancelUnheard,
    /// An alarm fires a second before its time.
    AlarmEarly,
    /// Those below an actor that is removed are not told.
    BelowForgotten,
    /// The order to remove an actor is not on disk any more after its first part.
    RemovalForgotten,
}

impl Mutation {
    /// Whether this engine does `what` wrong.
    #[cfg(feature = "mutations")]
    pub(crate) fn is(self, what: Self) -> bool {
        self == what
    }

    /// Whether this engine does `what` wrong: never.
    #[cfg(not(feature = "mutations"))]
    pub(crate) fn is(self, _what: Self) -> bool {
        false
    }
}
