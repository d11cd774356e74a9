//! What an expression sees.

use std::borrow::Cow;

use super::Value;

/// Variables by name. A variable that is not there reads as `null`.
#[derive(Debug, Clone, Default)]
pub struct Scope<'a>(Vec<(Cow<'a, str>, Value)>);

impl<'a> Scope<'a> {
    /// Sets a variable, in place of one of the same name.
    pub fn set(&mut self, name: impl Into<Cow<'a, str>>, value: Value) {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// A variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}
