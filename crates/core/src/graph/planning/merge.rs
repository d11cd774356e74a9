//! Merging: what branches gave becomes one value, in the order of the branches.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::definition::workflow::{Merge, Strategy};
use crate::expression::Value;
use crate::failure::{Failure, FailureKind};

/// What one branch brings to one merge.
#[derive(Debug, Clone, PartialEq)]
pub struct Brought {
    /// Its index.
    pub index: u64,
    /// What `from` gave.
    pub value: Value,
    /// What `key` gave.
    pub key: Option<Arc<str>>,
}

/// One value of all. `brought` is in the order of the branches.
pub fn merge(merge: &Merge, brought: Vec<Brought>) -> Result<Value, Failure> {
    Ok(match &merge.strategy {
        Strategy::Append => append(brought),
        Strategy::Collect => Value::list(brought.into_iter().map(|branch| branch.value).collect()),
        Strategy::Merge => merge_objects(merge, brought)?,
        Strategy::Keyed(_) => Value::object(brought.into_iter().map(|branch| {
            let Brought { index, value, key } = branch;
            (key.unwrap_or_else(|| index.to_string().into()), value)
        })),
        Strategy::Last => brought.into_iter().next_back().map_or(Value::Null, |branch| branch.value),
    })
}

fn append(brought: Vec<Brought>) -> Value {
    let is_flattened = brought.iter().all(|branch| matches!(branch.value, Value::List(_)));
    let values = brought.into_iter().map(|branch| branch.value);
    if !is_flattened {
        return Value::list(values.collect());
    }
    let mut all = Vec::new();
    for value in values {
        if let Value::List(values) = value {
            all.extend(values.iter().cloned());
        }
    }
    Value::list(all)
}

fn merge_objects(merge: &Merge, brought: Vec<Brought>) -> Result<Value, Failure> {
    let mut all: BTreeMap<Arc<str>, Value> = BTreeMap::new();
    for Brought { index, value, .. } in brought {
        match value {
            Value::Object(fields) => all.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone()))),
            // A branch that wrote nothing there has nothing to add.
            Value::Null => {}
            Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::String(_) | Value::List(_) => {
                let message = format!(
                    "merging into `{}`: branch {index} gave {} for `{}`, the strategy `merge` needs objects",
                    merge.into,
                    value.type_name(),
                    merge.from.text()
                );
                return Err(Failure::last(FailureKind::Expression, &message));
            }
        }
    }
    Ok(Value::object(all))
}
