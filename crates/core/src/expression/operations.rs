//! What operators do to values, and what goes wrong.
//!
//! Owns arithmetic, comparison and equality over JSON values, and the budget that bounds an evaluation. Whole numbers and
//! others mix freely: `5 * 1.5` is `7.5`, `5 == 5.0` holds. Start reading at [`binary`].

use std::cmp::Ordering;
use std::io;

use super::Value;
use super::program::Operator;
use crate::json::too_large;
use crate::limits;

/// Why there is no value.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) message: String,
    pub(super) cause: Cause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// Something that was needed is `null` or not there.
    Missing,
    Other,
}

impl Trouble {
    pub(super) fn other(message: impl Into<String>) -> Self {
        Self { message: message.into(), cause: Cause::Other }
    }

    /// Trouble with these operands: if one of them is missing, that is why.
    pub(super) fn over(operands: &[Value], message: String) -> Self {
        Self::about(operands.iter().any(Value::is_null), message)
    }

    pub(super) fn needs(who: &str, what: &str, found: &Value) -> Self {
        Self::about(found.is_null(), format!("{who} needs {what}, found {}", found.type_name()))
    }

    pub(super) fn too_large(who: &str) -> Self {
        Self::other(format!("the result of `{who}` is too large for a number"))
    }

    fn about(missing: bool, message: String) -> Self {
        let cause = if missing { Cause::Missing } else { Cause::Other };
        Self { message, cause }
    }
}

/// The steps an evaluation may still take. Steps, not time: every replay must end at the same place.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Budget {
    pub(super) fn new() -> Self {
        Self(limits::EXPRESSION_STEPS_MAX)
    }

    pub(super) fn charge(&mut self, steps: usize) -> Result<(), Trouble> {
        match self.0.checked_sub(steps) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => {
                self.0 = 0;
                let limit = limits::EXPRESSION_STEPS_MAX;
                Err(Trouble::other(format!("it takes more than {limit} steps (`expression_steps_max`)")))
            }
        }
    }

    /// Charges for looking through a text.
    pub(super) fn charge_text(&mut self, value: &Value) -> Result<(), Trouble> {
        self.charge(value.as_str().map_or(0, |text| text.len() / 64))
    }
}

/// The value of `left operator right`.
pub(super) fn binary(operator: Operator, left: &Value, right: &Value, budget: &mut Budget) -> Result<Value, Trouble> {
    match operator {
        Operator::Equal => Ok(equal(left, right, budget)?.into()),
        Operator::NotEqual => Ok((!equal(left, right, budget)?).into()),
        Operator::In => contains(right, left, budget).map(Value::Bool),
        Operator::Less => Ok(compare(operator, left, right)?.is_lt().into()),
        Operator::LessOrEqual => Ok(compare(operator, left, right)?.is_le().into()),
        Operator::Greater => Ok(compare(operator, left, right)?.is_gt().into()),
        Operator::GreaterOrEqual => Ok(compare(operator, left, right)?.is_ge().into()),
        Operator::Add => add(left, right, budget),
        Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
            arithmetic(operator, left, right)
        }
    }
}

/// `-value`.
pub(super) fn negate(value: &Value) -> Result<Value, Trouble> {
    match (whole(value), value.as_f64()) {
        (Some(number), _) => Value::whole(-number).ok_or_else(|| Trouble::too_large("-")),
        (None, Some(number)) => Ok((-number).into()),
        (None, None) => Err(Trouble::needs("`-`", "a number", value)),
    }
}

fn add(left: &Value, right: &Value, budget: &mut Budget) -> Result<Value, Trouble> {
    match (left, right) {
        (Value::String(first), Value::String(second)) => {
            budget.charge((first.len() + second.len()) / 64)?;
            fits(first.len() + second.len())?;
            Ok([first.as_ref(), second.as_ref()].concat().into())
        }
        (Value::List(first), Value::List(second)) => {
            budget.charge(first.len() + second.len())?;
            Ok(Value::list(first.iter().chain(second.iter()).cloned().collect()))
        }
        _ => arithmetic(Operator::Add, left, right),
    }
}

/// A text of this length can be a value.
pub(super) fn fits(bytes: usize) -> Result<(), Trouble> {
    match bytes <= limits::VALUE_BYTES_MAX {
        true => Ok(()),
        false => Err(Trouble::other(too_large())),
    }
}

fn arithmetic(operator: Operator, left: &Value, right: &Value) -> Result<Value, Trouble> {
    if let (Some(left), Some(right)) = (whole(left), whole(right)) {
        return whole_arithmetic(operator, left, right);
    }
    let (Some(first), Some(second)) = (left.as_f64(), right.as_f64()) else {
        return Err(operands(operator, left, right));
    };
    let result = match operator {
        Operator::Add => first + second,
        Operator::Subtract => first - second,
        Operator::Multiply => first * second,
        Operator::Divide if second == 0.0 => return Err(Trouble::other("division by zero")),
        Operator::Divide => first / second,
        Operator::Remainder => {
            return Err(Trouble::other("`%` needs two whole numbers, `int(…)` cuts off what is behind the point"));
        }
        Operator::Equal | Operator::NotEqual | Operator::In => return Err(operands(operator, left, right)),
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            return Err(operands(operator, left, right));
        }
    };
    match result.is_finite() {
        true => Ok(result.into()),
        false => Err(Trouble::too_large(operator.sign())),
    }
}

/// In twice the width, where nothing overflows but a product, so that one test at the end is enough.
fn whole_arithmetic(operator: Operator, left: i128, right: i128) -> Result<Value, Trouble> {
    let result = match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide | Operator::Remainder if right == 0 => return Err(Trouble::other("division by zero")),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
        Operator::Equal | Operator::NotEqual | Operator::In => None,
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => None,
    };
    result.and_then(Value::whole).ok_or_else(|| Trouble::too_large(operator.sign()))
}

fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::UInt(number) => Some(i128::from(*number)),
        Value::Null | Value::Bool(_) | Value::Float(_) | Value::String(_) | Value::List(_) | Value::Object(_) => None,
    }
}

fn operands(operator: Operator, left: &Value, right: &Value) -> Trouble {
    let needed = match operator {
        Operator::Add => "two numbers, two strings or two lists",
        Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => "two numbers",
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            "two numbers, two strings or two truth values"
        }
        Operator::Equal | Operator::NotEqual | Operator::In => "two values",
    };
    let one_is_text = left.as_str().is_some() != right.as_str().is_some();
    let one_is_number = left.as_f64().is_some() != right.as_f64().is_some();
    let hint = match (one_is_text && one_is_number, operator) {
        (true, Operator::Add) => "; `string(…)` makes a string of a number",
        (true, _) => "; `int(…)` and `double(…)` make a number of a string",
        (false, _) => "",
    };
    let (found_left, found_right) = (left.type_name(), right.type_name());
    let message = format!("`{}` needs {needed}, found {found_left} and {found_right}{hint}", operator.sign());
    Trouble::about(left.is_null() || right.is_null(), message)
}

fn compare(operator: Operator, left: &Value, right: &Value) -> Result<Ordering, Trouble> {
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        _ => compare_numbers(left, right),
    };
    order.ok_or_else(|| operands(operator, left, right))
}

/// Exactly, also where a whole number has more digits than a float can hold.
fn compare_numbers(left: &Value, right: &Value) -> Option<Ordering> {
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        (Some(left), None) => compare_whole(left, right.as_f64()?),
        (None, Some(right)) => compare_whole(right, left.as_f64()?).map(Ordering::reverse),
        (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a float outside of the range of whole numbers saturates, which orders right"
)]
fn compare_whole(whole: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    let behind_the_point = 0.0.partial_cmp(&float.fract())?;
    Some(whole.cmp(&(float.trunc() as i128)).then(behind_the_point))
}

/// Equality never fails: what is of different kinds is different.
pub(super) fn equal(left: &Value, right: &Value, budget: &mut Budget) -> Result<bool, Trouble> {
    budget.charge(1)?;
    match (left, right) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
        (Value::String(left), Value::String(right)) => {
            budget.charge(left.len().min(right.len()) / 64)?;
            Ok(left == right)
        }
        (Value::List(left), Value::List(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for (left, right) in left.iter().zip(right.iter()) {
                if !equal(left, right, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Object(left), Value::Object(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for ((left_name, left), (right_name, right)) in left.iter().zip(right.iter()) {
                if left_name != right_name || !equal(left, right, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Ok(compare_numbers(left, right).is_some_and(Ordering::is_eq)),
    }
}

fn contains(container: &Value, item: &Value, budget: &mut Budget) -> Result<bool, Trouble> {
    match container {
        Value::List(items) => {
            for candidate in items.iter() {
                if equal(candidate, item, budget)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Object(fields) => Ok(item.as_str().is_some_and(|name| fields.contains_key(name))),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::String(_) => {
            Err(Trouble::needs("`in`", "a list or an object on its right", container))
        }
    }
}

/// A value as JSON, cut to what fits into a message; costs no more than what is shown of it.
pub(super) fn shown(value: &Value) -> String {
    let mut text = Shown(Vec::new());
    let whole = serde_json::to_writer(&mut text, value).is_ok();
    let shown = String::from_utf8_lossy(&text.0);
    match whole {
        true => shown.into_owned(),
        false => format!("{}…", shown.trim_end_matches(char::REPLACEMENT_CHARACTER)),
    }
}

struct Shown(Vec<u8>);

impl io::Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = limits::VALUE_SHOWN_BYTES_MAX - self.0.len();
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        match bytes.len() <= room {
            true => Ok(bytes.len()),
            false => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
