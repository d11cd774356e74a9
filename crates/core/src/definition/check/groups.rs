//! Groups: which joins close what is opened where.
//!
//! Owns the walk from an opening to its joins. A group instance is opened by the transitions of one tier that name the
//! same group; a join closes the innermost instance of its group, so what is opened again inside is stepped over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::problems::Problems;
use super::super::workflow::{Join, Outcome, Strategy, TransitionIndex, Workflow};
use super::{Places, gaps};
use crate::limits;

/// Transitions that open one group instance together.
pub(super) struct Opening {
    /// Its name; without one nothing can join it.
    pub(super) group: Option<Arc<str>>,
    /// Those that open it.
    pub(super) transitions: Vec<TransitionIndex>,
    /// The joins that close it, in the order written.
    pub(super) closed_by: Vec<TransitionIndex>,
}

/// Finds all openings and what closes them.
pub(super) fn check(workflow: &Workflow, places: &Places, problems: &mut Problems<'_>) -> Vec<Opening> {
    let mut openings = openings(workflow);
    if !close(workflow, &mut openings) {
        let hint = "use fewer groups inside each other, or split the workflow (`group_check_steps_max`)".to_owned();
        problems.error(places.workflow, "the groups of this workflow are too many to be checked", hint);
        return openings;
    }
    unclosing(workflow, places, &openings, problems);
    let mut told = BTreeSet::new();
    // With one that could not be read, a group may end earlier, or another begin.
    let is_known = !places.transitions.iter().any(|way| way.unread.has_any_of(&["on", "priority", "group", "join"]));
    for opening in openings.iter().filter(|_| is_known) {
        let Some((first, others)) = opening.closed_by.split_first() else { continue };
        for other in others {
            // One that is like the first join of this opening may still be unlike that of the next.
            if !told.contains(other) && disagreeing(workflow, places, [*first, *other], problems) {
                told.insert(*other);
            }
        }
    }
    openings
}

fn openings(workflow: &Workflow) -> Vec<Opening> {
    let mut by_tier: BTreeMap<_, Opening> = BTreeMap::new();
    for (index, transition) in workflow.transitions.iter().enumerate().filter(|(_, t)| t.opens_a_group()) {
        // One without a name opens an instance of its own.
        let own = if transition.group.is_none() { index } else { 0 };
        let is_error = transition.on == Outcome::Error;
        let tier = (transition.from, is_error, transition.priority, transition.group.clone(), own);
        let new = || Opening { group: transition.group.clone(), transitions: Vec::new(), closed_by: Vec::new() };
        by_tier.entry(tier).or_insert_with(new).transitions.push(TransitionIndex(index));
    }
    by_tier.into_values().collect()
}

/// Fills in `closed_by`. `false` when that takes too long.
fn close(workflow: &Workflow, openings: &mut [Opening]) -> bool {
    let mut opened_by = vec![usize::MAX; workflow.transitions.len()];
    let mut by_name: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
    let joined: BTreeSet<&str> = workflow.transitions.iter().filter_map(|t| Some(&*t.join.as_ref()?.group)).collect();
    for (index, opening) in openings.iter().enumerate() {
        opening.transitions.iter().for_each(|transition| opened_by[transition.0] = index);
        if let Some(group) = opening.group.as_ref().filter(|group| joined.contains(&***group)) {
            by_name.entry(group.clone()).or_default().push(index);
        }
    }
    let mut walker = Walker { workflow, opened_by, seen: vec![0; workflow.nodes.len()], walk: 0, steps: 0 };
    for (group, same_name) in by_name {
        // Stepping over an opening inside needs to know what closes that one: repeated until nothing is new.
        let mut has_news = true;
        while has_news {
            has_news = false;
            for index in &same_name {
                let found = walker.joins(&group, *index, openings);
                has_news |= found.len() > openings[*index].closed_by.len() && same_name.len() > 1;
                openings[*index].closed_by = found;
                if walker.steps > limits::GROUP_CHECK_STEPS_MAX {
                    return false;
                }
            }
        }
    }
    true
}

struct Walker<'w> {
    workflow: &'w Workflow,
    /// For each transition the opening that it is part of.
    opened_by: Vec<usize>,
    /// For each node the last walk that came to it.
    seen: Vec<u32>,
    walk: u32,
    steps: usize,
}

impl Walker<'_> {
    /// The joins on `group` that are reached from inside an opening of it, before anything else has closed it.
    fn joins(&mut self, group: &Arc<str>, opening: usize, openings: &[Opening]) -> Vec<TransitionIndex> {
        self.walk += 1;
        let to = |transition: &TransitionIndex| self.workflow.transition(*transition).to.0;
        let mut waiting: Vec<usize> = openings[opening].transitions.iter().map(to).collect();
        let mut found = BTreeSet::new();
        // Joins on other groups lead on only when that group was opened inside: else they close what is around ours too.
        let mut open_inside: BTreeSet<&str> = BTreeSet::new();
        let mut held_back: Vec<(&str, usize)> = Vec::new();
        while let Some(node) = waiting.pop().or_else(|| release(&mut held_back, &open_inside)) {
            if std::mem::replace(&mut self.seen[node], self.walk) == self.walk {
                continue;
            }
            for index in &self.workflow.outgoing[node] {
                self.steps += 1;
                let transition = self.workflow.transition(*index);
                match (&transition.join, &transition.group) {
                    (Some(join), _) if join.group == *group => {
                        found.insert(*index);
                    }
                    (Some(join), _) => held_back.push((&join.group, transition.to.0)),
                    (None, Some(same)) if same == group => {
                        let inner = &openings[self.opened_by[index.0]].closed_by;
                        waiting.extend(inner.iter().map(|join| self.workflow.transition(*join).to.0));
                    }
                    (None, Some(other)) => {
                        open_inside.insert(other);
                        waiting.push(transition.to.0);
                    }
                    (None, None) => waiting.push(transition.to.0),
                }
            }
        }
        found.into_iter().collect()
    }
}

/// A node behind a join on a group that is known to be open by now.
fn release(held_back: &mut Vec<(&str, usize)>, open_inside: &BTreeSet<&str>) -> Option<usize> {
    let free = held_back.iter().position(|(group, _)| open_inside.contains(group))?;
    Some(held_back.swap_remove(free).1)
}

/// Joins that close nothing.
fn unclosing(workflow: &Workflow, places: &Places, openings: &[Opening], problems: &mut Problems<'_>) {
    let opened: BTreeMap<&str, &Opening> =
        openings.iter().filter_map(|opening| Some((&**opening.group.as_ref()?, opening))).collect();
    let closing: BTreeSet<TransitionIndex> = openings.iter().flat_map(|opening| opening.closed_by.clone()).collect();
    let unknown = Unknown::of(workflow, places);
    for (index, transition) in workflow.transitions.iter().enumerate() {
        let Some(join) = transition.join.as_ref().filter(|_| !closing.contains(&TransitionIndex(index))) else {
            continue;
        };
        let is_opened = opened.contains_key(&*join.group);
        if unknown.may_open(&join.group) || (is_opened && unknown.may_lead_to[transition.from.0]) {
            continue;
        }
        let at = places.transitions[index].join.unwrap_or(places.transitions[index].whole);
        let (message, hint) = match opened.get(&*join.group) {
            None => {
                let hint = match problems.meant(&join.group, opened.keys().copied()) {
                    Some(hint) => hint,
                    None => format!("open it where the branches begin: `group: {}` on that transition", join.group),
                };
                (format!("no transition opens the group `{}`", join.group), hint)
            }
            Some(opening) => {
                let first = opening.transitions.first().map_or(0, |transition| transition.0);
                let line = places.transitions[first].group.map_or(0, |at| at.line);
                let from = &workflow.node(transition.from).name;
                let hint = format!("no way leads from inside the group, opened on line {line}, to `{from}`");
                (format!("this join cannot be reached from inside the group `{}`", join.group), hint)
            }
        };
        problems.error(at, message, hint);
    }
}

/// What transitions that could not be read may do for a join.
struct Unknown<'p> {
    /// The groups that gaps open.
    opened: BTreeSet<&'p str>,
    /// Whether there is a group whose name is not known.
    has_unnamed: bool,
    /// For each node whether a gap may lead to it from inside a group.
    may_lead_to: Vec<bool>,
}

impl<'p> Unknown<'p> {
    fn of(workflow: &Workflow, places: &'p Places) -> Self {
        let unread = places.transitions.iter().map(|way| &way.unread).chain(places.gaps.iter().map(|gap| &gap.unread));
        let may_lead_to = match places.gaps.is_empty() {
            true => vec![false; workflow.nodes.len()],
            false => {
                let inside = workflow.transitions.iter().filter(|way| way.group.is_some()).map(|way| Some(way.to));
                let of_gaps = places.gaps.iter().filter(|gap| gap.may_open_a_group()).map(|gap| gap.to);
                gaps::spread(workflow, &places.gaps, inside.chain(of_gaps).collect())
            }
        };
        Self {
            opened: places.gaps.iter().filter_map(|gap| gap.group.as_deref()).collect(),
            has_unnamed: unread.into_iter().any(|unread| unread.has_any_of(&["group"])),
            may_lead_to,
        }
    }

    fn may_open(&self, group: &str) -> bool {
        self.has_unnamed || self.opened.contains(group)
    }
}

/// Two joins that close the same group instance fire once for both, so they must say the same. Whether a problem was told.
fn disagreeing(workflow: &Workflow, places: &Places, joins: [TransitionIndex; 2], problems: &mut Problems<'_>) -> bool {
    let [first, other] = joins.map(|index| workflow.transition(index));
    let (Some(a), Some(b)) = (&first.join, &other.join) else { return false };
    let differences = [
        ("to", first.to != other.to),
        ("wait_for", a.wait_for != b.wait_for),
        ("timeout", a.timeout_ms != b.timeout_ms),
        ("on_timeout", a.on_timeout != b.on_timeout),
        ("on_failure", a.on_failure != b.on_failure),
        ("merge", merged(a) != merged(b)),
    ];
    let is_read = |name| joins.iter().all(|join| !places.transitions[join.0].unread.has_any_of(&[name]));
    let names = differences.iter().filter(|(name, differs)| *differs && is_read(name)).map(|(name, _)| *name);
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return false;
    }
    let [first_at, at] =
        joins.map(|index| places.transitions[index.0].join.unwrap_or(places.transitions[index.0].whole));
    let message = format!("two joins close the same group `{}`, but differ in {}", a.group, super::listed(names));
    let hint = format!("they fire as one, so make this like the join on line {}", first_at.line);
    problems.error(at, message, hint);
    true
}

/// What a join merges, in a form that can be compared.
fn merged(join: &Join) -> Vec<(&str, String, &str, &str)> {
    let parts = join.merges.iter().map(|merge| {
        let (word, key) = match &merge.strategy {
            Strategy::Append => ("append", ""),
            Strategy::Collect => ("collect", ""),
            Strategy::Merge => ("merge", ""),
            Strategy::Keyed(key) => ("keyed", key.as_ref().map_or("", |key| key.text())),
            Strategy::Last => ("last", ""),
        };
        (merge.from.text(), merge.into.to_string(), word, key)
    });
    parts.collect()
}
