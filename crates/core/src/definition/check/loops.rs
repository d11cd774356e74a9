//! Loops that nothing ends and nothing holds up: they would keep the engine busy for ever.

use super::super::problems::Problems;
use super::super::task::TaskRun;
use super::super::workflow::{Node, Outcome, Transition, TransitionIndex, Work, Workflow};
use super::{NodePlaces, Places, gaps};

/// Warns about each loop of nodes that do not wait, along transitions that are always taken.
pub(super) fn check(workflow: &Workflow, places: &Places, problems: &mut Problems<'_>) {
    let first_tier = first_tiers(workflow);
    let waits: Vec<bool> = workflow.nodes.iter().zip(&places.nodes).map(|(node, at)| may_wait(node, at)).collect();
    let may_be_left = gaps::may_be_left(workflow, places);
    let next: Vec<Vec<usize>> = (0..workflow.nodes.len())
        .map(|node| {
            let ways = &workflow.outgoing[node];
            let unread = |way: &TransitionIndex| &places.transitions[way.0].unread;
            // Something that could not be read may be looked at before all others.
            let is_tier_known =
                !may_be_left[node] && !ways.iter().any(|way| unread(way).has_any_of(&["on", "priority"]));
            if waits[node] || !is_tier_known {
                return Vec::new();
            }
            let always = ways.iter().filter(|way| {
                is_always_taken(workflow.transition(**way), first_tier[node])
                    && !unread(way).has_any_but(&NO_CONDITIONS)
            });
            always.map(|way| workflow.transition(*way).to.0).filter(|to| !waits[*to]).collect()
        })
        .collect();
    for circle in circles(&next) {
        let Some(node) = circle.iter().min() else { continue };
        let is_inside = |index: usize| circle.contains(&index);
        let Some(way) = workflow.outgoing[*node].iter().find(|way| is_inside(workflow.transition(**way).to.0)) else {
            continue;
        };
        let message = format!("this loop through `{}` may never end", workflow.nodes[*node].name);
        let hint = "give a transition of it a `when` or `max_iterations`".to_owned();
        problems.warning(places.transitions[way.0].whole, message, hint);
    }
}

/// Fields of a transition, and of its join, that have no part in whether it is taken.
const NO_CONDITIONS: [&str; 9] =
    ["foreach", "spawn", "group", "join", "wait_for", "timeout", "on_timeout", "on_failure", "merge"];

fn may_wait(node: &Node, at: &NodePlaces) -> bool {
    waits(node) || at.unread.has_any_but(&["input", "output", "timeout", "retry"])
}

fn waits(node: &Node) -> bool {
    match &node.work {
        Work::Pass | Work::Run(TaskRun::Value(_)) => false,
        Work::Task(_)
        | Work::Run(TaskRun::Executor { .. } | TaskRun::Function(_) | TaskRun::Worker(_))
        | Work::Workflow(_)
        | Work::Wait(_)
        | Work::Sleep(_) => true,
    }
}

/// The priority that is looked at first, for each node.
fn first_tiers(workflow: &Workflow) -> Vec<i64> {
    let of_node = |ways: &Vec<TransitionIndex>| {
        let ways = ways.iter().map(|way| workflow.transition(*way)).filter(|way| way.on == Outcome::Success);
        ways.map(|way| way.priority).min().unwrap_or(0)
    };
    workflow.outgoing.iter().map(of_node).collect()
}

/// A transition of a later tier is taken only when those before it are not, which is as good as a `when`.
fn is_always_taken(transition: &Transition, first_tier: i64) -> bool {
    let is_first = transition.priority == first_tier;
    is_first && transition.on == Outcome::Success && transition.when.is_none() && transition.iterations_max.is_none()
}

/// The sets of nodes that can each reach all others of their set. Tarjan's algorithm, without recursion: a chain of
/// 10,000 nodes would be 10,000 calls deep.
fn circles(next: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    let (mut number, mut lowest) = (vec![UNSEEN; next.len()], vec![0; next.len()]);
    let mut is_open = vec![false; next.len()];
    let (mut open, mut found, mut count) = (Vec::new(), Vec::new(), 0);
    for root in 0..next.len() {
        if number[root] != UNSEEN {
            continue;
        }
        let mut path = vec![(root, 0)];
        while let Some((node, ways_tried)) = path.last_mut() {
            let node = *node;
            if *ways_tried == 0 {
                (number[node], lowest[node]) = (count, count);
                count += 1;
                open.push(node);
                is_open[node] = true;
            }
            if let Some(to) = next[node].get(*ways_tried).copied() {
                *ways_tried += 1;
                if number[to] == UNSEEN {
                    path.push((to, 0));
                } else if is_open[to] {
                    lowest[node] = lowest[node].min(number[to]);
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                lowest[*parent] = lowest[*parent].min(lowest[node]);
            }
            if lowest[node] == number[node] {
                let begin = open.iter().rposition(|other| *other == node).unwrap_or(0);
                let circle = open.split_off(begin);
                circle.iter().for_each(|member| is_open[*member] = false);
                if circle.len() > 1 || next[node].contains(&node) {
                    found.push(circle);
                }
            }
        }
    }
    found
}
