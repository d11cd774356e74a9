//! Blocks: sequences, choices, loops, error paths, fan-outs.

use serde_json::{Value, json};

use super::{Around, Block, Draft, Failures, Field, Holds, ORDER};

/// How deep groups are inside each other.
const DEPTH_MAX: usize = 3;

/// How often one node is entered, about, before nothing more is repeated or opened around it.
const COPIES_MAX: u64 = 24;

/// Branches of a group, about.
const BRANCHES: u64 = 3;

impl Draft<'_> {
    /// A few blocks one after the other.
    fn sequence(&mut self, around: &Around) -> Block {
        let count = self.random.between(1, 4);
        self.sequence_of(around, count)
    }

    /// So many blocks one after the other, or as many as there is room for.
    pub(super) fn sequence_of(&mut self, around: &Around, count: u64) -> Block {
        let mut all = self.block(around);
        let mut inside = around.clone();
        inside.fields.extend(all.fields.iter().cloned());
        for _ in 1..count {
            if self.nodes_left == 0 {
                break;
            }
            let next = self.block(&inside);
            self.connect(&all.exit, &next.entry, json!({}));
            inside.fields.extend(next.fields.iter().cloned());
            all.fields.extend(next.fields);
            all.exit = next.exit;
        }
        all
    }

    fn block(&mut self, around: &Around) -> Block {
        if self.nodes_left < 2 {
            return self.step(around);
        }
        let has_room = around.copies < COPIES_MAX;
        match self.random.below(100) {
            0..=29 => self.step(around),
            30..=41 => self.choice(around),
            42..=71 if has_room && around.depth < DEPTH_MAX => self.fan_out(around),
            72..=82 if has_room => self.repeat(around),
            83..=91 => self.error_path(around),
            92..=95 => self.aside(around),
            96 => self.gate(around),
            97 if has_room && self.is_free() => self.leak(around),
            _ => self.sequence(around),
        }
    }

    fn connect(&mut self, from: &str, to: &str, mut how: Value) {
        how["from"] = from.into();
        how["to"] = to.into();
        self.transitions.push(how);
    }

    /// One way or the other.
    fn choice(&mut self, around: &Around) -> Block {
        let begin = self.step(around);
        let mut inside = around.clone();
        inside.fields.extend(begin.fields.iter().cloned());
        let (one, other) = (self.sequence(&inside), self.sequence(&inside));
        let end = self.pass();
        let when = self.condition(&inside);
        let (first, second) = match self.random.below(3) {
            0 => (json!({ "when": when, "priority": 1 }), json!({ "priority": 2 })),
            // Both ways at once, where nobody minds: what follows is done twice.
            1 if self.is_free() => (json!({ "when": when }), json!({})),
            _ => (json!({ "when": when }), json!({ "when": format!("!({when})") })),
        };
        self.connect(&begin.exit, &one.entry, first);
        self.connect(&begin.exit, &other.entry, second);
        self.connect(&one.exit, &end.entry, json!({}));
        self.connect(&other.exit, &end.entry, json!({}));
        let fields = [begin.fields, one.fields, other.fields].concat();
        Block { entry: begin.entry, exit: end.exit, fields }
    }

    /// Several times.
    fn repeat(&mut self, around: &Around) -> Block {
        let count = Field { name: self.name("c"), holds: Holds::Number };
        let next = json!({
            "run": { "value": format!("${{{} + 1}}", count.number()) },
            "output": { format!("state.{}", count.name): "${result}" },
        });
        let begin = self.node(next, vec![count.clone()]);
        let times = self.random.between(1, 2);
        let mut inside = around.clone();
        inside.fields.push(count);
        inside.copies *= times + 1;
        let body = self.sequence(&inside);
        let end = self.pass();
        self.connect(&begin.exit, &body.entry, json!({}));
        self.connect(&body.exit, &begin.entry, json!({ "max_iterations": times, "priority": 1 }));
        self.connect(&body.exit, &end.entry, json!({ "priority": 2 }));
        Block { entry: begin.entry, exit: end.exit, fields: [begin.fields, body.fields].concat() }
    }

    /// Something fails, and something else is done about it.
    fn error_path(&mut self, around: &Around) -> Block {
        let mut work = self.failing_work();
        if self.random.percent(40) {
            // Every other time it is fine after all.
            let number = self.number(around);
            work = json!({ "run": { "mock": { "fail": { "times": format!("${{({number}) % 2}}") } } } });
        }
        let begin = self.node(work, Vec::new());
        let (when, holds) = match self.random.below(2) {
            0 => (json!({ "on": "error" }), Holds::Object),
            _ => (json!({ "on": "error", "when": "error.type != 'internal'" }), Holds::Object),
        };
        let told = json!({ "run": { "value": { "type": "${error.type}", "node": "${error.node}" } } });
        let handler = self.writing(told, "result", holds);
        let end = self.step(around);
        self.connect(&begin.exit, &handler.entry, when);
        self.connect(&begin.exit, &end.entry, json!({}));
        self.connect(&handler.exit, &end.entry, json!({}));
        Block { entry: begin.entry, exit: end.exit, fields: [handler.fields, end.fields].concat() }
    }

    /// Something that goes on beside the rest, and ends by itself.
    fn aside(&mut self, around: &Around) -> Block {
        let begin = self.pass();
        let end = self.pass();
        let mut inside = around.clone();
        if !self.is_free() {
            // What it saw of what others write meanwhile would depend on timing.
            (inside.failures, inside.fields) = (Failures::Unwanted, Vec::new());
        }
        let tail = self.step(&inside);
        let how = match self.random.below(3) {
            // A group that nobody joins.
            0 => json!({ "foreach": { "in": "[5, 6]" } }),
            1 => json!({ "spawn": 2 }),
            _ => json!({}),
        };
        self.connect(&begin.exit, &tail.entry, how);
        self.connect(&begin.exit, &end.entry, json!({}));
        // What it writes is nobody's business.
        Block { entry: begin.entry, exit: end.exit, fields: Vec::new() }
    }

    /// Branches that are never joined: what follows is done in each of them, and a join around them is reached from deeper inside.
    fn leak(&mut self, around: &Around) -> Block {
        let begin = self.step(around);
        let inside = Around { depth: around.depth + 1, copies: around.copies * BRANCHES, ..around.clone() };
        let branch = self.step(&inside);
        let (how, _) = self.opening(around);
        self.connect(&begin.exit, &branch.entry, how);
        Block { entry: begin.entry, exit: branch.exit, fields: [begin.fields, branch.fields].concat() }
    }

    /// It goes on only if.
    fn gate(&mut self, around: &Around) -> Block {
        let begin = self.step(around);
        let mut inside = around.clone();
        inside.fields.extend(begin.fields.iter().cloned());
        let when = self.condition(&inside);
        let end = self.pass();
        self.connect(&begin.exit, &end.entry, json!({ "when": when }));
        Block { entry: begin.entry, exit: end.exit, fields: begin.fields }
    }

    /// Many ways at once, and together again.
    fn fan_out(&mut self, around: &Around) -> Block {
        let begin = self.step(around);
        let group = self.name("g");
        let failures = if self.random.percent(50) { Failures::Caught } else { around.failures };
        let failures = if around.failures == Failures::Unwanted { Failures::Unwanted } else { failures };
        let mut outside = around.clone();
        outside.fields.extend(begin.fields.iter().cloned());
        let (depth, copies) = (around.depth + 1, around.copies * BRANCHES);
        let inside = Around { depth, copies, failures, ..outside.clone() };
        let index = Field { name: self.name("i"), holds: Holds::Number };
        let parts = if self.random.percent(30) { self.random.between(2, 3) } else { 1 };
        let mut written: Vec<Field> = Vec::new();
        let mut exits = Vec::new();
        for _ in 0..parts {
            let (mut how, element) =
                if parts == 1 || self.random.percent(20) { self.opening(&outside) } else { (json!({}), None) };
            how["group"] = group.clone().into();
            // An `item` of a group around this one is hidden by what is opened now.
            let inherited = outside.element.clone().filter(|name| name != "item");
            let branch = self.sequence(&Around { element: element.or(inherited), ..inside.clone() });
            // A node of its own: no loop inside the branch leads back to it.
            let mark =
                self.node(json!({ "output": { format!("state.{}", index.name): "${branch.index}" } }), Vec::new());
            self.connect(&begin.exit, &mark.entry, how);
            self.connect(&mark.exit, &branch.entry, json!({}));
            exits.push(branch.exit);
            written.extend(branch.fields);
        }
        let end = self.pass();
        let (join, merged) = self.join(&group, &index, written, failures);
        let again = self.is_free() && around.copies == 1 && self.random.percent(15);
        for exit in exits {
            if again {
                // The same group once more inside itself: its join must close the inner one.
                self.connect(&exit, &begin.entry, json!({ "max_iterations": 1, "priority": -1 }));
            }
            if self.random.percent(25) {
                self.connect(&exit, &end.entry, json!({ "join": join, "on": "error" }));
            }
            self.connect(&exit, &end.entry, json!({ "join": join }));
        }
        Block { entry: begin.entry, exit: end.exit, fields: [begin.fields, merged].concat() }
    }

    /// How a group is opened, and what its elements are called.
    fn opening(&mut self, around: &Around) -> (Value, Option<String>) {
        let element = self.name("e");
        let lists: Vec<&Field> = around.fields.iter().filter(|field| field.holds == Holds::List).collect();
        match self.random.below(8) {
            0 => (json!({ "foreach": { "in": "[]" } }), None),
            1 if !lists.is_empty() => {
                let name = &self.random.pick(&lists).name;
                (json!({ "foreach": { "in": format!("state.{name} == null ? [] : state.{name}") } }), None)
            }
            1 | 2 => (json!({ "foreach": { "in": "input.items", "as": element } }), Some(element)),
            3 => (json!({ "foreach": { "in": "[4, 2]", "as": element } }), Some(element)),
            4 => (json!({ "foreach": { "in": "[7, 8, 9]" } }), Some("item".to_owned())),
            5 => (json!({ "spawn": format!("({}) % 4", self.number(around)) }), None),
            _ => (json!({ "spawn": self.random.between(1, 4) }), None),
        }
    }

    /// A join, and the fields that it writes.
    fn join(&mut self, group: &str, index: &Field, written: Vec<Field>, failures: Failures) -> (Value, Vec<Field>) {
        let mut join = json!({ "group": group });
        match failures {
            Failures::Caught => join["on_failure"] = "continue".into(),
            Failures::Fatal | Failures::Unwanted => {
                if self.random.percent(30) {
                    join["on_failure"] = "fail".into();
                }
            }
        }
        if self.is_free() {
            match self.random.below(4) {
                0 => join["wait_for"] = "any".into(),
                1 => join["wait_for"] = self.random.between(1, 3).into(),
                2 => join["wait_for"] = "all".into(),
                _ => {}
            }
            if self.random.percent(35) {
                join["timeout"] = (*self.random.pick(&["30ms", "1s", "20s"])).into();
                join["on_timeout"] = (*self.random.pick(&["proceed", "proceed", "fail"])).into();
            }
        }
        let order = Field { name: self.name(ORDER), holds: Holds::Order };
        let in_order = |from: &str, strategy: &str| json!({ "from": format!("state.{from}"), "into": format!("state.{}", order.name), "strategy": strategy });
        let mut merges = vec![in_order(&index.name, "append")];
        let mut fields = vec![order.clone()];
        for field in written {
            if field.holds == Holds::Order || self.random.percent(60) {
                let (merge, into) = self.merge(&field);
                merges.push(merge);
                fields.push(into);
            }
        }
        join["merge"] = merges.into();
        (join, fields)
    }

    fn merge(&mut self, field: &Field) -> (Value, Field) {
        let (strategies, prefix): (&[(&str, Holds)], &str) = match field.holds {
            Holds::Number => (
                &[("append", Holds::List), ("collect", Holds::List), ("keyed", Holds::Object), ("last", Holds::Number)],
                "m",
            ),
            Holds::Object => (
                &[
                    ("merge", Holds::Object),
                    ("merge", Holds::Object),
                    ("keyed", Holds::Object),
                    ("collect", Holds::List),
                ],
                "m",
            ),
            Holds::List => (
                &[("append", Holds::List), ("collect", Holds::List), ("last", Holds::List), ("keyed", Holds::Object)],
                "m",
            ),
            Holds::Order => (&[("collect", Holds::Order)], ORDER),
        };
        let (strategy, holds) = *self.random.pick(strategies);
        let into = Field { name: self.name(prefix), holds };
        let mut merge = json!({
            "from": format!("state.{}", field.name),
            "into": format!("state.{}", into.name),
            "strategy": strategy,
        });
        if strategy == "keyed" && self.random.percent(50) {
            merge["key"] = "'branch ' + string(branch.index)".into();
        }
        (merge, into)
    }
}
