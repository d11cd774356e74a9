//! Planning: what happens next in a run.
//!
//! Pure functions: definition and state in, [`super::Decision`]s out. One file for each question. They never read storage; what an
//! expression may need is in the scope that they are given.

pub mod completion;
pub mod conditions;
pub mod fan_out;
pub mod merge;
pub mod routing;
pub mod synchronization;
