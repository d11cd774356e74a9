//! Nodes: what a single step of a random workflow does.

use serde_json::{Value, json};

use super::{Around, Block, Draft, Failing, Failures, Field, Holds};

impl Draft<'_> {
    /// A node that does something.
    pub(super) fn step(&mut self, around: &Around) -> Block {
        match self.random.below(100) {
            0..=9 => self.pass(),
            10..=29 => {
                let value = self.number(around);
                self.writing(json!({ "run": { "value": format!("${{{value}}}") } }), "result", Holds::Number)
            }
            30..=49 => self.mock(around),
            50..=57 => self.object(around),
            58..=61 => self.list(around),
            62..=63 => self.artifact(around),
            64..=70 => self.sleep(),
            71..=77 => self.wait(),
            78..=85 => {
                let input = json!({ "n": format!("${{{}}}", self.number(around)) });
                self.writing(json!({ "task": "double", "input": input }), "result.n", Holds::Number)
            }
            86..=93 => self.child(around),
            _ if self.may_fail(around) => self.failing(),
            _ => self.mock(around),
        }
    }

    /// A node that does nothing.
    pub(super) fn pass(&mut self) -> Block {
        self.node(json!({}), Vec::new())
    }

    pub(super) fn node(&mut self, node: Value, fields: Vec<Field>) -> Block {
        let name = self.name("n");
        self.nodes.insert(name.clone(), node);
        self.nodes_left = self.nodes_left.saturating_sub(1);
        Block { entry: name.clone(), exit: name, fields }
    }

    /// A node that writes what `result` gives to a field of its own.
    pub(super) fn writing(&mut self, mut node: Value, result: &str, holds: Holds) -> Block {
        let name = self.name("f");
        node["output"] = json!({ format!("state.{name}"): format!("${{{result}}}") });
        self.node(node, vec![Field { name, holds }])
    }

    /// A mock that gives a number, maybe after some failures.
    fn mock(&mut self, around: &Around) -> Block {
        let mut mock = json!({ "value": format!("${{{}}}", self.number(around)) });
        let mut node = json!({});
        if self.random.percent(30) {
            mock["delay"] = "50ms".into();
        }
        if self.random.percent(40) {
            let times = self.random.between(1, 2);
            mock["fail"] = json!({ "times": times });
            node["retry"] = self.retry(times + 1);
        }
        node["run"] = json!({ "mock": mock });
        self.writing(node, "result", Holds::Number)
    }

    fn retry(&mut self, attempts: u64) -> Value {
        match self.random.below(3) {
            0 => json!({ "max_attempts": attempts, "delay": "0ms" }),
            1 => json!({ "max_attempts": attempts, "delay": "80ms", "backoff": "constant", "jitter": 0.5 }),
            _ => json!({ "max_attempts": attempts, "delay": "1s", "backoff": "exponential", "factor": 3 }),
        }
    }

    fn object(&mut self, around: &Around) -> Block {
        let number = self.number(around);
        let mut object = json!({ "all": format!("${{{number}}}") });
        let own = if around.depth > 0 { "${branch.index}" } else { "only" };
        object[self.name("k")] = own.into();
        self.writing(json!({ "run": { "value": object } }), "result", Holds::Object)
    }

    fn list(&mut self, around: &Around) -> Block {
        let number = self.number(around);
        let list = json!([format!("${{{number}}}"), self.random.between(0, 9)]);
        self.writing(json!({ "run": { "mock": { "value": list } } }), "result", Holds::List)
    }

    /// Hands over a blob, and writes to a place below a field and to the run's output.
    fn artifact(&mut self, around: &Around) -> Block {
        let name = self.name("a");
        let number = self.number(around);
        let value = json!({ "artifacts": { name.clone(): format!("${{{number}}}") }, "n": 1 });
        let mut node = json!({ "run": { "mock": { "value": value } } });
        node["output"] =
            json!({ format!("state.{name}.below.n"): "${result.n}", format!("output.{name}"): "${result.n}" });
        self.node(node, vec![Field { name, holds: Holds::Object }])
    }

    fn sleep(&mut self) -> Block {
        let duration = *self.random.pick(&["0ms", "20ms", "700ms", "1m", "${100 + 50}"]);
        self.node(json!({ "sleep": duration }), Vec::new())
    }

    fn wait(&mut self) -> Block {
        let signal = format!("signal-{}", self.random.between(0, 2));
        let mut node = json!({ "wait": { "signal": signal } });
        if self.is_free() && self.random.percent(50) {
            node["timeout"] = (*self.random.pick(&["10ms", "900ms", "20s"])).into();
            if self.random.percent(50) {
                node["retry"] = self.retry(2);
            }
        }
        self.writing(node, "result.n", Holds::Number)
    }

    fn child(&mut self, around: &Around) -> Block {
        let workflow = *self.random.pick(self.children);
        let depth = self.random.between(0, 2);
        let n = self.number(around);
        let input = json!({ "n": format!("${{{n}}}"), "items": [1, 2], "depth": depth });
        // A child that fails would be a second thing that does.
        if around.failures == Failures::Unwanted && workflow == "child" {
            return self.mock(around);
        }
        let mut node = json!({ "workflow": workflow, "input": input });
        if self.is_free() && self.random.percent(25) {
            node["timeout"] = (*self.random.pick(&["30ms", "1s", "20s"])).into();
        }
        if self.random.percent(25) {
            node["retry"] = self.retry(2);
        }
        self.writing(node, "result.n", Holds::Number)
    }

    /// A node that fails for good, and remembers that one does.
    fn failing(&mut self) -> Block {
        let mut node = self.failing_work();
        if self.random.percent(30) {
            node["retry"] = self.retry(2);
        }
        self.node(node, Vec::new())
    }

    /// Work that always fails.
    pub(super) fn failing_work(&mut self) -> Value {
        match self.random.below(3) {
            0 => json!({ "run": { "mock": { "fail": { "message": "as planned" } } } }),
            1 => json!({ "run": { "mock": { "fail": { "type": "not_found", "retryable": false } } } }),
            _ => json!({ "run": { "mock": { "delay": "5s" } }, "timeout": "1s" }),
        }
    }

    fn may_fail(&mut self, around: &Around) -> bool {
        match around.failures {
            Failures::Unwanted => false,
            Failures::Caught => true,
            Failures::Fatal if self.is_free() => self.random.percent(30),
            Failures::Fatal => {
                let may = self.failing == Failing::Nothing && self.random.percent(40);
                if may {
                    self.failing = Failing::Something;
                }
                may
            }
        }
    }

    /// An expression that gives a number.
    pub(super) fn number(&mut self, around: &Around) -> String {
        let literal = self.random.between(0, 5);
        let known: Vec<String> =
            around.fields.iter().filter(|field| field.holds == Holds::Number).map(Field::number).collect();
        match self.random.below(5) {
            0 | 1 if !known.is_empty() => format!("{} + {literal}", self.random.pick(&known)),
            2 if around.depth > 0 => format!("branch.index + {literal}"),
            3 => match &around.element {
                Some(element) => format!("{element} + {literal}"),
                None => format!("input.n + {literal}"),
            },
            _ => literal.to_string(),
        }
    }

    /// An expression that is true or not.
    pub(super) fn condition(&mut self, around: &Around) -> String {
        let number = self.number(around);
        match self.random.below(2) {
            0 => format!("({number}) % 2 == 0"),
            _ => format!("({number}) > {}", self.random.between(0, 4)),
        }
    }
}
