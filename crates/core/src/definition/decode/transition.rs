//! A transition: when it is taken, how many tokens it makes, and the fan-in that it is part of.

use std::sync::Arc;

use super::super::check::{Gap, TransitionPlaces, Unread};
use super::super::names;
use super::super::tree::{Content, Field, Tree};
use super::super::workflow::{Count, Join, Merge, OnFailure, OnTimeout, Outcome, Strategy, Transition, WaitFor};
use super::expressions::{Sight, is_reserved};
use super::node::Names;
use super::{Decoder, Object, Owner};
use crate::expression::Expression;
use crate::limits;

const FIELDS: [&str; 10] =
    ["from", "to", "when", "on", "priority", "foreach", "spawn", "group", "join", "max_iterations"];
const JOIN_FIELDS: [&str; 6] = ["group", "wait_for", "timeout", "on_timeout", "on_failure", "merge"];

impl Decoder<'_, '_> {
    /// One transition; a gap when it has no two ends.
    pub(super) fn transition(&mut self, tree: &Tree, names: &Names) -> Result<(Transition, TransitionPlaces), Gap> {
        let Some(object) = self.object(tree, "a transition", &FIELDS) else { return Err(Gap::anything()) };
        let mut unread = object.unknown(&FIELDS);
        let from = self.end(&object, "from", names);
        let to = self.end(&object, "to", names);
        let outcomes = [("success", Outcome::Success), ("error", Outcome::Error)];
        let on = self.noting(&mut unread, object.get("on"), |this, field| this.choice(field, &outcomes));
        let on = on.unwrap_or(Outcome::Success);
        let sight = match (on, from) {
            (Outcome::Success, Some(from)) if !unread.has_any_of(&["on"]) => Sight::after(Owner::Node(from.0)),
            // Where it is unknown which node is left, or how, so is whether there is an `error`.
            (Outcome::Success | Outcome::Error, _) => Sight::after(Owner::ErrorPath),
        };
        let when = self.noting(&mut unread, object.get("when"), |this, field| this.expression(field, sight));
        let priority = self.noting(&mut unread, object.get("priority"), Self::priority).unwrap_or(0);
        let max = u64::from(u32::MAX);
        let iterations_max =
            self.noting(&mut unread, object.get("max_iterations"), |this, field| this.whole(field, 1, max));
        self.exclude(&object, &mut unread);
        let count = self.count(&object, sight, &mut unread);
        let group = self.noting(&mut unread, object.get("group"), Self::name);
        let join = object.get("join").and_then(|field| self.join(field, sight, &mut unread));
        let (Some(from), Some(to)) = (from, to) else { return Err(Gap { from, to, on, group, unread }) };
        let places = TransitionPlaces {
            whole: object.get("from").map_or(tree.at, Field::value_at),
            group: object.get("group").map(Field::value_at),
            join: object.get("join").map(join_place),
            unread,
        };
        let iterations_max = iterations_max.and_then(|number| u32::try_from(number).ok());
        let transition =
            Transition { from, to, on, priority, when, count, group, join, iterations_max, closed_by: None };
        Ok((transition, places))
    }

    fn end(&mut self, object: &Object<'_>, name: &str, names: &Names) -> Option<super::super::workflow::NodeIndex> {
        match object.get(name) {
            Some(field) => self.node_named(field, names),
            None => {
                self.missing(object, name, "a transition leads `from` one node `to` another");
                None
            }
        }
    }

    fn priority(&mut self, field: &Field) -> Option<i64> {
        match field.value.content {
            Content::Int(number) => Some(number),
            Content::Null
            | Content::Bool(_)
            | Content::UInt(_)
            | Content::Float(_)
            | Content::Text(_)
            | Content::List(_)
            | Content::Object(_) => {
                self.wrong("priority", &field.value, "a whole number (smaller ones are looked at first)");
                None
            }
        }
    }

    /// Fields that contradict each other.
    fn exclude(&mut self, object: &Object<'_>, unread: &mut Unread) {
        if let (Some(_), Some(spawn)) = (object.get("foreach"), object.get("spawn")) {
            let hint = "`foreach` makes one token for each element, `spawn` a number of them".to_owned();
            self.problems.error(spawn.key_at, "`foreach` and `spawn` cannot be together", hint);
        }
        if object.get("join").is_none() {
            return;
        }
        for opening in object.those(&["group", "foreach", "spawn"]) {
            let message = format!("`join` and `{}` cannot be on one transition", opening.key);
            let hint = "it would close and open a group at once: put a node in between".to_owned();
            self.problems.error(opening.key_at, message, hint);
            // Which of the two goes is not known.
            unread.add("join");
        }
    }

    fn count(&mut self, object: &Object<'_>, sight: Sight, unread: &mut Unread) -> Count {
        if let Some(field) = object.get("foreach") {
            return self.noting(unread, Some(field), |this, field| this.foreach(field, sight)).unwrap_or(Count::One);
        }
        let spawn = self.noting(unread, object.get("spawn"), |this, field| this.spawn(field, sight));
        spawn.map_or(Count::One, Count::Spawn)
    }

    fn spawn(&mut self, field: &Field, sight: Sight) -> Option<Expression> {
        let number = match &field.value.content {
            Content::Text(_) => return self.expression(field, sight),
            Content::Int(number) => u64::try_from(*number).ok(),
            Content::UInt(number) => Some(*number),
            Content::Null | Content::Bool(_) | Content::Float(_) | Content::List(_) | Content::Object(_) => None,
        };
        let Some(number) = number else {
            let expected = "a whole number from 0, or an expression such as `input.count`";
            self.wrong("spawn", &field.value, expected);
            return None;
        };
        if number > limits::BRANCHES_MAX {
            let max = limits::BRANCHES_MAX;
            let message = format!("{number} branches are too many, the limit is {max} (`branches_max`)");
            self.problems.error(field.value_at(), message, None);
            return None;
        }
        Expression::parse(&number.to_string()).ok()
    }

    fn foreach(&mut self, field: &Field, sight: Sight) -> Option<Count> {
        if let Content::Text(text) = &field.value.content {
            let hint = format!("write `foreach: {{ in: {text}, as: element }}`");
            self.problems.error(field.value_at(), "`foreach` must be an object with `in` and `as`, found text", hint);
            return None;
        }
        let object = self.object(&field.value, "`foreach`", &["in", "as"])?;
        let items = match object.get("in") {
            Some(field) => self.expression(field, sight),
            None => {
                self.missing(&object, "in", "an expression that gives a list: `in: state.questions`");
                None
            }
        };
        let name = object.get("as").and_then(|field| self.element_name(field));
        Some(Count::Foreach { items: items?, name })
    }

    fn element_name(&mut self, field: &Field) -> Option<Arc<str>> {
        let name = self.text(field)?;
        if is_reserved(&name) {
            let hint = match &*name {
                "item" => "leave `as` out: an element is called `item` anyway".to_owned(),
                _ => format!("`{name}` means something else: choose another name"),
            };
            self.problems.error(field.value_at(), format!("an element cannot be called `{name}`"), hint);
            return None;
        }
        let can_be_read = names::is_identifier(&name)
            && Expression::parse(&name).is_ok_and(|expression| expression.reads().0.contains_key(&*name));
        if !can_be_read {
            let message = format!("an element cannot be called `{name}`");
            let hint = "a name has letters, digits and `_`, and is no word of the expression language".to_owned();
            self.problems.error(field.value_at(), message, hint);
            return None;
        }
        Some(name)
    }

    /// A join, or `join` among what is unread. Those of its fields that have errors are so too.
    fn join(&mut self, field: &Field, sight: Sight, unread: &mut Unread) -> Option<Join> {
        let found = self.join_parts(field, sight, unread);
        if found.is_none() {
            unread.add("join");
        }
        found
    }

    fn join_parts(&mut self, field: &Field, sight: Sight, unread: &mut Unread) -> Option<Join> {
        if let Content::Text(text) = &field.value.content {
            let hint = format!("write `join: {{ group: {text} }}`");
            self.problems.error(field.value_at(), "`join` must be an object with `group`, found text", hint);
            return None;
        }
        let object = self.object(&field.value, "a join", &JOIN_FIELDS)?;
        let group = match object.get("group") {
            Some(field) => self.name(field),
            None => {
                self.missing(&object, "group", "the group that it closes: `join: { group: answers }`");
                None
            }
        };
        if object.fields.iter().any(|field| !JOIN_FIELDS.contains(&&*field.key)) {
            // An unknown field may stand for any that is not there.
            JOIN_FIELDS[1..].iter().filter(|name| object.get(name).is_none()).for_each(|name| unread.add(*name));
        }
        let wait_for = self.noting(unread, object.get("wait_for"), Self::wait_for).unwrap_or(WaitFor::All);
        let timeout_ms = self.noting(unread, object.get("timeout"), Self::timeout_ms);
        let choices = [("fail", OnTimeout::Fail), ("proceed", OnTimeout::Proceed)];
        let on_timeout = self.noting(unread, object.get("on_timeout"), |this, field| this.choice(field, &choices));
        if let Some(field) = object.get("on_timeout").filter(|_| object.get("timeout").is_none()) {
            let hint = "give the join a `timeout`".to_owned();
            self.problems.warning(field.key_at, "`on_timeout` means nothing without `timeout`", hint);
        }
        let choices = [("fail", OnFailure::Fail), ("continue", OnFailure::Continue)];
        let on_failure = self.noting(unread, object.get("on_failure"), |this, field| this.choice(field, &choices));
        let merges = self.noting(unread, object.get("merge"), |this, field| Some(this.merges(field, sight)));
        Some(Join {
            group: group?,
            wait_for,
            timeout_ms,
            on_timeout: on_timeout.unwrap_or(OnTimeout::Fail),
            on_failure: on_failure.unwrap_or(OnFailure::Fail),
            merges: merges.unwrap_or_default(),
        })
    }

    fn wait_for(&mut self, field: &Field) -> Option<WaitFor> {
        match &field.value.content {
            Content::Text(text) if matches!(&**text, "all" | "any") => {
                self.choice(field, &[("all", WaitFor::All), ("any", WaitFor::Any)])
            }
            Content::Int(number) if *number >= 1 => u64::try_from(*number).ok().map(WaitFor::Count),
            Content::Null
            | Content::Bool(_)
            | Content::Int(_)
            | Content::UInt(_)
            | Content::Float(_)
            | Content::Text(_)
            | Content::List(_)
            | Content::Object(_) => {
                self.wrong("wait_for", &field.value, "`all`, `any` or a whole number from 1");
                None
            }
        }
    }

    fn merges(&mut self, field: &Field, sight: Sight) -> Vec<Merge> {
        match &field.value.content {
            Content::List(items) => items.iter().filter_map(|item| self.merge(item, sight)).collect(),
            Content::Null
            | Content::Bool(_)
            | Content::Int(_)
            | Content::UInt(_)
            | Content::Float(_)
            | Content::Text(_)
            | Content::Object(_) => self.merge(&field.value, sight).into_iter().collect(),
        }
    }

    fn merge(&mut self, tree: &Tree, sight: Sight) -> Option<Merge> {
        let object = self.object(tree, "a merge", &["from", "into", "strategy", "key"])?;
        let from = match object.get("from") {
            Some(field) => self.path(field, sight),
            None => {
                self.missing(&object, "from", "what is taken out of each branch: `from: state.answer`");
                None
            }
        };
        let into = match object.get("into") {
            Some(field) => self.text(field).and_then(|text| self.context_path(&text, field.value_at())),
            None => {
                self.missing(&object, "into", "where it goes: `into: state.answers`");
                None
            }
        };
        let key = object.get("key").map(|field| self.expression(field, sight));
        let words = ["append", "collect", "merge", "keyed", "last"].map(|word| (word, word));
        let strategy = match object.get("strategy") {
            Some(field) => self.choice(field, &words),
            None => Some("append"),
        };
        if let Some(field) = object.get("key").filter(|_| strategy.is_some_and(|word| word != "keyed")) {
            self.problems.error(field.key_at, "`key` means nothing without `strategy: keyed`", None);
        }
        let strategy = match strategy? {
            "append" => Strategy::Append,
            "collect" => Strategy::Collect,
            "merge" => Strategy::Merge,
            "last" => Strategy::Last,
            _ => Strategy::Keyed(key.map_or(Some(None), |key| key.map(Some))?),
        };
        Some(Merge { from: from?, into: into?, strategy })
    }

    /// `state.answer`: names with dots between, and nothing else.
    fn path(&mut self, field: &Field, sight: Sight) -> Option<Expression> {
        let text = self.text(field)?;
        if !text.split('.').all(names::is_identifier) {
            let hint =
                "a path in the branch, such as `state.answer`; compute the value in a node's `output`".to_owned();
            self.problems.error(field.value_at(), format!("`{text}` is not a path"), hint);
            return None;
        }
        self.expression(field, sight)
    }
}

/// Where a join names its group, which most problems of joins are about.
fn join_place(field: &Field) -> super::Place {
    let Content::Object(fields) = &field.value.content else { return field.key_at };
    fields.iter().find(|field| &*field.key == "group").map_or(field.key_at, Field::value_at)
}
