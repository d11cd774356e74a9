//! Definitions on the wire.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Value;
use crate::problem::DefinitionProblem;

/// `PUT`: apply. `GET`: list.
pub const DEFINITIONS: &str = "/v1/definitions";
/// `GET`: one, in its newest version or as `name@3`.
pub const DEFINITION: &str = "/v1/definitions/{kind}/{name}";

/// How definitions are applied.
#[derive(Debug, Clone, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ApplyParameters {
    /// Only says what would be done.
    #[serde(default)]
    pub dry_run: bool,
}

/// What became of each definition.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Applied {
    /// In the order of the body.
    pub items: Vec<AppliedDefinition>,
    /// What can be applied, but is hardly meant so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<DefinitionProblem>,
}

/// What became of a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AppliedDefinition {
    /// Its kind.
    #[schema(example = "workflow")]
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The version that it has now.
    pub version: u32,
    /// Whether that is new.
    pub status: AppliedStatus,
}

/// Whether a version is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AppliedStatus {
    /// It is.
    Created,
    /// It is as it was.
    Unchanged,
}

/// Which definitions are listed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParameters {
    /// Those of this kind: `workflow` or `task`.
    pub kind: Option<String>,
    /// At most so many: 1 to 1000; 50 if nothing is said.
    pub limit: Option<usize>,
    /// The `next_cursor` of the part before.
    pub cursor: Option<String>,
}

/// A part of the list of definitions.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Definitions {
    /// Each in its newest version, without its document.
    pub items: Vec<Definition>,
    /// Where the next part begins, if there is one.
    pub next_cursor: Option<String>,
}

/// A version of a definition.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Definition {
    /// Its kind.
    #[schema(example = "workflow")]
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Which version.
    pub version: u32,
    /// The document, where one definition is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub document: Option<Value>,
}
