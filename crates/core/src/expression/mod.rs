//! Expressions: CEL over values, and values with expressions inside.
//!
//! Owns what `${…}` means, what a missing field reads as, and what an expression may see. Never touches storage: whoever evaluates
//! asks [`Expression::reads`] what is needed and brings it in a [`Scope`].

mod compile;
mod encoding;
mod evaluate;
mod functions;
mod nearest;
mod operations;
mod program;
mod reads;
mod run;
mod scope;
mod template;
mod tokens;
mod value;

pub use evaluate::{EvaluationError, Expression, ParseError};
pub(crate) use nearest::closest;
pub use reads::{Fields, Reads};
pub use scope::Scope;
pub use template::{Part, Rendered, SecretPart, SecretPlace, Template, TemplateError};
pub(crate) use value::push_pointer_step;
pub use value::{NotAnObject, Value};

#[cfg(test)]
mod samples {
    //! Any small values, for property tests.

    use proptest::prelude::*;

    use super::Value;

    pub(super) fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-5_i64..5).prop_map(Value::from),
            any::<f64>().prop_filter("JSON knows it", |number| number.is_finite()).prop_map(Value::from),
            "[a-c$~/{}ä]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[a-c/~]{0,2}", inner), 0..4).prop_map(Value::object),
            ]
        })
    }
}
