//! Context on disk: `state.…` and `output.…` of a run, and what each branch sees differently.
//!
//! Every field is a row of its own, so that a write costs what it writes. A branch's own values lie over those of its parent.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::Rows;
use crate::definition::workflow::{ContextPath, ContextRoot};
use crate::expression::{Fields, Value};
use crate::graph::token::{GroupId, Place};
use crate::json::Json;
use crate::limits;
use crate::turn::{Storage, TurnError, prefix_end};

/// Where the context outside of all branches is.
pub(in crate::graph) const CONTEXT: &str = "context/";

/// Fields of the context outside of all branches that were read or written before.
#[derive(Default)]
pub(in crate::graph) struct ContextCache {
    fields: BTreeMap<String, (Option<Value>, usize)>,
    bytes: usize,
}

impl ContextCache {
    pub(in crate::graph) fn bytes(&self) -> usize {
        self.bytes
    }

    fn insert(&mut self, name: String, value: Option<Value>, bytes: usize) {
        self.bytes += bytes;
        if let Some((_, old)) = self.fields.insert(name, (value, bytes)) {
            self.bytes -= old;
        }
    }
}

fn context_key(name: &str) -> String {
    format!("{CONTEXT}{name}")
}

/// Where a branch's own value of a field is.
pub(super) fn overlay_key(group: GroupId, index: u64, name: &str) -> String {
    format!("overlay/{:010}/{index:010}/{name}", group.0)
}

impl Rows<'_, '_> {
    /// A field of the context, as the innermost branch of `lineage` sees it.
    pub(in crate::graph) fn field(&mut self, lineage: &[Place], name: &str) -> Result<Option<Value>, TurnError> {
        for place in lineage.iter().rev() {
            let held = self.held(*place)?;
            if let Some((value, _)) = held.unsaved.get(name) {
                return Ok(Some(value.clone()));
            }
            if held.branch.as_ref().is_some_and(|branch| branch.written.iter().any(|known| &**known == name)) {
                return self.turn.get(&overlay_key(place.group, place.index, name));
            }
        }
        if let Some((value, _)) = self.kept.context.fields.get(name) {
            return Ok(value.clone());
        }
        let key = context_key(name);
        let stored = Storage::get(self.turn, &key)?;
        let bytes = stored.as_ref().map_or(0, Json::bytes);
        let decoded = stored.map(|json| json.decode()).transpose();
        let value: Option<Value> = decoded.map_err(|source| TurnError::Stored { key, source })?;
        self.kept.context.insert(name.to_owned(), value.clone(), bytes);
        Ok(value)
    }

    /// The fields of `state` or `output` that are asked for and there, as an object.
    pub(in crate::graph) fn fields(
        &mut self,
        lineage: &[Place],
        root: ContextRoot,
        wanted: &Fields,
    ) -> Result<Value, TurnError> {
        let all;
        let names: &BTreeSet<String> = match wanted {
            Fields::Only(names) => names,
            Fields::All => {
                all = self.names_of(lineage, root)?;
                &all
            }
        };
        let mut found: Vec<(Arc<str>, Value)> = Vec::with_capacity(names.len());
        for name in names {
            if let Some(value) = self.field(lineage, &format!("{}.{name}", root.name()))? {
                found.push((name.as_str().into(), value));
            }
        }
        Ok(Value::object(found))
    }

    /// Writes a field, for the innermost branch of `lineage` only. `json` is the value's.
    pub(in crate::graph) fn write(
        &mut self,
        lineage: &[Place],
        name: &str,
        value: Value,
        json: Json,
    ) -> Result<(), TurnError> {
        let Some(place) = lineage.last().copied() else {
            let bytes = json.bytes();
            self.turn.put_json(&context_key(name), json)?;
            self.kept.context.insert(name.to_owned(), Some(value), bytes);
            return Ok(());
        };
        let branch = self.change_branch(Some(place))?;
        let known = branch.written.iter().find(|known| &***known == name).cloned();
        let is_first = known.is_none();
        let name = known.unwrap_or_else(|| name.into());
        if is_first {
            branch.written.push(name.clone());
        }
        self.unsaved_bytes += json.bytes();
        let held = self.held(place)?;
        if is_first {
            held.first_written.push(name.clone());
        }
        held.unsaved.insert(name, (value, json));
        Ok(())
    }

    /// A field as it is after `value` was put at `path`, or why that cannot be.
    pub(in crate::graph) fn with_value(
        &mut self,
        lineage: &[Place],
        path: &ContextPath,
        value: Value,
    ) -> Result<Result<Value, String>, TurnError> {
        if path.below.is_empty() {
            return Ok(Ok(value));
        }
        let whole = self.field(lineage, &path.stored_as())?.unwrap_or_default();
        Ok(whole.with(&path.below, value).map_err(|error| error.to_string()))
    }

    /// The names of all fields of `root` that a branch sees.
    fn names_of(&mut self, lineage: &[Place], root: ContextRoot) -> Result<BTreeSet<String>, TurnError> {
        let prefix = context_key(&format!("{}.", root.name()));
        let end = prefix_end(&prefix);
        let stored = self.turn.scan(Bound::Included(&prefix), Bound::Excluded(&end), limits::CONTEXT_FIELDS_MAX + 1)?;
        if stored.len() > limits::CONTEXT_FIELDS_MAX {
            let (what, limit) =
                ("number of fields of `state` or `output` that are read together", "CONTEXT_FIELDS_MAX");
            return Err(TurnError::Limit { what, found: stored.len(), max: limits::CONTEXT_FIELDS_MAX, limit });
        }
        let mut names: BTreeSet<String> = stored.iter().map(|(key, _)| key[prefix.len()..].to_owned()).collect();
        let prefix = format!("{}.", root.name());
        for place in lineage {
            if let Some(branch) = self.branch(Some(*place))? {
                names.extend(branch.written.iter().filter_map(|name| name.strip_prefix(&prefix).map(str::to_owned)));
            }
        }
        Ok(names)
    }
}
