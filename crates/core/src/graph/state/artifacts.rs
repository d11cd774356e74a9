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

/// An artifact.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::graph) struct Artifact {
    pub(in crate::graph) status: ArtifactStatus,
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
        let key = format!("{ARTIFACTS}{name}");
        if self.turn.get::<Artifact>(&key)?.is_none() {
            if self.kept.progress.artifacts >= limits::ARTIFACTS_MAX as u64 {
                return Ok(false);
            }
            self.kept.progress.artifacts += 1;
        }
        self.turn.put(&key, artifact)?;
        Ok(true)
    }

    /// Commits every staged artifact. Their names.
    pub(in crate::graph) fn commit_artifacts(&mut self) -> Result<Vec<String>, TurnError> {
        let mut names = Vec::new();
        for (key, stored) in self.all_artifacts()? {
            let mut artifact: Artifact =
                stored.decode().map_err(|source| TurnError::Stored { key: key.to_string(), source })?;
            artifact.status = ArtifactStatus::Committed;
            self.turn.put(&key, &artifact)?;
            names.push(key[ARTIFACTS.len()..].to_owned());
        }
        Ok(names)
    }

    /// Drops every staged artifact.
    pub(in crate::graph) fn drop_artifacts(&mut self) -> Result<(), TurnError> {
        for (key, _) in self.all_artifacts()? {
            self.turn.delete(&key);
        }
        Ok(())
    }

    fn all_artifacts(&mut self) -> Result<crate::turn::Entries, TurnError> {
        if self.kept.progress.artifacts == 0 {
            return Ok(Vec::new());
        }
        let end = prefix_end(ARTIFACTS);
        self.turn.scan(Bound::Included(ARTIFACTS), Bound::Excluded(&end), limits::ARTIFACTS_MAX)
    }
}
