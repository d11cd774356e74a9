//! A run drawn as a tree: its nodes, its branches, the runs below it.
//!
//! Owns what is folded and what is left out, and says so. Never asks a server. Start reading at [`drawn`].

use std::collections::BTreeMap;

use steadfast_api::v1::runs::{ListedRun, Run, Token};

use super::show::Shown;
use super::word;
use crate::clock;
use crate::definitions::counted;
use crate::table::one_line;

/// A line, and those below it.
struct Branch {
    text: String,
    below: Vec<Branch>,
}

/// So many tokens of a node have a line each; more are counted.
const TOKENS_LISTED_MAX: usize = 4;

/// Of those that are counted, so many that failed or are under way have a line nevertheless.
const TOKENS_NAMED_MAX: usize = 3;

/// Lines altogether: a few screens.
const LINES_MAX: usize = 200;

const ERROR_CHARS_MAX: usize = 120;

/// The tree, a line for each part.
pub(super) fn drawn(shown: &Shown) -> String {
    let mut lines = Vec::new();
    draw(&tree(shown), "", "", &mut lines);
    let left_out = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    if left_out > 0 {
        lines.push(format!("… {} left out; `--json` has everything", counted(left_out, "line")));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn draw(branch: &Branch, own: &str, rest: &str, lines: &mut Vec<String>) {
    lines.push(format!("{own}{}", branch.text));
    for (number, below) in branch.below.iter().enumerate() {
        let (first, others) = if number + 1 == branch.below.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        draw(below, &format!("{rest}{first}"), &format!("{rest}{others}"), lines);
    }
}

fn tree(shown: &Shown) -> Branch {
    let mut below = Part::of(&shown.tokens).branches(&Part::default());
    if !shown.tokens_are_all {
        let text = format!("… only the first {} of {}", shown.tokens.len(), counted(shown.run.token_count, "token"));
        below.push(Branch { text, below: Vec::new() });
    }
    below.extend(shown.opened.iter().map(tree));
    below.extend(folded(&shown.children));
    if !shown.children_are_all {
        let root = &shown.run.root;
        let text = format!("… and earlier runs below; `steadfast runs list --root {root}` lists all of the tree");
        below.push(Branch { text, below: Vec::new() });
    }
    Branch { text: title(&shown.run), below }
}

fn title(run: &Run) -> String {
    let took = clock::took(&run.started_at, run.ended_at.as_deref());
    let error = run.error.as_ref().map(|error| format!("  {}", one_line(&error.message, ERROR_CHARS_MAX)));
    format!("{} ({})  {}  {took}{}", run.workflow, run.id, word(run.status), error.unwrap_or_default())
}

/// Runs that are not looked into, counted by workflow and status.
fn folded(children: &[ListedRun]) -> Vec<Branch> {
    let mut workflows: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for child in children {
        workflows.entry(&child.workflow).or_default().push(&child.status);
    }
    let line = |(workflow, statuses): (&str, Vec<&str>)| {
        let text = format!("… {} of {workflow}: {}", counted(statuses.len(), "more run"), counts(statuses));
        Branch { text, below: Vec::new() }
    };
    workflows.into_iter().map(line).collect()
}

/// `3 completed, 1 failed`.
fn counts<'a>(statuses: impl IntoIterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for status in statuses {
        *counts.entry(status).or_default() += 1;
    }
    counts.iter().map(|(status, count)| format!("{count} {}", status.replace('_', " "))).collect::<Vec<_>>().join(", ")
}

/// The tokens outside of all branches, or inside of one group of them.
#[derive(Default)]
struct Part<'a> {
    /// In the order in which the run came to them.
    items: Vec<Item<'a>>,
}

enum Item<'a> {
    Node { name: &'a str, tokens: Vec<&'a Token> },
    Group { name: &'a str, part: Part<'a> },
}

impl<'a> Part<'a> {
    fn of(tokens: &'a [Token]) -> Self {
        let mut whole = Self::default();
        for token in tokens {
            let mut part = &mut whole;
            // The first segment is the run itself.
            for segment in token.path.split('/').skip(1) {
                part = part.group(segment.rsplit_once(':').map_or(segment, |(group, _)| group));
            }
            part.add(token);
        }
        whole
    }

    fn group(&mut self, wanted: &'a str) -> &mut Self {
        let found = self.items.iter().position(|item| matches!(item, Item::Group { name, .. } if *name == wanted));
        let place = found.unwrap_or_else(|| {
            self.items.push(Item::Group { name: wanted, part: Self::default() });
            self.items.len() - 1
        });
        match &mut self.items[place] {
            Item::Group { part, .. } => part,
            Item::Node { .. } => unreachable!("a group was looked for"),
        }
    }

    fn add(&mut self, token: &'a Token) {
        for item in &mut self.items {
            if let Item::Node { name, tokens } = item
                && *name == token.node
            {
                tokens.push(token);
                return;
            }
        }
        self.items.push(Item::Node { name: &token.node, tokens: vec![token] });
    }

    /// Without what has arrived at a join that has fired: there the run goes on outside of the branches, at the same node.
    fn branches(&self, outside: &Part<'a>) -> Vec<Branch> {
        let branch = |item: &Item<'a>| match item {
            Item::Node { name, .. } if outside.has(name) => None,
            Item::Node { name, tokens } => Some(node(name, tokens)),
            Item::Group { name, part } => Some(Branch { text: format!("{name}:"), below: part.branches(self) }),
        };
        self.items.iter().filter_map(branch).collect()
    }

    fn has(&self, wanted: &str) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Node { name, .. } if *name == wanted))
    }
}

fn node(name: &str, tokens: &[&Token]) -> Branch {
    if let [only] = tokens {
        return Branch { text: format!("{name}  {}", state(only)), below: Vec::new() };
    }
    let statuses = tokens.iter().map(|token| &*token.status);
    let text = format!("{name}  ×{}: {}", tokens.len(), counts(statuses));
    let is_listed = tokens.len() <= TOKENS_LISTED_MAX;
    let is_named = |token: &&&Token| is_listed || !matches!(&*token.status, "completed" | "cancelled");
    let max = if is_listed { TOKENS_LISTED_MAX } else { TOKENS_NAMED_MAX };
    let line = |token: &&Token| Branch { text: format!("{}  {}", place(token), state(token)), below: Vec::new() };
    Branch { text, below: tokens.iter().filter(is_named).take(max).map(line).collect() }
}

/// Which branch: the numbers of its path.
fn place(token: &Token) -> String {
    let numbers = token.path.split('/').filter_map(|segment| segment.rsplit_once(':')).map(|(_, number)| number);
    let numbers: Vec<&str> = numbers.collect();
    if numbers.is_empty() { format!("#{}", token.id) } else { format!("[{}]", numbers.join(".")) }
}

fn state(token: &Token) -> String {
    let is_over = matches!(&*token.status, "completed" | "failed" | "timed_out" | "cancelled");
    let took = clock::took(&token.created_at, is_over.then_some(&*token.updated_at));
    let attempt = if token.attempt > 1 { format!("  attempt {}", token.attempt) } else { String::new() };
    format!("{}  {took}{attempt}", token.status.replace('_', " "))
}
