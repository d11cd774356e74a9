//! A checkup on the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET`: look for what nothing will wake.
pub const DOCTOR: &str = "/v1/doctor";

/// What was found in a part of the runs that are not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Checkup {
    /// Runs with something that nothing will wake.
    pub items: Vec<Stuck>,
    /// How many runs were looked at.
    pub runs_checked: u64,
    /// How many things in them are woken by what: `alarm`, `task`, `message`, `run`, `signal`, `resume`.
    pub wakers: BTreeMap<String, u64>,
    /// Where the next part begins, if there is one.
    pub next_cursor: Option<String>,
}

/// A run with something that nothing will wake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Stuck {
    /// The run.
    pub id: String,
    /// Its workflow.
    pub workflow: String,
    /// What it is, as far as it is told.
    pub problems: Vec<StuckThing>,
    /// How much more there is.
    pub left_out: u64,
}

/// Something that nothing will wake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StuckThing {
    /// The token that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// The node where that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What is missing.
    pub missing: String,
}
