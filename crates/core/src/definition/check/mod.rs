//! The graph as a whole: whether every node can be reached, every join closes something, and every loop ends.
//!
//! Owns what can be said only when all nodes and transitions are known. Never reads fields: see [`super::decode`].
//! Every check takes time about linear in nodes and transitions. Start reading at [`graph`].

mod groups;
mod loops;
mod writes;

use super::decode::Owner;
use super::names::listed;
use super::problems::Problems;
use super::tree::Place;
use super::workflow::{Node, NodeIndex, Outcome, Transition, Workflow};

/// Where the parts of a workflow are written.
pub(super) struct Places {
    /// How many problems there were before those of this workflow.
    pub(super) problems_before: usize,
    pub(super) workflow: Place,
    pub(super) nodes: Vec<NodePlaces>,
    pub(super) transitions: Vec<TransitionPlaces>,
}

/// Where the parts of a node are written.
pub(super) struct NodePlaces {
    pub(super) name: Place,
    /// The targets in its `output`, in the order of [`Node::output`].
    pub(super) writes: Vec<Place>,
}

/// Where the parts of a transition are written.
pub(super) struct TransitionPlaces {
    /// What stands for all of it: the node that it leaves.
    pub(super) whole: Place,
    pub(super) group: Option<Place>,
    pub(super) join: Option<Place>,
}

/// Checks a workflow whose parts are all there, and finds what closes its groups.
pub(super) fn graph(
    workflow: &mut Workflow,
    places: &Places,
    error_reads: &[(Owner, Place)],
    problems: &mut Problems<'_>,
) {
    reachable(workflow, places, problems);
    errors_readable(workflow, error_reads, problems);
    loops::check(workflow, places, problems);
    let openings = groups::check(workflow, places, problems);
    for opening in &openings {
        for transition in &opening.transitions {
            workflow.transitions[transition.0].closed_by = opening.closed_by.first().copied();
        }
    }
    // With a broken join everything would look lost.
    if !problems.has_errors_after(places.problems_before) {
        writes::check(workflow, places, &openings, problems);
    }
}

/// Where a run begins when the definition does not say: at the one node that nothing leads to.
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
    let free: Vec<usize> = (0..nodes.len()).filter(|node| !is_target[*node]).collect();
    match free[..] {
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

fn reachable(workflow: &Workflow, places: &Places, problems: &mut Problems<'_>) {
    let reached = spread(workflow, vec![workflow.start.0]);
    for (index, node) in workflow.nodes.iter().enumerate().filter(|(index, _)| !reached[*index]) {
        let message = format!("the node `{}` can never be reached", node.name);
        let start = &workflow.node(workflow.start).name;
        let hint = format!("no way leads from the start, `{start}`, to it: add a transition, or take it away");
        problems.error(places.nodes[index].name, message, hint);
    }
}

/// `error` can be read in nodes that an error path leads to, and in what follows them.
fn errors_readable(workflow: &Workflow, error_reads: &[(Owner, Place)], problems: &mut Problems<'_>) {
    let on_error = workflow.transitions.iter().filter(|transition| transition.on == Outcome::Error);
    let after_error = spread(workflow, on_error.map(|transition| transition.to.0).collect());
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

/// Which nodes can be reached from `first`.
fn spread(workflow: &Workflow, first: Vec<usize>) -> Vec<bool> {
    let mut reached = vec![false; workflow.nodes.len()];
    let mut waiting = first;
    while let Some(node) = waiting.pop() {
        if !std::mem::replace(&mut reached[node], true) {
            waiting.extend(workflow.outgoing[node].iter().map(|transition| workflow.transition(*transition).to.0));
        }
    }
    reached
}
