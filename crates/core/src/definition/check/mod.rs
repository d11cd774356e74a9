//! The graph as a whole: whether every node can be reached, every join closes something, and every loop ends.
//!
//! Owns what can be said only of all nodes and transitions together, as far as they could be read. What may be a mere
//! consequence of another problem is not told: see [`gaps`]. Never reads fields: see [`super::decode`].
//! Every check takes time about linear in nodes and transitions. Start reading at [`graph`].

mod gaps;
mod groups;
mod loops;
mod writes;

pub(super) use gaps::{Gap, Unread};

use super::decode::Owner;
use super::names::listed;
use super::problems::Problems;
use super::tree::Place;
use super::workflow::{Node, NodeIndex, Outcome, Transition, Workflow};

/// Where the parts of a workflow are written, and which could not be read.
pub(super) struct Places {
    /// How many errors there were before the graph was looked at.
    pub(super) errors_before: usize,
    pub(super) workflow: Place,
    pub(super) nodes: Vec<NodePlaces>,
    pub(super) transitions: Vec<TransitionPlaces>,
    /// The transitions that are not among those of the workflow.
    pub(super) gaps: Vec<Gap>,
}

/// Where the parts of a node are written.
pub(super) struct NodePlaces {
    pub(super) name: Place,
    /// The targets in its `output`, in the order of [`Node::output`].
    pub(super) writes: Vec<Place>,
    pub(super) unread: Unread,
}

/// Where the parts of a transition are written.
pub(super) struct TransitionPlaces {
    /// What stands for all of it: the node that it leaves.
    pub(super) whole: Place,
    pub(super) group: Option<Place>,
    pub(super) join: Option<Place>,
    /// Those of its join are among them.
    pub(super) unread: Unread,
}

/// Checks a workflow as far as it could be read, and finds what closes its groups. Tells nothing that may only follow
/// from what could not be read; `start` is `None` when that is where a run begins.
pub(super) fn graph(
    workflow: &mut Workflow,
    start: Option<NodeIndex>,
    places: &Places,
    error_reads: &[(Owner, Place)],
    problems: &mut Problems<'_>,
) {
    if let Some(start) = start {
        reachable(workflow, start, places, problems);
    }
    loops::check(workflow, places, problems);
    let openings = groups::check(workflow, places, problems);
    for opening in &openings {
        for transition in &opening.transitions {
            workflow.transitions[transition.0].closed_by = opening.closed_by.first().copied();
        }
    }
    // With a broken join, or with a way too few, everything would look lost.
    if problems.errors() == places.errors_before {
        writes::check(workflow, places, &openings, problems);
    }
    errors_readable(workflow, places, error_reads, problems);
}

/// Where a run begins when the definition does not say: at the one node that nothing leads to. `None` when that is not
/// clear, or cannot be known yet.
pub(super) fn start(
    nodes: &[Node],
    transitions: &[Transition],
    places: &Places,
    problems: &mut Problems<'_>,
) -> Option<NodeIndex> {
    let mut is_target = vec![false; nodes.len()];
    for transition in transitions {
        is_target[transition.to.0] = true;
    }
    for to in places.gaps.iter().filter_map(|gap| gap.to) {
        is_target[to.0] = true;
    }
    let may_lead_anywhere = places.gaps.iter().any(|gap| gap.to.is_none());
    let free: Vec<usize> = (0..nodes.len()).filter(|node| !is_target[*node]).collect();
    match free[..] {
        [_, ..] if may_lead_anywhere => {}
        [only] => return Some(NodeIndex(only)),
        [] => {
            let message = "it is not clear where a run begins: every node has a transition that leads to it";
            problems.error(places.workflow, message, "name the first node: `start: …`".to_owned());
        }
        [..] => {
            let names = listed(free.iter().map(|node| &*nodes[*node].name));
            let message = format!("it is not clear where a run begins: no transition leads to {names}");
            let hint = "name the first node with `start: …`, and add transitions to the others".to_owned();
            problems.error(places.workflow, message, hint);
        }
    }
    None
}

fn reachable(workflow: &Workflow, start: NodeIndex, places: &Places, problems: &mut Problems<'_>) {
    let reached = gaps::spread(workflow, &places.gaps, vec![Some(start)]);
    for (index, node) in workflow.nodes.iter().enumerate().filter(|(index, _)| !reached[*index]) {
        let message = format!("the node `{}` can never be reached", node.name);
        let start = &workflow.node(start).name;
        let hint = format!("no way leads from the start, `{start}`, to it: add a transition, or take it away");
        problems.error(places.nodes[index].name, message, hint);
    }
}

/// `error` can be read in nodes that an error path leads to, and in what follows them.
fn errors_readable(workflow: &Workflow, places: &Places, error_reads: &[(Owner, Place)], problems: &mut Problems<'_>) {
    let ways = workflow.transitions.iter().zip(&places.transitions);
    let on_error = ways.filter(|(way, at)| way.on == Outcome::Error || at.unread.has_any_of(&["on"]));
    let of_gaps = places.gaps.iter().filter(|gap| gap.may_be_on_error());
    let first = on_error.map(|(way, _)| Some(way.to)).chain(of_gaps.map(|gap| gap.to));
    let after_error = gaps::spread(workflow, &places.gaps, first.collect());
    for (owner, at) in error_reads {
        let is_readable = match owner {
            Owner::Node(node) => after_error[*node],
            // The others never see it, and were told so where they read it.
            Owner::ErrorPath | Owner::Task | Owner::Result => true,
        };
        if !is_readable {
            let hint = "it is there in transitions with `on: error`, and in the nodes that they lead to".to_owned();
            problems.error(*at, "there is no `error` here", hint);
        }
    }
}
