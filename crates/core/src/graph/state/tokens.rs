//! Tokens on disk.
//!
//! A token at a join is not here: it is kept with what its branch brings, see [`super::groups::Arrival`].

use super::{Rows, TOKENS_KEPT_MAX, numbered};
use crate::graph::token::{Token, TokenId};
use crate::turn::TurnError;

/// Where all tokens are.
pub(in crate::graph) const TOKENS: &str = "token/";

pub(in crate::graph) fn token_key(id: TokenId) -> String {
    numbered(TOKENS, id.0)
}

impl Rows<'_, '_> {
    /// A token.
    pub(in crate::graph) fn token(&self, id: TokenId) -> Result<Option<Token>, TurnError> {
        match self.kept.tokens.get(&id) {
            Some(token) => Ok(Some(Token::clone(token))),
            None => self.turn.get(&token_key(id)),
        }
    }

    /// A token that is about to be changed and written.
    pub(in crate::graph) fn take_token(&mut self, id: TokenId) -> Result<Option<Token>, TurnError> {
        match self.kept.tokens.remove(&id) {
            Some(token) => Ok(Some(*token)),
            None => self.turn.get(&token_key(id)),
        }
    }

    /// Writes a token.
    pub(in crate::graph) fn save_token(&mut self, token: &Token) -> Result<(), TurnError> {
        if token.status.is_terminal() {
            self.kept.tokens.remove(&token.id);
        } else if self.kept.tokens.len() < TOKENS_KEPT_MAX {
            self.kept.tokens.insert(token.id, Box::new(token.clone()));
        } else {
            self.kept.tokens.remove(&token.id);
        }
        self.turn.put(&token_key(token.id), token)
    }

    /// The first of `count` numbers for new tokens.
    pub(in crate::graph) fn next_tokens(&mut self, count: u64) -> TokenId {
        let last = &mut self.kept.progress.last_token;
        let first = TokenId(last.0 + 1);
        last.0 = last.0.saturating_add(count);
        first
    }
}
