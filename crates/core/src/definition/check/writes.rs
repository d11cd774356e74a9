//! Writes that are lost: made in a branch, merged by no join, and read by nobody there.
//!
//! Owns the warning. A branch may keep something for itself: what is read again inside it is not lost.

use std::collections::BTreeSet;

use super::super::problems::Problems;
use super::super::task::TaskRun;
use super::super::tree::Place;
use super::super::workflow::{ContextPath, Count, Node, Strategy, Transition, TransitionIndex, Work, Workflow};
use super::groups::Opening;
use super::{Places, gaps};
use crate::expression::{Fields, Reads};
use crate::limits;

/// Warns about writes inside each group.
pub(super) fn check(workflow: &Workflow, places: &Places, openings: &[Opening], problems: &mut Problems<'_>) {
    let mut opened_by = vec![None; workflow.transitions.len()];
    for (index, opening) in openings.iter().enumerate() {
        opening.transitions.iter().for_each(|transition| opened_by[transition.0] = Some(index));
    }
    let mut walker = Walker {
        workflow,
        openings,
        opened_by,
        is_known: known_nodes(workflow, places),
        node_reads: None,
        seen: vec![0; workflow.nodes.len()],
        walk: 0,
        steps: 0,
    };
    let mut told = BTreeSet::new();
    for opening in openings.iter().filter(|opening| is_known(opening, places)) {
        let lost = walker.lost(opening, places);
        if !lost.is_empty() {
            let read = walker.read_inside(opening);
            // Without knowing all that is read in the branches nothing can be said to be lost there.
            for write in lost.iter().filter(|write| read.as_ref().is_some_and(|read| !is_read(read, write.path))) {
                if told.insert(write.id) {
                    tell(workflow, places, opening, write, problems);
                }
            }
        }
        // Only a warning: in a graph too tangled to be looked at as a whole it is left out.
        if walker.steps > limits::WRITE_CHECK_STEPS_MAX {
            return;
        }
    }
}

/// Whether an opening is what was meant.
fn is_known(opening: &Opening, places: &Places) -> bool {
    let unread =
        |way: &TransitionIndex| places.transitions[way.0].unread.has_any_of(&["on", "priority", "group", "join"]);
    !opening.transitions.iter().any(unread)
}

/// For each node whether all is known that it and its transitions read and write.
fn known_nodes(workflow: &Workflow, places: &Places) -> Vec<bool> {
    let may_be_left = gaps::may_be_left(workflow, places);
    let is_known = |node: usize| {
        let no_reads = ["max_iterations", "wait_for", "timeout", "on_timeout", "on_failure"];
        let way_is_known = |way: &TransitionIndex| !places.transitions[way.0].unread.has_any_but(&no_reads);
        !may_be_left[node]
            && !places.nodes[node].unread.has_any_but(&["timeout", "retry"])
            && workflow.outgoing[node].iter().all(way_is_known)
    };
    (0..workflow.nodes.len()).map(is_known).collect()
}

/// Something written in a branch.
struct Write<'w> {
    path: &'w ContextPath,
    at: Place,
    /// Which write it is: a node's or a join's, and which of them.
    id: (bool, usize, usize),
}

struct Walker<'w> {
    workflow: &'w Workflow,
    openings: &'w [Opening],
    opened_by: Vec<Option<usize>>,
    /// For each node whether all of it is known.
    is_known: Vec<bool>,
    /// What each node reads, with its outgoing transitions; made when first needed.
    node_reads: Option<Vec<BTreeSet<String>>>,
    seen: Vec<u32>,
    walk: u32,
    steps: usize,
}

impl<'w> Walker<'w> {
    /// What the branches of an opening write and its join does not merge. What is opened inside is stepped over: of it
    /// only what its own join merges arrives in our branches.
    fn lost(&mut self, opening: &Opening, places: &Places) -> Vec<Write<'w>> {
        let join = opening.closed_by.first().and_then(|join| self.workflow.transition(*join).join.as_ref());
        let merged: Vec<&str> = join.iter().flat_map(|join| &join.merges).map(|merge| merge.from.text()).collect();
        let is_lost = |path: &ContextPath| !merged.iter().any(|from| overlap(from, path));
        let mut found = Vec::new();
        self.walk += 1;
        let mut waiting = self.targets(&opening.transitions);
        while let Some(node) = waiting.pop() {
            if std::mem::replace(&mut self.seen[node], self.walk) == self.walk {
                continue;
            }
            for (index, assignment) in self.workflow.nodes[node].output.iter().enumerate() {
                if is_lost(&assignment.to) {
                    let at = places.nodes[node].writes[index];
                    found.push(Write { path: &assignment.to, at, id: (false, node, index) });
                }
            }
            for way in &self.workflow.outgoing[node] {
                self.steps += 1;
                match self.opened_by[way.0] {
                    Some(inner) => {
                        let inner = &self.openings[inner];
                        waiting.extend(self.targets(&inner.closed_by));
                        found.extend(
                            inner
                                .closed_by
                                .iter()
                                .flat_map(|join| self.merged(*join, places))
                                .filter(|write| is_lost(write.path)),
                        );
                    }
                    // Whichever group it closes, the token leaves ours.
                    None if self.workflow.transition(*way).join.is_some() => {}
                    None => waiting.push(self.workflow.transition(*way).to.0),
                }
            }
        }
        found
    }

    /// What a join writes into the branch that it continues.
    fn merged(&self, join: TransitionIndex, places: &Places) -> Vec<Write<'w>> {
        let merges = self.workflow.transition(join).join.iter().flat_map(|join| &join.merges);
        let at = places.transitions[join.0].join.unwrap_or(places.transitions[join.0].whole);
        merges.enumerate().map(|(index, merge)| Write { path: &merge.into, at, id: (true, join.0, index) }).collect()
    }

    fn targets(&self, transitions: &[TransitionIndex]) -> Vec<usize> {
        transitions.iter().map(|transition| self.workflow.transition(*transition).to.0).collect()
    }

    /// Everything that is read in the branches of an opening, and in what they open. `None` when that is not known.
    fn read_inside(&mut self, opening: &Opening) -> Option<BTreeSet<String>> {
        let node_reads = self.node_reads.take().unwrap_or_else(|| {
            let of_node = |(index, node)| reads_of(self.workflow, index, node);
            self.workflow.nodes.iter().enumerate().map(of_node).collect()
        });
        let mut found = BTreeSet::new();
        let mut is_known = true;
        self.walk += 1;
        let mut waiting = self.targets(&opening.transitions);
        while let Some(node) = waiting.pop() {
            if std::mem::replace(&mut self.seen[node], self.walk) == self.walk {
                continue;
            }
            is_known &= self.is_known[node];
            self.steps += 1 + node_reads[node].len();
            found.extend(node_reads[node].iter().cloned());
            let ways = self.workflow.outgoing[node].iter().filter(|way| !opening.closed_by.contains(way));
            waiting.extend(ways.map(|way| self.workflow.transition(*way).to.0));
        }
        self.node_reads = Some(node_reads);
        is_known.then_some(found)
    }
}

fn tell(workflow: &Workflow, places: &Places, opening: &Opening, write: &Write<'_>, problems: &mut Problems<'_>) {
    let path = write.path;
    let message = format!("`{path}` is written in a branch and never merged, so it is lost");
    let first = opening.transitions.first().map_or(0, |transition| transition.0);
    let opened_on = places.transitions[first].group.unwrap_or(places.transitions[first].whole).line;
    let hint = match (opening.closed_by.first(), &opening.group) {
        (Some(join), _) => {
            let at = places.transitions[join.0].join.unwrap_or(places.transitions[join.0].whole);
            let to = &workflow.node(workflow.transition(*join).to).name;
            format!("add `merge: {{ from: {path}, into: … }}` to the join before `{to}`, on line {}", at.line)
        }
        (None, Some(group)) => format!("no join closes the group `{group}`, opened on line {opened_on}"),
        (None, None) => format!("give the fan-out on line {opened_on} a `group`, and join it"),
    };
    problems.warning(write.at, message, hint);
}

/// Whether one path is part of the other.
fn overlap(from: &str, path: &ContextPath) -> bool {
    let path = path.to_string();
    let (mut a, mut b) = (from.split('.'), path.split('.'));
    loop {
        match (a.next(), b.next()) {
            (Some(a), Some(b)) if a != b => return false,
            (Some(_), Some(_)) => {}
            (None, _) | (_, None) => return true,
        }
    }
}

fn is_read(read: &BTreeSet<String>, path: &ContextPath) -> bool {
    read.contains(path.root.name()) || read.contains(&path.stored_as())
}

fn reads_of(workflow: &Workflow, index: usize, node: &Node) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if let Some(input) = &node.input {
        add(&mut found, &input.reads());
    }
    match &node.work {
        Work::Run(TaskRun::Value(template) | TaskRun::Executor { specification: template, .. })
        | Work::Wait(template)
        | Work::Sleep(template) => add(&mut found, &template.reads()),
        Work::Pass | Work::Task(_) | Work::Workflow(_) | Work::Run(TaskRun::Function(_) | TaskRun::Worker(_)) => {}
    }
    for assignment in &node.output {
        // `state.n: ${state.n + 1}` alone does not make use of it.
        let mut read = BTreeSet::new();
        add(&mut read, &assignment.value.reads());
        read.remove(&assignment.to.stored_as());
        found.append(&mut read);
    }
    for way in &workflow.outgoing[index] {
        add_transition(&mut found, workflow.transition(*way));
    }
    found
}

fn add_transition(found: &mut BTreeSet<String>, transition: &Transition) {
    if let Some(when) = &transition.when {
        add(found, when.reads());
    }
    match &transition.count {
        Count::One => {}
        Count::Spawn(expression) | Count::Foreach { items: expression, .. } => add(found, expression.reads()),
    }
    for merge in transition.join.iter().flat_map(|join| &join.merges) {
        add(found, merge.from.reads());
        match &merge.strategy {
            Strategy::Keyed(Some(key)) => add(found, key.reads()),
            Strategy::Append | Strategy::Collect | Strategy::Merge | Strategy::Keyed(None) | Strategy::Last => {}
        }
    }
}

/// Adds `state` or `state.a` for what is read.
fn add(found: &mut BTreeSet<String>, reads: &Reads) {
    for (name, fields) in &reads.0 {
        match fields {
            Fields::All => {
                found.insert(name.clone());
            }
            Fields::Only(fields) => found.extend(fields.iter().map(|field| format!("{name}.{field}"))),
        }
    }
}
