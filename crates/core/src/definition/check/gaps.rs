//! What could not be read of a graph, so that nothing is said that may only follow from it.
//!
//! Owns the two kinds of it: a field with an error in it, and a transition without two ends, which may be any way.
//! Its problems have been told where it was read. Start reading at [`Gap`] and [`spread`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::workflow::{NodeIndex, Outcome, Workflow};
use super::Places;

/// The fields of a node or a transition with an error in them, and what unknown fields were probably meant to be.
#[derive(Debug, Default)]
pub(in super::super) struct Unread(Vec<Arc<str>>);

impl Unread {
    pub(in super::super) fn add(&mut self, field: impl Into<Arc<str>>) {
        self.0.push(field.into());
    }

    /// Whether one of `fields` is among them.
    pub(in super::super) fn has_any_of(&self, fields: &[&str]) -> bool {
        self.0.iter().any(|unread| fields.contains(&&**unread))
    }

    /// Whether one that is not of `fields` is among them.
    pub(super) fn has_any_but(&self, fields: &[&str]) -> bool {
        self.0.iter().any(|unread| !fields.contains(&&**unread))
    }
}

/// A transition with an end that is not known.
#[derive(Debug)]
pub(in super::super) struct Gap {
    pub(in super::super) from: Option<NodeIndex>,
    pub(in super::super) to: Option<NodeIndex>,
    pub(in super::super) on: Outcome,
    pub(in super::super) group: Option<Arc<str>>,
    pub(in super::super) unread: Unread,
}

impl Gap {
    /// Stands for transitions of which nothing is known.
    pub(in super::super) fn anything() -> Self {
        let unread = Unread(vec!["on".into(), "group".into()]);
        Self { from: None, to: None, on: Outcome::Success, group: None, unread }
    }

    pub(super) fn may_be_on_error(&self) -> bool {
        self.on == Outcome::Error || self.unread.has_any_of(&["on"])
    }

    pub(super) fn may_open_a_group(&self) -> bool {
        self.group.is_some() || self.unread.has_any_of(&["group"])
    }
}

/// Which nodes may be reached from those in `first`. `None` there stands for any of them.
pub(super) fn spread(workflow: &Workflow, gaps: &[Gap], first: Vec<Option<NodeIndex>>) -> Vec<bool> {
    let mut of_gaps: BTreeMap<Option<NodeIndex>, Vec<Option<NodeIndex>>> = BTreeMap::new();
    gaps.iter().for_each(|gap| of_gaps.entry(gap.from).or_default().push(gap.to));
    let mut reached = vec![false; workflow.nodes.len()];
    let mut waiting = first;
    if !waiting.is_empty() {
        // What leaves an unknown node may leave the first one.
        waiting.extend(of_gaps.remove(&None).into_iter().flatten());
    }
    while let Some(node) = waiting.pop() {
        let Some(node) = node else { return vec![true; workflow.nodes.len()] };
        if !std::mem::replace(&mut reached[node.0], true) {
            waiting.extend(workflow.outgoing(node).iter().map(|way| Some(workflow.transition(*way).to)));
            waiting.extend(of_gaps.remove(&Some(node)).into_iter().flatten());
        }
    }
    reached
}

/// For each node whether more transitions may leave it than are known.
pub(super) fn may_be_left(workflow: &Workflow, places: &Places) -> Vec<bool> {
    let mut found = vec![places.gaps.iter().any(|gap| gap.from.is_none()); workflow.nodes.len()];
    places.gaps.iter().filter_map(|gap| gap.from).for_each(|node| found[node.0] = true);
    found
}
