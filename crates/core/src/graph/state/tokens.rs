//! Tokens on disk.
//!
//! A token has a row of its own, with two exceptions. One at a join is kept with what its branch brings, see [`super::groups::Arrival`]. And the
//! first tokens of neighbouring branches share a row, see [`Alike`], as long as all that happens to them is that their work is done and their branch arrives: a wide
//! fan-out costs a row for each arrival and hardly any besides. A row of its own always wins.

use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::groups::{Arrival, arrival_key};
use super::{Rows, TOKEN_NUMBER_MAX, TOKENS_KEPT_MAX, numbered};
use crate::graph::token::{Status, Token, TokenId};
use crate::turn::{TurnError, prefix_end};

/// Where all tokens are that have a row of their own.
pub(in crate::graph) const TOKENS: &str = "token/";

pub(in crate::graph) fn token_key(id: TokenId) -> String {
    numbered(TOKENS, id.0)
}

/// Where the rows are that tokens share.
pub(in crate::graph) const ALIKE: &str = "alike/";

/// The last ones first, so that the row of a token is the first one at or behind its own key.
pub(super) fn alike_key(first: TokenId) -> String {
    numbered(ALIKE, TOKEN_NUMBER_MAX - first.0)
}

/// First tokens of neighbouring branches that began in one turn: they differ in their numbers and their branches only.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::graph) struct Alike {
    first: Token,
    count: u64,
}

impl Alike {
    fn new(token: &Token) -> Self {
        let first = Token { status: Status::Dispatched, updated_at: token.created_at, ..token.clone() };
        Self { first, count: 1 }
    }

    /// Takes one more in, if it is the next of them.
    fn extend(&mut self, next: &Token) -> bool {
        let Token { id, node, parent, lineage, created_at, .. } = &self.first;
        let is_next = next.id.0 == id.0 + self.count
            && (&next.node, &next.parent, next.created_at) == (node, parent, *created_at)
            && next.branch().map(|place| place.group) == lineage.last().map(|place| place.group);
        self.count += u64::from(is_next);
        is_next
    }

    /// A token among these, as it is before its branch arrives.
    fn get(&self, id: TokenId) -> Option<Token> {
        let offset = id.0.checked_sub(self.first.id.0).filter(|offset| *offset < self.count)?;
        let mut token = self.first.clone();
        token.id = id;
        token.shares_row = true;
        if let Some(place) = token.lineage.last_mut() {
            place.index += offset;
            let around = token.path.rsplit_once(':').map_or("", |(around, _)| around);
            token.path = format!("{around}:{}", place.index).into();
        }
        Some(token)
    }

    /// The number of the first of them.
    pub(super) fn begins_at(&self) -> TokenId {
        self.first.id
    }

    /// Those with these numbers, as they are before their branches arrive.
    pub(super) fn between(&self, first: TokenId, last: TokenId) -> impl Iterator<Item = Token> {
        let end = last.0.saturating_add(1).min(self.first.id.0 + self.count);
        (first.0.max(self.first.id.0)..end).filter_map(|id| self.get(TokenId(id)))
    }
}

/// A token without a row of its own, as it is when its branch has arrived: it was done then, if that is where the branch came from.
pub(in crate::graph) fn after_arrival(mut token: Token, arrived: Option<&Token>) -> Token {
    if let Some(arrived) = arrived.filter(|arrived| arrived.parent == Some(token.id)) {
        (token.status, token.updated_at) = (Status::Completed, arrived.created_at);
    }
    token
}

impl Rows<'_, '_> {
    /// A token.
    pub(in crate::graph) fn token(&self, id: TokenId) -> Result<Option<Token>, TurnError> {
        match self.kept.tokens.get(&id) {
            Some(token) => Ok(Some(Token::clone(token))),
            None => self.stored_token(id),
        }
    }

    /// A token that is about to be changed and written.
    pub(in crate::graph) fn take_token(&mut self, id: TokenId) -> Result<Option<Token>, TurnError> {
        match self.kept.tokens.remove(&id) {
            Some(token) => Ok(Some(*token)),
            None => self.stored_token(id),
        }
    }

    fn stored_token(&self, id: TokenId) -> Result<Option<Token>, TurnError> {
        match self.turn.get(&token_key(id))? {
            Some(token) => Ok(Some(token)),
            None => self.shared_token(id),
        }
    }

    fn shared_token(&self, id: TokenId) -> Result<Option<Token>, TurnError> {
        let token = match self.alike.as_ref().and_then(|alike| alike.get(id)) {
            Some(token) => Some(token),
            None => {
                let (from, end) = (alike_key(id), prefix_end(ALIKE));
                let rows = self.turn.scan(Bound::Included(&from), Bound::Excluded(&end), 1)?;
                let decoded = |(key, stored): &(Arc<str>, crate::json::Json)| {
                    stored.decode().map_err(|source| TurnError::Stored { key: key.to_string(), source })
                };
                let alike: Option<Alike> = rows.first().map(decoded).transpose()?;
                alike.and_then(|alike| alike.get(id))
            }
        };
        let Some((token, place)) = token.and_then(|token| token.branch().map(|place| (token, place))) else {
            return Ok(None);
        };
        let arrival: Option<Arrival> = self.turn.get(&arrival_key(place.group, place.index))?;
        Ok(Some(after_arrival(token, arrival.as_ref().map(|arrival| &arrival.token))))
    }

    /// Writes a token.
    pub(in crate::graph) fn save_token(&mut self, token: &mut Token) -> Result<(), TurnError> {
        token.shares_row = false;
        self.keep_token(token);
        self.turn.put(&token_key(token.id), token)
    }

    /// Keeps a token whose work has begun, in a row with others if it may be.
    pub(in crate::graph) fn save_begun_token(&mut self, token: &mut Token) -> Result<(), TurnError> {
        if !token.shares_row {
            return self.save_token(token);
        }
        self.keep_token(token);
        self.share_row(token)
    }

    /// Adds a token to those that share a row.
    pub(in crate::graph) fn share_row(&mut self, token: &Token) -> Result<(), TurnError> {
        if self.alike.as_mut().is_some_and(|alike| alike.extend(token)) {
            return Ok(());
        }
        self.flush_alike()?;
        self.alike = Some(Alike::new(token));
        Ok(())
    }

    /// Writes the row of those that were added last.
    pub(super) fn flush_alike(&mut self) -> Result<(), TurnError> {
        match self.alike.take() {
            Some(alike) => self.turn.put(&alike_key(alike.first.id), &alike),
            None => Ok(()),
        }
    }

    /// Keeps a token in memory, if something can still happen to it.
    fn keep_token(&mut self, token: &Token) {
        if !token.status.is_terminal() && self.kept.tokens.len() < TOKENS_KEPT_MAX {
            self.kept.tokens.insert(token.id, Box::new(token.clone()));
        } else {
            self.kept.tokens.remove(&token.id);
        }
    }

    /// The first of `count` numbers for new tokens.
    pub(in crate::graph) fn next_tokens(&mut self, count: u64) -> TokenId {
        let last = &mut self.kept.progress.last_token;
        let first = TokenId(last.0 + 1);
        last.0 = last.0.saturating_add(count);
        first
    }
}
