//! References between definitions, over several files: that what is named exists, and exists once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::names::closest;
use super::read::{Named, Role};
use super::workflow::Reference;
use super::{DefinitionKind, Problem, Read};

/// Adds a problem for each task or workflow that is named by a definition of `reads`, and neither among them nor known otherwise. Also one for each
/// definition that is there twice.
pub fn check_references(reads: &mut [Read], is_known: &dyn Fn(DefinitionKind, &Reference) -> bool) {
    let mut defined: BTreeMap<(DefinitionKind, Arc<str>), Problem> = BTreeMap::new();
    let mut found: Vec<Vec<Problem>> = reads.iter().map(|_| Vec::new()).collect();
    for (read, found) in reads.iter().zip(&mut found) {
        for named in read.named.iter().filter(|named| named.role == Role::Defined) {
            match defined.get(&(named.kind, named.reference.name.clone())) {
                Some(first) => found.push(twice(named, first)),
                None => {
                    defined.insert((named.kind, named.reference.name.clone()), named.spot.clone());
                }
            }
        }
    }
    let names: BTreeSet<(DefinitionKind, Arc<str>)> = defined.into_keys().collect();
    for (read, found) in reads.iter().zip(&mut found) {
        for named in read.named.iter().filter(|named| named.role == Role::Used) {
            // One of a certain version is among those stored, or nowhere: what is read now has no number yet.
            let is_here =
                named.reference.version.is_none() && names.contains(&(named.kind, named.reference.name.clone()));
            if !is_here && !is_known(named.kind, &named.reference) {
                found.push(unknown(named, &names));
            }
        }
    }
    for (read, found) in reads.iter_mut().zip(found) {
        read.problems.extend(found);
        read.problems.sort_by_key(|problem| (problem.line, problem.column, problem.severity));
    }
}

fn twice(named: &Named, first: &Problem) -> Problem {
    let (kind, name) = (named.kind.name(), &named.reference.name);
    let message = format!("the {kind} `{name}` is defined twice");
    let hint = format!("the first one is at {}:{}:{}", first.file, first.line, first.column);
    Problem { message, hint: Some(hint), ..named.spot.clone() }
}

fn unknown(named: &Named, names: &BTreeSet<(DefinitionKind, Arc<str>)>) -> Problem {
    let Reference { name, version } = &named.reference;
    let kind = named.kind.name();
    let is_here = names.contains(&(named.kind, name.clone()));
    let other = match named.kind {
        DefinitionKind::Task => DefinitionKind::Workflow,
        DefinitionKind::Workflow => DefinitionKind::Task,
    };
    let of_kind = names.iter().filter(|(kind, _)| *kind == named.kind).map(|(_, name)| &**name);
    let hint = match version {
        Some(_) if is_here => format!("what is applied now gets a version of its own; `{name}` means the newest"),
        Some(_) | None => match closest(name, of_kind) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if names.contains(&(other, name.clone())) => {
                format!("`{name}` is a {}: write `{}: {name}`", other.name(), other.name())
            }
            None => format!("no {kind} of that name is given or stored"),
        },
    };
    let message = match version {
        Some(version) => format!("there is no version {version} of the {kind} `{name}`"),
        None => format!("there is no {kind} `{name}`"),
    };
    Problem { message, hint: Some(hint), ..named.spot.clone() }
}
