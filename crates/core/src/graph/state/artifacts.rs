//! Artifacts: named blobs that tasks hand over with their results.
//!
//! Staged while the run goes on, committed when it completes, dropped otherwise.

use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Rows;
use crate::expression::Value;
use crate::graph::token::TokenId;
use crate::limits;
use crate::time::Timestamp;
use crate::turn::{TurnError, prefix_end};

/// Where artifacts are.
pub(in crate::graph) const ARTIFACTS: &str = "artifact/";

/// Their names alone: a run that ends needs them, and not what may be megabytes each.
const NAMES: &str = "artifact.name/";

/// An artifact. Whether it is committed follows from how the run ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::graph) struct Artifact {
    pub(in crate::graph) node: Arc<str>,
    pub(in crate::graph) token: TokenId,
    pub(in crate::graph) at: Timestamp,
    pub(in crate::graph) content: Value,
}

/// Whether an artifact is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactStatus {
    /// The run goes on.
    Staged,
    /// The run has completed.
    Committed,
}

impl Rows<'_, '_> {
    /// Stages an artifact, in place of one of the same name. `false` when there are as many as may be.
    pub(in crate::graph) fn stage(&mut self, name: &str, artifact: &Artifact) -> Result<bool, TurnError> {
        let name_key = format!("{NAMES}{name}");
        if self.turn.get::<()>(&name_key)?.is_none() {
            if self.kept.progress.artifacts >= limits::ARTIFACTS_MAX as u64 {
                return Ok(false);
            }
            self.kept.progress.artifacts += 1;
            self.turn.put(&name_key, &())?;
        }
        self.turn.put(&format!("{ARTIFACTS}{name}"), artifact)?;
        Ok(true)
    }

    /// The names of all artifacts.
    pub(in crate::graph) fn artifact_names(&mut self) -> Result<Vec<String>, TurnError> {
        if self.kept.progress.artifacts == 0 {
            return Ok(Vec::new());
        }
        let end = prefix_end(NAMES);
        let names = self.turn.scan(Bound::Included(NAMES), Bound::Excluded(&end), limits::ARTIFACTS_MAX)?;
        Ok(names.into_iter().map(|(key, _)| key[NAMES.len()..].to_owned()).collect())
    }

    /// Drops every artifact.
    pub(in crate::graph) fn drop_artifacts(&mut self) -> Result<(), TurnError> {
        for name in self.artifact_names()? {
            self.turn.delete(&format!("{ARTIFACTS}{name}"));
            self.turn.delete(&format!("{NAMES}{name}"));
        }
        Ok(())
    }
}
