//! What holds of every world, whatever happened in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as JsonValue;
use steadfast_core::graph::view::{self, RunView, TokenView};
use steadfast_core::ids::ActorId;

use crate::world::{Stored, World};

/// What a run keeps only while it goes on.
const KEPT_WHILE_RUNNING: [&str; 10] =
    ["group/", "branch/", "overlay/", "items/", "step/", "timer/", "timer.at/", "wait/", "waits/", "waiter/"];

/// A run that is over has left nothing behind, and neither have the runs that it started; one that is not has something that will wake it. Every history makes sense.
#[track_caller]
pub(crate) fn check_at_rest(world: &World) {
    let mut runs: BTreeMap<&str, RunView> = BTreeMap::new();
    for (actor, stored) in &world.actors {
        let Some(run) = view::run(stored, actor.name()).unwrap() else { continue };
        let tokens = view::tokens(stored).unwrap();
        check_history(actor, stored, &tokens);
        // What was sent and has not come yet may be what tidies up.
        let found = crate::doctor::checked(world, actor);
        assert!(found.problems.is_empty(), "{actor} would wait for ever: {found:#?}");
        if run.status.is_over() && world.messages.is_empty() {
            check_over(world, actor, stored, &tokens);
        }
        runs.insert(actor.name(), run);
    }
    let is_over = |id: &str| runs[id].status.is_over();
    for run in runs.values().filter(|_| world.messages.is_empty()) {
        let parent = run.parent.as_deref().filter(|parent| is_over(parent));
        assert!(parent.is_none() || is_over(&run.id), "{parent:?} is over, but its child {} is not", run.id);
    }
}

#[track_caller]
fn check_over(world: &World, actor: &ActorId, stored: &Stored, tokens: &[TokenView]) {
    let active: Vec<&TokenView> = tokens.iter().filter(|token| !token.status.is_terminal()).take(10).collect();
    assert!(active.is_empty(), "{actor} is over, but its tokens are not: {active:#?}");
    let is_left = |key: &&Arc<str>| KEPT_WHILE_RUNNING.iter().any(|prefix| key.starts_with(prefix));
    let left: Vec<&Arc<str>> = stored.values.keys().filter(is_left).take(10).collect();
    assert!(left.is_empty(), "{actor} is over, but keeps {left:?}");
    assert_eq!(world.pending(actor.name()).len(), 0, "{actor} is over, but its tasks are not");
    assert_eq!(stored.alarm, None, "{actor} is over, but has an alarm");
}

/// Every token was made once, ended at most once, and comes from another one; every join fired at most once.
#[track_caller]
fn check_history(actor: &ActorId, stored: &Stored, tokens: &[TokenView]) {
    let known: BTreeMap<u64, &TokenView> = tokens.iter().map(|token| (token.id.0, token)).collect();
    for token in tokens {
        let parent = token.parent.map(|parent| parent.0);
        assert!(parent.is_none_or(|parent| known.contains_key(&parent)), "{actor}: {token:?} comes from nowhere");
    }
    let (mut made, mut ended, mut fired) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
    for event in &stored.events {
        let data: JsonValue = event.data.decode().unwrap();
        let is_first = match &*event.event_type {
            "token.created" => made.insert(data["token"].as_u64()),
            "fan_in.completed" => fired.insert(data["instance"].as_u64()),
            "token.completed" | "token.failed" | "token.cancelled" | "token.timed_out" => {
                ended.insert(data["token"].as_u64(), event.event_type.clone()).is_none()
            }
            _ => true,
        };
        assert!(is_first, "{actor}: {} twice for {data}", event.event_type);
    }
    assert_eq!(made.len(), known.len(), "{actor}: tokens made, tokens there");
    for (id, token) in known {
        let told = ended.get(&Some(id)).map(|told| &told["token.".len()..]);
        assert_eq!(told, token.status.is_terminal().then(|| token.status.name()), "{actor}: {token:?}");
    }
}
