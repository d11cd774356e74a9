//! Definitions: applied, read.

use reqwest::Method;
use steadfast_api::v1::definitions::{Applied, ApplyParameters, DEFINITION, DEFINITIONS, Definition};

use crate::connection::{Call, Client, Repeat, with_query};
use crate::error::Error;

/// Whether definitions are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applying {
    /// They are.
    Now,
    /// Only what would be done is told.
    DryRun,
}

impl Client {
    /// Applies definitions: YAML or JSON with any number of documents, all of them or none.
    pub async fn apply(&self, text: String, applying: Applying) -> Result<Applied, Error> {
        let parameters = ApplyParameters { dry_run: applying == Applying::DryRun };
        let url = with_query(self.path(DEFINITIONS, &[])?, &parameters)?;
        let body = Some(("application/yaml", text));
        // Not repeated: what the first try has created, the second would call unchanged.
        self.ask(Call { method: Method::PUT, body, repeat: Repeat::Refused, ..Call::get(url) }).await
    }

    /// A definition: `name` in its newest version, or `name@3`.
    pub async fn definition(&self, kind: &str, name: &str) -> Result<Definition, Error> {
        self.ask(Call::get(self.path(DEFINITION, &[kind, name])?)).await
    }
}
