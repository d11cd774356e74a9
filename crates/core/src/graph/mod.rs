//! Graph workflows: a run as an actor, `run:<id>`.
//!
//! Three layers. [`planning`] decides: pure functions, state in, [`Decision`]s out. `state` keeps tokens, context, branches and artifacts
//! in the actor's storage. `dispatch` applies decisions and turns them into effects. [`Run`] is the actor; [`protocol`] is what it
//! can be told and asked. Never runs a task: executors do. Start reading at `actor.rs`, then [`planning::routing`].

mod actor;
pub mod decision;
mod dispatch;
pub mod doctor;
pub mod mock;
pub mod planning;
pub mod protocol;
pub mod source;
mod state;
pub mod task_input;
pub mod token;
pub mod view;
pub mod why;

pub use actor::{KIND, Run};
pub use decision::Decision;
pub use state::run::FACTS as RUN_KEY;
