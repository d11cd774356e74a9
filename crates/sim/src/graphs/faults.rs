//! Faults planted into the coordinator, or into the engine where it removes runs, to show that the simulator finds them.
//!
//! Owns a kind that runs another one's turns and forgets a part of what they want. Only tests plant one.

use steadfast::mutation::Mutation;
use steadfast_core::graph::token::{Status, Token};
use steadfast_core::ids::ActorId;
use steadfast_core::turn::{
    Actor, AlarmChange, Dispatch, Effects, Input, Kind, Reply, Send, Storage, TaskChange, Turn, TurnError,
};

/// What runs do wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// A group instance that has changed is not written again.
    GroupUnwritten,
    /// What a branch has written stays when the branch is over.
    OverlayKept,
    /// A timer that was set does not set the alarm.
    AlarmUnset,
    /// The end of a run is not told to the run that waits for it.
    EndUntold,
    /// A run that nobody needs any more is not told so.
    ChildForgotten,
    /// A task that is tried again is never dispatched.
    RetryUndispatched,
    /// A token that has ended stays on disk as it was.
    TokenKept,
    /// The result of a task counts for the token after its own, too.
    ResultTwice,
    /// What a branch brings to a join is kept under another number, so that the order of arrival decides.
    ArrivalsRenumbered,
    /// Runs below one that is removed stay.
    BelowForgotten,
    /// A removal that was cut off does not go on.
    RemovalForgotten,
}

impl Fault {
    /// What the engine does wrong, where it is not the coordinator.
    pub(super) fn mutation(self) -> Mutation {
        match self {
            Self::BelowForgotten => Mutation::BelowForgotten,
            Self::RemovalForgotten => Mutation::RemovalForgotten,
            Self::None
            | Self::GroupUnwritten
            | Self::OverlayKept
            | Self::AlarmUnset
            | Self::EndUntold
            | Self::ChildForgotten
            | Self::RetryUndispatched
            | Self::TokenKept
            | Self::ResultTwice
            | Self::ArrivalsRenumbered => Mutation::None,
        }
    }
}

/// A kind with a fault.
pub(super) struct Faulty<K> {
    pub(super) kind: K,
    pub(super) fault: Fault,
}

struct FaultyActor {
    actor: Box<dyn Actor>,
    fault: Fault,
}

impl<K: Kind> Kind for Faulty<K> {
    fn load(&self, id: &ActorId, storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        let actor = self.kind.load(id, storage)?;
        let is_sound = self.fault == Fault::None;
        Ok(if is_sound { actor } else { Box::new(FaultyActor { actor, fault: self.fault }) })
    }
}

impl Actor for FaultyActor {
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError> {
        let (actor, now, alarm) = (turn.actor().clone(), turn.now(), turn.alarm());
        let mut inner = Turn::begin(&actor, now, alarm, turn);
        self.actor.turn(&mut inner, input)?;
        if let (Fault::ResultTwice, Input::TaskResult(result)) = (self.fault, input)
            && let Some(next) = result.task.as_str().parse::<u64>().ok().map(|number| number + 1)
        {
            let mut other = result.clone();
            other.task = steadfast_core::ids::TaskId::new(&next.to_string())?;
            self.actor.turn(&mut inner, &Input::TaskResult(other))?;
        }
        let mut effects = inner.end()?;
        self.spoil(turn, &mut effects);
        apply(turn, effects)
    }

    fn bytes(&self) -> usize {
        self.actor.bytes()
    }
}

impl FaultyActor {
    fn spoil(&self, before: &Turn<'_>, effects: &mut Effects) {
        let is_known = |key: &str| Storage::get(before, key).is_ok_and(|stored| stored.is_some());
        let says = |send: &Send, what: &str| send.body.as_str().contains(what);
        match self.fault {
            Fault::None | Fault::ResultTwice | Fault::BelowForgotten | Fault::RemovalForgotten => {}
            Fault::GroupUnwritten => {
                effects.writes.retain(|key, value| !(key.starts_with("group/") && value.is_some() && is_known(key)))
            }
            Fault::OverlayKept => {
                effects.writes.retain(|key, value| !key.starts_with("overlay/") || value.is_some());
            }
            Fault::AlarmUnset => {
                if let AlarmChange::At(_) = effects.alarm {
                    effects.alarm = AlarmChange::Keep;
                }
            }
            Fault::EndUntold => effects.sends.retain(|send| !says(send, "\"child_ended\"")),
            Fault::ChildForgotten => effects.sends.retain(|send| !says(send, "{\"cancel\"")),
            Fault::RetryUndispatched => effects.tasks.retain(|change| match change {
                TaskChange::Dispatch(dispatch) => dispatch.input.as_str().contains("\"attempt\":1,"),
                TaskChange::Cancel(_) => true,
            }),
            Fault::TokenKept => effects.writes.retain(|key, value| {
                let token = value.as_ref().filter(|_| key.starts_with("token/"));
                let token = token.and_then(|json| json.decode::<Token>().ok());
                !(token.is_some_and(|token| token.status == Status::Cancelled) && is_known(key))
            }),
            Fault::ArrivalsRenumbered => renumber(effects),
        }
    }
}

/// Turns the numbers of arrivals round: 0 becomes 9, 1 becomes 8.
fn renumber(effects: &mut Effects) {
    let writes = std::mem::take(&mut effects.writes);
    for (key, value) in writes {
        let branch = key.strip_prefix("arrived/").and_then(|rest| rest.split_once('/'));
        let renumbered = branch.and_then(|(group, index)| {
            let index: u64 = index.parse().ok()?;
            Some(format!("arrived/{group}/{:010}", 9_u64.checked_sub(index)?))
        });
        match renumbered.filter(|_| value.is_some()) {
            Some(other) => effects.writes.insert(other.into(), value),
            None => effects.writes.insert(key, value),
        };
    }
}

fn apply(turn: &mut Turn<'_>, effects: Effects) -> Result<(), TurnError> {
    let Effects { writes, sends, alarm, tasks, events, replies, listing, root, .. } = effects;
    for (key, value) in writes {
        match value {
            Some(value) => turn.put_json(&key, value)?,
            None => turn.delete(&key),
        }
    }
    for Send { to, body } in sends {
        turn.send(&to, &body)?;
    }
    match alarm {
        AlarmChange::Keep => {}
        AlarmChange::Off => turn.clear_alarm(),
        AlarmChange::At(due) => turn.set_alarm(due),
    }
    for change in tasks {
        match change {
            TaskChange::Dispatch(Dispatch { task, executor, input }) => {
                turn.dispatch(task.as_str(), &executor, &input)?
            }
            TaskChange::Cancel(task) => turn.cancel(task.as_str())?,
        }
    }
    for event in events {
        turn.emit(event.event_type, &event.data)?;
    }
    for Reply { to, body } in replies {
        turn.reply(&to, &body)?;
    }
    if let Some(listing) = listing {
        turn.list(listing);
    }
    if let Some(root) = root {
        turn.belong_to(root);
    }
    Ok(())
}
