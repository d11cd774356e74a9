//! The functions of expressions.
//!
//! Owns which there are and what they do: those of CEL's standard that make sense over JSON, and a few of its string library.
//! None reads a clock, a random number or anything else that is not an argument. Start reading at [`Function::call`].

use std::ops::RangeInclusive;

use regex::{Regex, RegexBuilder};

use super::Value;
use super::nearest::closest;
use super::operations::{self, Budget, Trouble};
use super::program::Operator;
use crate::limits;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    Contains,
    StartsWith,
    EndsWith,
    Matches,
    String,
    Int,
    Double,
    Bool,
    Dyn,
    Min,
    Max,
    LowerAscii,
    UpperAscii,
    Trim,
    Split,
    Join,
    Replace,
}

/// Each with its name and what it is written like.
const FUNCTIONS: [(&str, Function, &str); 19] = [
    ("size", Function::Size, "`size(x)`"),
    ("contains", Function::Contains, "`text.contains(part)`"),
    ("startsWith", Function::StartsWith, "`text.startsWith(part)`"),
    ("endsWith", Function::EndsWith, "`text.endsWith(part)`"),
    ("matches", Function::Matches, "`text.matches(pattern)`"),
    ("string", Function::String, "`string(x)`"),
    ("int", Function::Int, "`int(x)`"),
    ("uint", Function::Int, "`uint(x)`"),
    ("double", Function::Double, "`double(x)`"),
    ("bool", Function::Bool, "`bool(x)`"),
    ("dyn", Function::Dyn, "`dyn(x)`"),
    ("min", Function::Min, "`min(a, b)` or `min(list)`"),
    ("max", Function::Max, "`max(a, b)` or `max(list)`"),
    ("lowerAscii", Function::LowerAscii, "`text.lowerAscii()`"),
    ("upperAscii", Function::UpperAscii, "`text.upperAscii()`"),
    ("trim", Function::Trim, "`text.trim()`"),
    ("split", Function::Split, "`text.split(separator)`"),
    ("join", Function::Join, "`list.join(separator)`"),
    ("replace", Function::Replace, "`text.replace(old, new)`"),
];

/// What the parser takes for a macro when it is written as it should be.
const MACROS: [(&str, &str); 7] = [
    ("has", "`has(state.name)`"),
    ("all", "`list.all(x, x > 1)`"),
    ("exists", "`list.exists(x, x > 1)`"),
    ("exists_one", "`list.exists_one(x, x > 1)`"),
    ("existsOne", "`list.existsOne(x, x > 1)`"),
    ("map", "`list.map(x, x + 1)`"),
    ("filter", "`list.filter(x, x > 1)`"),
];

impl Function {
    pub(super) fn named(name: &str) -> Option<Self> {
        FUNCTIONS.iter().find(|(known, _, _)| *known == name).map(|(_, function, _)| *function)
    }

    /// How many arguments, the one before the dot included.
    pub(super) fn takes(self) -> RangeInclusive<usize> {
        match self {
            Self::Size | Self::String | Self::Int | Self::Double | Self::Bool | Self::Dyn => 1..=1,
            Self::LowerAscii | Self::UpperAscii | Self::Trim => 1..=1,
            Self::Contains | Self::StartsWith | Self::EndsWith | Self::Matches | Self::Split => 2..=2,
            Self::Join => 1..=2,
            Self::Replace => 3..=3,
            Self::Min | Self::Max => 1..=usize::MAX,
        }
    }

    fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|(_, function, _)| *function == self).map_or("", |(name, _, _)| name)
    }

    pub(super) fn usage(self) -> String {
        let usage = FUNCTIONS.iter().find(|(_, function, _)| *function == self).map_or("", |(_, _, usage)| usage);
        format!("wrong number of arguments, it is written {usage}")
    }

    /// Its value. The number of arguments was checked when the expression was parsed.
    pub(super) fn call(self, arguments: &[Value], budget: &mut Budget) -> Result<Value, Trouble> {
        for argument in arguments {
            budget.charge_text(argument)?;
        }
        match (self, arguments) {
            (Self::Dyn, [value]) => Ok(value.clone()),
            (Self::Size, [value]) => size(value),
            (Self::String, [value]) => string(value),
            (Self::Int, [value]) => int(value),
            (Self::Double, [value]) => double(value),
            (Self::Bool, [value]) => boolean(value),
            (Self::Contains, [list @ Value::List(_), item]) => operations::binary(Operator::In, item, list, budget),
            (Self::Min, [Value::List(items)]) => extreme(self, items, Operator::Less, budget),
            (Self::Max, [Value::List(items)]) => extreme(self, items, Operator::Greater, budget),
            (Self::Min, items) => extreme(self, items, Operator::Less, budget),
            (Self::Max, items) => extreme(self, items, Operator::Greater, budget),
            (Self::Join, [list]) => join(list, "", budget),
            (Self::Join, [list, Value::String(separator)]) => join(list, separator, budget),
            (_, arguments) => self.over_texts(arguments, budget),
        }
    }

    fn over_texts(self, arguments: &[Value], budget: &mut Budget) -> Result<Value, Trouble> {
        let mut texts = [""; 3];
        for (text, argument) in texts.iter_mut().zip(arguments) {
            *text = argument.as_str().ok_or_else(|| self.trouble(arguments))?;
        }
        let [text, part, new] = texts;
        match self {
            Self::Contains => Ok(text.contains(part).into()),
            Self::StartsWith => Ok(text.starts_with(part).into()),
            Self::EndsWith => Ok(text.ends_with(part).into()),
            Self::LowerAscii => Ok(text.to_ascii_lowercase().into()),
            Self::UpperAscii => Ok(text.to_ascii_uppercase().into()),
            Self::Trim => Ok(text.trim().into()),
            Self::Split => {
                // Each piece is a value of its own, which costs more than its bytes.
                budget.charge(text.len())?;
                Ok(Value::list(text.split(part).map(Value::from).collect()))
            }
            Self::Replace => {
                budget.charge((text.len() + 1).saturating_mul(new.len()) / 64)?;
                let replaced = text.replace(part, new);
                operations::fits(replaced.len())?;
                Ok(replaced.into())
            }
            Self::Size | Self::String | Self::Int | Self::Double | Self::Bool | Self::Dyn => {
                Err(self.trouble(arguments))
            }
            Self::Min | Self::Max | Self::Join | Self::Matches => Err(self.trouble(arguments)),
        }
    }

    fn trouble(self, arguments: &[Value]) -> Trouble {
        let found: Vec<&str> = arguments.iter().map(Value::type_name).collect();
        let usage = FUNCTIONS.iter().find(|(_, function, _)| *function == self).map_or("", |(_, _, usage)| usage);
        Trouble::over(arguments, format!("`{}` is written {usage}, found {}", self.name(), found.join(" and ")))
    }
}

/// Compiles a pattern within bounds: it may come from data.
pub(super) fn pattern(pattern: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(pattern)
        .size_limit(limits::PATTERN_BYTES_MAX)
        .dfa_size_limit(limits::PATTERN_BYTES_MAX)
        .build();
    built.map_err(|problem| {
        if matches!(problem, regex::Error::CompiledTooBig(_)) {
            return format!("the pattern needs more than {} bytes (`pattern_bytes_max`)", limits::PATTERN_BYTES_MAX);
        }
        // The last line of the message is the reason; those before it draw the place.
        let message = problem.to_string();
        let reason = message.lines().last().unwrap_or_default();
        format!("the pattern is not a regular expression: {}", reason.trim_start_matches("error: "))
    })
}

fn size(value: &Value) -> Result<Value, Trouble> {
    let size = match value {
        Value::String(text) => text.chars().count(),
        Value::List(items) => items.len(),
        Value::Object(fields) => fields.len(),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) => {
            return Err(Trouble::needs("`size`", "a string, a list or an object", value));
        }
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

fn string(value: &Value) -> Result<Value, Trouble> {
    match value {
        Value::String(_) => Ok(value.clone()),
        Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) => Ok(value.to_string().into()),
        Value::Null | Value::List(_) | Value::Object(_) => {
            Err(Trouble::needs("`string`", "a string, a number or true or false", value))
        }
    }
}

fn int(value: &Value) -> Result<Value, Trouble> {
    match value {
        Value::Int(_) | Value::UInt(_) => Ok(value.clone()),
        #[expect(clippy::cast_possible_truncation, reason = "the part behind the point is what is cut off")]
        Value::Float(number) => Value::whole(*number as i128).ok_or_else(|| Trouble::too_large("int")),
        Value::String(text) => match text.parse::<i128>().ok().and_then(Value::whole) {
            Some(number) => Ok(number),
            None => Err(Trouble::other(format!("{} is not a whole number", operations::shown(value)))),
        },
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Object(_) => {
            Err(Trouble::needs("`int`", "a number or a string", value))
        }
    }
}

fn double(value: &Value) -> Result<Value, Trouble> {
    if let Value::String(text) = value {
        return match text.parse::<f64>().ok().filter(|number| number.is_finite()) {
            Some(number) => Ok(number.into()),
            None => Err(Trouble::other(format!("{} is not a number", operations::shown(value)))),
        };
    }
    match value.as_f64() {
        Some(number) => Ok(number.into()),
        None => Err(Trouble::needs("`double`", "a number or a string", value)),
    }
}

fn boolean(value: &Value) -> Result<Value, Trouble> {
    match (value, value.as_str()) {
        (Value::Bool(_), _) => Ok(value.clone()),
        (_, Some("true")) => Ok(true.into()),
        (_, Some("false")) => Ok(false.into()),
        (_, Some(_)) => Err(Trouble::other(format!("{} is neither true nor false", operations::shown(value)))),
        (_, None) => Err(Trouble::needs("`bool`", "true, false or a string", value)),
    }
}

fn extreme(function: Function, items: &[Value], better: Operator, budget: &mut Budget) -> Result<Value, Trouble> {
    let Some((first, rest)) = items.split_first() else {
        return Err(Trouble::other(format!("`{}` of nothing has no value", function.name())));
    };
    let mut best = first;
    if rest.is_empty() && best.as_f64().is_none() {
        return Err(Trouble::needs(&format!("`{}`", function.name()), "numbers or a list", best));
    }
    for item in rest {
        if operations::binary(better, item, best, budget)? == Value::Bool(true) {
            best = item;
        }
    }
    Ok(best.clone())
}

fn join(list: &Value, separator: &str, budget: &mut Budget) -> Result<Value, Trouble> {
    let items = list.as_list().ok_or_else(|| Trouble::needs("`join`", "a list of strings", list))?;
    let mut joined = String::new();
    for (position, item) in items.iter().enumerate() {
        let text = item.as_str().ok_or_else(|| Trouble::needs("`join`", "a list of strings", item))?;
        budget.charge(1 + (separator.len() + text.len()) / 64)?;
        operations::fits(joined.len() + separator.len() + text.len())?;
        if position > 0 {
            joined.push_str(separator);
        }
        joined.push_str(text);
    }
    Ok(joined.into())
}

/// What to say about a name that is no function.
pub(super) fn unknown(name: &str) -> String {
    if let Some((_, usage)) = MACROS.iter().find(|(known, _)| *known == name) {
        return format!("`{name}` is written {usage}");
    }
    let known = FUNCTIONS.iter().map(|(known, _, _)| *known).chain(MACROS.iter().map(|(known, _)| *known));
    match closest(name, known) {
        Some(known) => format!("unknown function `{name}`, did you mean `{known}`?"),
        None => format!("unknown function `{name}`"),
    }
}
