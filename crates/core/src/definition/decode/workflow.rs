//! `kind: workflow`.

use std::sync::Arc;

use super::super::check::{self, Gap, NodePlaces, Places, TransitionPlaces};
use super::super::names::is_identifier;
use super::super::tree::{Content, Field, Tree};
use super::super::workflow::{Node, NodeIndex, Transition, Workflow};
use super::expressions::{Sight, is_reserved};
use super::node::{Names, in_order};
use super::{Decoder, Object, first_key};
use crate::limits;
use crate::schema::Schema;

const FIELDS: [&str; 11] =
    ["kind", "name", "description", "input", "state", "output", "start", "timeout", "nodes", "transitions", "result"];

impl Decoder<'_, '_> {
    pub(super) fn workflow(&mut self, tree: &Tree, name: Arc<str>) -> Option<Workflow> {
        let mut object = self.object(tree, "a workflow", &FIELDS)?;
        object.at = first_key(tree);
        let description = object.get("description").and_then(|field| self.text(field));
        let input = object.get("input").and_then(|field| self.schema(field));
        let state = object.get("state").and_then(|field| self.state(field));
        let output = object.get("output").and_then(|field| self.schema(field));
        let timeout_ms = object.get("timeout").and_then(|field| self.timeout_ms(field));
        self.name_elements(&object);
        let nodes = self.nodes(&object);
        let names: Names = nodes.iter().flatten().enumerate().map(|(i, (node, _))| (node.name.clone(), i)).collect();
        let (transitions, gaps) = self.transitions(&object, &names);
        let start = object.get("start").map(|field| self.node_named(field, &names));
        let result = object.get("result").and_then(|field| self.template(&field.value, Sight::RESULT));

        let (nodes, node_places): (Vec<Node>, Vec<NodePlaces>) = nodes?.into_iter().unzip();
        let (transitions, transition_places): (Vec<Transition>, Vec<TransitionPlaces>) =
            transitions.into_iter().unzip();
        let places = Places {
            errors_before: self.problems.errors(),
            workflow: object.at,
            nodes: node_places,
            transitions: transition_places,
            gaps,
        };
        let start = match start {
            Some(named) => named,
            None if object.unknown(&FIELDS).has_any_of(&["start"]) => None,
            None => check::start(&nodes, &transitions, &places, self.problems),
        };
        let mut workflow = Workflow {
            name,
            description: description.map(|text| text.as_ref().to_owned()),
            input,
            state,
            output,
            // Any node will do: with no start there is a problem, and all this is for finding the others.
            start: start.unwrap_or(NodeIndex(0)),
            timeout_ms,
            outgoing: outgoing(&nodes, &transitions),
            nodes,
            transitions,
            result,
        };
        check::graph(&mut workflow, start, &places, &self.error_reads, self.problems);
        (start.is_some() && places.gaps.is_empty()).then_some(workflow)
    }

    fn state(&mut self, field: &Field) -> Option<Schema> {
        if let Some(required) = field_of(&field.value, "required") {
            let hint = "fields are checked one by one, when they are written".to_owned();
            self.problems.warning(required.key_at, "`required` has no effect in `state`", hint);
        }
        self.schema(field)
    }

    /// Finds every `foreach: { as: … }` first: expressions are read before the transitions are.
    fn name_elements(&mut self, object: &Object<'_>) {
        let Some(Content::List(items)) = object.get("transitions").map(|field| &field.value.content) else { return };
        for item in items {
            let named = field_of(item, "foreach").and_then(|foreach| field_of(&foreach.value, "as"));
            if let Some(Content::Text(name)) = named.map(|field| &field.value.content) {
                self.element_names.extend(Some(name.clone()).filter(|name| !is_reserved(name) && is_identifier(name)));
            }
        }
    }

    fn nodes(&mut self, object: &Object<'_>) -> Option<Vec<(Node, NodePlaces)>> {
        let Some(field) = object.get("nodes") else {
            self.missing(object, "nodes", "a workflow has at least one node: `nodes: { first: { task: … } }`");
            return None;
        };
        let Content::Object(fields) = &field.value.content else {
            let hint = match &field.value.content {
                Content::List(_) => "nodes have names: `nodes: { first: { task: … } }`, without `-`",
                Content::Null
                | Content::Bool(_)
                | Content::Int(_)
                | Content::UInt(_)
                | Content::Float(_)
                | Content::Text(_)
                | Content::Object(_) => "`nodes: { first: { task: … } }`",
            };
            let message = format!("`nodes` must be an object, found {}", field.value.described());
            self.problems.error(field.value_at(), message, hint.to_owned());
            return None;
        };
        if fields.is_empty() {
            self.problems.error(field.value_at(), "a workflow needs at least one node", None);
            return None;
        }
        if fields.len() > limits::NODES_MAX {
            let message =
                format!("{} nodes are too many, the limit is {} (`nodes_max`)", fields.len(), limits::NODES_MAX);
            self.problems.error(field.key_at, message, "split the workflow: a node can run another one".to_owned());
            return None;
        }
        Some(in_order(fields).into_iter().enumerate().map(|(index, field)| self.node(field, index)).collect())
    }

    /// The transitions, and those without two ends.
    fn transitions(&mut self, object: &Object<'_>, names: &Names) -> Ways {
        let Some(field) = object.get("transitions") else {
            // Without the transitions that were meant every node would look lost.
            let is_misspelt = object.unknown(&FIELDS).has_any_of(&["transitions"]);
            return (Vec::new(), is_misspelt.then(Gap::anything).into_iter().collect());
        };
        let Content::List(items) = &field.value.content else {
            let message = format!("`transitions` must be a list, found {}", field.value.described());
            self.problems.error(field.value_at(), message, "`- { from: a, to: b }`, one for each way".to_owned());
            return (Vec::new(), vec![Gap::anything()]);
        };
        if items.len() > limits::TRANSITIONS_MAX {
            let max = limits::TRANSITIONS_MAX;
            let message = format!("{} transitions are too many, the limit is {max} (`transitions_max`)", items.len());
            self.problems.error(field.key_at, message, "split the workflow: a node can run another one".to_owned());
            return (Vec::new(), vec![Gap::anything()]);
        }
        let (mut found, mut gaps) = (Vec::new(), Vec::new());
        for item in items {
            match self.transition(item, names) {
                Ok(transition) => found.push(transition),
                Err(gap) => gaps.push(gap),
            }
        }
        (found, gaps)
    }

    /// A node by its name.
    pub(super) fn node_named(&mut self, field: &Field, names: &Names) -> Option<NodeIndex> {
        let name = self.text(field)?;
        if let Some(index) = names.get(&name) {
            return Some(NodeIndex(*index));
        }
        // Without any node the problem is another one, and has been told.
        if !names.is_empty() {
            let hint = match self.problems.meant(&name, names.keys().map(|name| &**name)) {
                Some(hint) => hint,
                None => format!("the nodes are {}", super::listed(names.keys().map(|name| &**name))),
            };
            self.problems.error(field.value_at(), format!("there is no node `{name}`"), hint);
        }
        None
    }
}

/// Transitions that are known, and those that are not.
type Ways = (Vec<(Transition, TransitionPlaces)>, Vec<Gap>);

fn field_of<'t>(tree: &'t Tree, name: &str) -> Option<&'t Field> {
    let Content::Object(fields) = &tree.content else { return None };
    fields.iter().find(|field| &*field.key == name)
}

fn outgoing(nodes: &[Node], transitions: &[Transition]) -> Vec<Vec<super::super::workflow::TransitionIndex>> {
    let mut found = vec![Vec::new(); nodes.len()];
    for (index, transition) in transitions.iter().enumerate() {
        found[transition.from.0].push(super::super::workflow::TransitionIndex(index));
    }
    found
}
