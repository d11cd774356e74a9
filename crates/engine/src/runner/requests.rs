//! Requests from outside: who waits for which answer, and which ids have been seen.
//!
//! Owns the waiting callers and the memory of request ids. A caller's id is remembered in the same batch as the effects of
//! its request; so asking again after a crash finds either nothing of it or all of it.

use std::collections::{BTreeSet, HashMap};

use steadfast_core::ids::{ActorId, RequestId};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::Reply;
use steadfast_store::StoreError;
use steadfast_store::rows::RequestRow;

use super::Runner;
use super::mailbox::{Entry, Waiting};
use super::slot::Place;
use crate::commit::{Output, RequestError, Waiter};
use crate::metrics::Counters;
use crate::mutation::Mutation;

/// What is known of a request's id.
pub(super) enum Known {
    New,
    Unanswered,
    Answered(Json),
}

/// What a turn's replies come to.
pub(super) struct Answers {
    /// For callers that wait.
    pub(super) released: Vec<Output>,
    /// Rows of given ids.
    pub(super) remembered: Vec<RequestRow>,
    /// The caller of this turn's request, when the turn did not answer it.
    pub(super) unanswered: Option<(RequestId, Waiter)>,
}

/// Callers whose request has had its turn and will be answered by a later one.
#[derive(Default)]
pub(super) struct Waiters {
    by_request: HashMap<(ActorId, RequestId), Vec<(u64, Waiter)>>,
    sweep_at: usize,
}

/// Below this many, callers that have left are not looked for.
const SWEEP_MIN: usize = 1_024;

impl Waiters {
    /// `batch` holds the request's turn.
    pub(super) fn insert(&mut self, actor: &ActorId, id: RequestId, batch: u64, mut waiter: Waiter) {
        waiter.leave_line();
        // Callers that left are dropped when the map has doubled, which costs O(1) per caller.
        if self.by_request.len() >= self.sweep_at.max(SWEEP_MIN) {
            self.by_request.retain(|_, waiters| waiters.iter().any(|(_, waiter)| !waiter.is_closed()));
            self.sweep_at = self.by_request.len() * 2;
        }
        let same = self.by_request.entry((actor.clone(), id)).or_default();
        // A client that asks for the same thing again and again, each time giving up: the same bound for one request.
        if same.len().is_power_of_two() {
            same.retain(|(_, waiter)| !waiter.is_closed());
        }
        same.push((batch, waiter));
    }

    fn take(&mut self, actor: &ActorId, id: &RequestId) -> Vec<(u64, Waiter)> {
        if self.by_request.is_empty() {
            return Vec::new();
        }
        self.by_request.remove(&(actor.clone(), id.clone())).unwrap_or_default()
    }

    /// Tells the callers whose request's turn is lost.
    pub(super) fn call_off_after(&mut self, committed: u64, reason: &str) {
        self.by_request.retain(|_, waiters| {
            for (_, waiter) in waiters.extract_if(.., |(batch, _)| *batch > committed) {
                waiter.send(Err(RequestError::Unavailable(reason.to_owned())));
            }
            !waiters.is_empty()
        });
    }
}

impl Runner {
    /// What is known of the id of a request to an actor.
    pub(super) fn known_request(&self, place: Place, id: &RequestId) -> Result<Known, StoreError> {
        if !id.is_given() {
            return Ok(Known::New);
        }
        let slot = &self.slots[place];
        let reply = match slot.uncommitted_request(id) {
            Some(reply) => reply.clone(),
            None => match self.reader.request(&slot.id, id)? {
                None => return Ok(Known::New),
                Some(row) => row.reply,
            },
        };
        Ok(reply.map_or(Known::Unanswered, Known::Answered))
    }

    /// The row that remembers a request; `None` when its caller gave no id.
    pub(super) fn remembered(
        &self,
        actor: &ActorId,
        id: &RequestId,
        reply: Option<Json>,
        now: Timestamp,
    ) -> Option<RequestRow> {
        let expires_at = now.plus_ms(self.settings.request_memory_ms);
        let is_remembered = id.is_given() && !self.gather.mutation.is(Mutation::RequestForgotten);
        is_remembered.then(|| RequestRow { actor: actor.clone(), request: id.clone(), reply, expires_at })
    }

    /// Answers a request that had its turn before, or lets its caller wait for the answer.
    pub(super) fn answer_repeated(&mut self, place: Place, entry: Entry, known: Known) {
        let Waiting::Request { id, waiter: Some(waiter), .. } = entry.waiting else {
            unreachable!("only a request is found to be a repeated one");
        };
        Counters::add(&self.gather.counters.inputs_dropped, 1);
        match known {
            Known::Answered(reply) => self.answer_when_durable(waiter, Ok(reply)),
            Known::Unanswered | Known::New => {
                // The turn that took the request may be lost yet: then this caller must hear of it too.
                let slot = &self.slots[place];
                self.waiters.insert(&slot.id, id, slot.newest_batch(self.committed), waiter);
            }
        }
    }

    /// The replies that count: the first to each request that was asked. An answer once given stands.
    pub(super) fn first_replies(
        &self,
        place: Place,
        waiting: &Waiting,
        replies: Vec<Reply>,
    ) -> Result<Vec<Reply>, StoreError> {
        let mut first: Vec<Reply> = Vec::with_capacity(replies.len());
        let mut seen = BTreeSet::new();
        // The common turn answers once: nothing to compare, and nothing to allocate for it.
        let is_only = replies.len() == 1;
        for reply in replies {
            let is_of_this_turn = matches!(waiting, Waiting::Request { id, .. } if *id == reply.to);
            let is_open = is_of_this_turn
                || !reply.to.is_given()
                || matches!(self.known_request(place, &reply.to)?, Known::Unanswered);
            if is_open && (is_only || seen.insert(reply.to.clone())) {
                first.push(reply);
            }
        }
        Ok(first)
    }

    /// Matches a turn's replies with their callers. Takes the caller out of `waiting`.
    pub(super) fn answers_of(
        &mut self,
        actor: &ActorId,
        waiting: &mut Waiting,
        replies: Vec<Reply>,
        now: Timestamp,
    ) -> Answers {
        let mut answers = Answers { released: Vec::new(), remembered: Vec::new(), unanswered: None };
        let mut current = match waiting {
            Waiting::Request { id, waiter, .. } => waiter.take().map(|waiter| (id.clone(), waiter)),
            Waiting::Message { .. } | Waiting::Spilled { .. } | Waiting::Alarm { .. } | Waiting::Task(_) => None,
        };
        // Remembered without an answer first; a reply of this same turn replaces it below.
        if let Some((id, _)) = &current {
            answers.remembered.extend(self.remembered(actor, id, None, now));
        }
        for Reply { to, body } in replies {
            if let Some((_, waiter)) = current.take_if(|(id, _)| *id == to) {
                answers.released.push(Output::Answer(waiter, Ok(body.clone())));
            }
            for (_, waiter) in self.waiters.take(actor, &to) {
                answers.released.push(Output::Answer(waiter, Ok(body.clone())));
            }
            answers.remembered.extend(self.remembered(actor, &to, Some(body), now));
        }
        answers.unanswered = current;
        answers
    }
}
