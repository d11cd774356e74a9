//! The catalog: every definition that was applied, in every version.
//!
//! Owns the actor `definitions:all`: which version an applied document becomes, and the rows it is kept in. A version never changes. Several definitions
//! are applied together or not at all. Never reads a definition's meaning: see [`crate::definition`].

use serde::{Deserialize, Serialize};

use crate::definition::DefinitionKind;
use crate::ids::ActorId;
use crate::json::Json;
use crate::time::Timestamp;
use crate::turn::{Actor, Input, Kind, Storage, Turn, TurnError};

/// The kind of the actor.
pub const KIND: &str = "definitions";

/// Applies these documents. The answer is an [`Applied`] for each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Apply {
    /// In the order of the file.
    pub documents: Vec<Document>,
}

/// A definition as a document, checked before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Its kind.
    pub kind: DefinitionKind,
    /// Its name.
    pub name: String,
    /// The document. Equal documents have equal texts.
    pub document: Json,
}

/// What became of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// Its kind.
    pub kind: DefinitionKind,
    /// Its name.
    pub name: String,
    /// The version it is.
    pub version: u32,
    /// Whether that is new.
    pub status: AppliedStatus,
}

/// Whether a version is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppliedStatus {
    /// The document differs from the newest version.
    Created,
    /// It is the newest version already.
    Unchanged,
}

/// A version on disk.
#[derive(Serialize, Deserialize)]
struct Stored {
    v: u32,
    document: Json,
    applied_at: Timestamp,
}

/// The version of the stored form.
const FORM: u32 = 1;

/// The actor.
#[must_use]
pub fn actor() -> ActorId {
    ActorId::new(KIND, "all").expect("the name is written in code")
}

/// Where the newest versions are: `newest/<kind>/<name>`.
pub const NEWEST: &str = "newest/";

/// Where the number of the newest version of a definition is.
#[must_use]
pub fn newest_key(kind: DefinitionKind, name: &str) -> String {
    format!("{NEWEST}{}/{name}", kind.name())
}

/// Where a version of a definition is.
#[must_use]
pub fn version_key(kind: DefinitionKind, name: &str, version: u32) -> String {
    format!("version/{}/{name}/{version:010}", kind.name())
}

/// The document of a stored version.
pub fn document(stored: &Json) -> Result<Json, TurnError> {
    let Stored { v, document, .. } = stored.decode()?;
    if v == FORM {
        Ok(document)
    } else {
        Err(TurnError::failed(format!("a definition is stored in form {v}, this version knows form {FORM}")))
    }
}

/// The kind `definitions`.
pub struct Catalog;

struct Loaded;

impl Kind for Catalog {
    fn load(&self, _id: &ActorId, _storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        Ok(Box::new(Loaded))
    }
}

impl Actor for Loaded {
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError> {
        match input {
            Input::Request(request) => {
                let Apply { documents } = request.body.decode()?;
                let applied: Result<Vec<_>, _> = documents.into_iter().map(|document| apply(turn, document)).collect();
                turn.reply(&request.id, &applied?)
            }
            Input::Message(_) | Input::Alarm { .. } | Input::TaskResult(_) | Input::DeadLetter(_) => {
                Err(TurnError::failed("the catalog takes requests only"))
            }
        }
    }
}

fn apply(turn: &mut Turn<'_>, new: Document) -> Result<Applied, TurnError> {
    let Document { kind, name, document } = new;
    let newest: Option<u32> = turn.get(&newest_key(kind, &name))?;
    if let Some(version) = newest {
        let stored = Storage::get(turn, &version_key(kind, &name, version))?;
        if stored.is_some_and(|stored| self::document(&stored).is_ok_and(|known| known == document)) {
            return Ok(Applied { kind, name, version, status: AppliedStatus::Unchanged });
        }
    }
    let version = newest.unwrap_or(0) + 1;
    let stored = Stored { v: FORM, document, applied_at: turn.now() };
    turn.put(&version_key(kind, &name, version), &stored)?;
    turn.put(&newest_key(kind, &name), &version)?;
    turn.emit("definition.applied", &serde_json::json!({ "kind": kind, "name": name, "version": version }))?;
    Ok(Applied { kind, name, version, status: AppliedStatus::Created })
}
