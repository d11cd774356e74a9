//! Tasks: leaf work that leaves the process, and comes back as an input.
//!
//! Owns which task runs when ([`TaskQueue`]), what runs it ([`Executor`]), which cannot be run here ([`ParkedTask`]), which are lent to workers outside (`desk`) and the async edge between
//! them. A task gets here only after its dispatch is on disk, and its result counts only once, by the turn that settles it. Never runs a turn.

mod desk;
mod dispatcher;
mod executor;
mod parked;
mod queue;

pub use desk::{Ask, DeskError, LeaseView, Lent, OutsideTask};
pub(crate) use desk::{Desk, outside_queue};
pub(crate) use dispatcher::{Dispatcher, TaskEvent};
pub use executor::{Executor, Executors, Function, NotDone, Task, TaskFuture};
pub(crate) use parked::Parked;
pub use parked::ParkedTask;
pub use queue::TaskQueue;
