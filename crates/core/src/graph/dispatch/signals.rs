//! Signals: what a person or another system tells a run.
//!
//! A signal goes to the token that has waited longest for it; one that nobody waits for yet is kept.

use std::ops::Bound;
use std::sync::Arc;

use super::{Coordinator, Trouble};
use crate::definition::workflow::NodeIndex;
use crate::expression::{Template, Value};
use crate::failure::{Failure, FailureKind};
use crate::graph::token::{Status, Token, TokenId};
use crate::json::Json;
use crate::limits;
use crate::time::Timestamp;
use crate::turn::{Storage, TurnError, prefix_end};

/// Where tokens wait for signals, in the order in which they began to: `wait/<name>/<since>/<token>`.
const WAITS: &str = "wait/";

/// Where signals are kept that nobody has waited for: `signal/<name>/<number>`.
const SIGNALS: &str = "signal/";

/// Waits read at once.
const WAITS_PER_READ: usize = 100;

/// Where a token waits: `waits/<token>` holds the key of its wait.
fn waits_key(token: TokenId) -> String {
    format!("waits/{:010}", token.0)
}

/// The signal that a token waits for, and whether a signal would find it there. For those who only look.
pub(in crate::graph) fn wait_of(storage: &dyn Storage, token: TokenId) -> Result<Option<(String, bool)>, TurnError> {
    let Some(stored) = storage.get(&waits_key(token))? else { return Ok(None) };
    let wait: String = stored.decode()?;
    let name = wait.split('/').nth(1).unwrap_or_default().to_owned();
    let is_found = storage.get(&wait)?.is_some();
    Ok(Some((name, is_found)))
}

/// Twenty digits hold every time, so that text order is time order.
fn wait_key(name: &str, since: Timestamp, token: TokenId) -> String {
    format!("{WAITS}{name}/{:020}/{:010}", since.0, token.0)
}

impl Coordinator<'_, '_> {
    /// Takes a signal that came before, or waits for one.
    pub(super) fn wait_for_signal(
        &mut self,
        token: &mut Token,
        index: NodeIndex,
        signal: &Template,
    ) -> Result<(), Trouble> {
        let name = self.render(token, signal, None, "wait")?.value;
        let name = checked_name(&name).map_err(|message| {
            Trouble::Run(Failure::last(FailureKind::Expression, &format!("`wait` of node `{}`: {message}", token.node)))
        })?;
        if let Some((key, payload)) = self.first(&format!("{SIGNALS}{name}/"))? {
            self.rows.turn.delete(&key);
            self.rows.kept.progress.signals.0 -= 1;
            return self.complete(token, &Value::from_json(&payload)?);
        }
        let now = self.rows.turn.now();
        token.change(Status::WaitingForSignal, now)?;
        self.rows.save_token(token)?;
        let wait = wait_key(&name, now, token.id);
        self.rows.turn.put(&wait, &())?;
        self.rows.turn.put(&waits_key(token.id), &wait)?;
        let until = self.workflow.node(index).timeout_ms.map(|timeout_ms| now.plus_ms(timeout_ms));
        if let Some(due) = until {
            self.set_timer(&super::timers::timeout(token.id), due)?;
        }
        Ok(self.emit_waiting(token, Some(&name), until)?)
    }

    /// A signal has come. An error when it cannot be kept.
    pub(in crate::graph) fn on_signal(&mut self, name: &str, payload: &Json) -> Result<(), TurnError> {
        checked_name(&name.into()).map_err(TurnError::Failed)?;
        self.emit_signal(name, payload)?;
        if let Some(token) = self.longest_waiting(name)? {
            return self.attempt_with(token, |this, token| {
                this.stop_waiting(token)?;
                this.stop_timeout(token)?;
                this.complete(token, &Value::from_json(payload)?)
            });
        }
        let (kept, received) = &mut self.rows.kept.progress.signals;
        if *kept >= limits::SIGNALS_KEPT_MAX {
            return Err(TurnError::failed(format!(
                "the run keeps {kept} signals that nobody waits for (`SIGNALS_KEPT_MAX`)"
            )));
        }
        *kept += 1;
        *received += 1;
        let key = format!("{SIGNALS}{name}/{received:010}");
        self.rows.turn.put_json(&key, payload.clone())
    }

    /// The token that has waited longest for a signal. Those inside of what is over, and not swept yet, are passed over.
    fn longest_waiting(&mut self, name: &str) -> Result<Option<Token>, TurnError> {
        let prefix = format!("{WAITS}{name}/");
        let end = prefix_end(&prefix);
        let mut from: Bound<Arc<str>> = Bound::Included(prefix.into());
        loop {
            let waits = self.rows.turn.scan(from.as_ref().map(|key| &**key), Bound::Excluded(&end), WAITS_PER_READ)?;
            let is_last = waits.len() < WAITS_PER_READ;
            for (key, _) in waits {
                let id = key.rsplit('/').next().and_then(|digits| digits.parse().ok()).map(TokenId);
                let waiting = self.active(id)?.filter(|token| token.status == Status::WaitingForSignal);
                if waiting.is_some() {
                    return Ok(waiting);
                }
                from = Bound::Excluded(key);
            }
            if is_last {
                return Ok(None);
            }
        }
    }

    /// A token waits no longer.
    pub(super) fn stop_waiting(&mut self, token: &Token) -> Result<(), TurnError> {
        let key = waits_key(token.id);
        if let Some(wait) = self.rows.turn.get::<String>(&key)? {
            self.rows.turn.delete(&key);
            self.rows.turn.delete(&wait);
        }
        Ok(())
    }

    fn first(&mut self, prefix: &str) -> Result<Option<(std::sync::Arc<str>, Json)>, TurnError> {
        let end = prefix_end(prefix);
        Ok(Storage::scan(self.rows.turn, Bound::Included(prefix), Bound::Excluded(&end), 1)?.into_iter().next())
    }
}

/// Names of signals are ids, so that they can be part of a path.
fn checked_name(name: &Value) -> Result<String, String> {
    let text = name.as_str().ok_or_else(|| format!("the signal's name is {}, expected text", name.type_name()))?;
    crate::ids::RequestId::given(text).map_err(|error| error.to_string().replace("request id", "signal"))?;
    Ok(text.to_owned())
}
