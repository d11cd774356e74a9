//! Looking at what is active in a run, for those who do not take part in it.
//!
//! Owns the way through the rows: tokens by their numbers ([`window`]), and everything that is active, group instance by group instance ([`Walk`]). Rows
//! are read one by one while the run may go on, so what is found was so at some point of the reading. Decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::groups::{Branch, Group, arrival_key, branch_key, branches_of, group_key};
use super::run::decoded;
use super::tokens::{ALIKE, Alike, after_arrival, alike_key, token_key};
use crate::graph::token::{GroupId, Token, TokenId};
use crate::limits;
use crate::turn::{Entries, Storage, TurnError, prefix_end};

/// First tokens of branches that are looked at in one piece.
const WINDOW: u64 = 1_000;

/// Rows of branches, and rows that tokens share, that are read at once.
const ROWS_PER_READ: usize = 100;

/// What is met on the way.
pub(in crate::graph) enum Met<'a> {
    /// A token that is active.
    Token(&'a Token),
    /// A token that ought to be there.
    NoToken(TokenId),
    /// A group instance. What is active in it comes next.
    Group,
    /// A group instance that ought to be there.
    NoGroup(GroupId),
    /// The end of a group instance, with the branches found that have not arrived; nothing when not all were looked for.
    EndOfGroup(GroupId, &'a Group, Option<u64>),
}

/// How to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::graph) enum Go {
    /// With what comes next.
    On,
    /// Behind the end of the innermost group instance.
    Out,
}

/// A way through everything that is active in a run.
pub(in crate::graph) struct Walk<'s, V> {
    storage: &'s dyn Storage,
    visit: V,
    /// How many first tokens of branches may still be looked at: most of them may be over.
    left: u64,
}

impl<'s, V: FnMut(Met<'_>) -> Result<Go, TurnError>> Walk<'s, V> {
    pub(in crate::graph) fn new(storage: &'s dyn Storage, looked_at_max: u64, visit: V) -> Self {
        Self { storage, visit, left: looked_at_max }
    }

    /// Goes through a branch; through all of a run if it is what is outside of all groups.
    pub(in crate::graph) fn branch(&mut self, branch: &Branch) -> Result<Go, TurnError> {
        for id in &branch.tokens {
            let go = match token(self.storage, *id)? {
                // It has ended since its branch was read.
                Some(token) if token.status.is_terminal() => Go::On,
                Some(token) => (self.visit)(Met::Token(&token))?,
                None => (self.visit)(Met::NoToken(*id))?,
            };
            if go == Go::Out {
                return Ok(go);
            }
        }
        for id in &branch.groups {
            if self.group(*id)? == Go::Out {
                return Ok(Go::Out);
            }
        }
        Ok(Go::On)
    }

    fn group(&mut self, id: GroupId) -> Result<Go, TurnError> {
        let Some(group) = decoded::<Group>(self.storage, &group_key(id))? else {
            return (self.visit)(Met::NoGroup(id));
        };
        if (self.visit)(Met::Group)? == Go::Out {
            return Ok(Go::Out);
        }
        let unsettled = group.created.saturating_sub(group.arrived + group.ended);
        let mut found = 0;
        let mut is_whole = self.branches_with_rows(id, &mut found)? == Go::On;
        if is_whole && found < unsettled {
            is_whole = self.branches_without_rows(id, &group, unsettled - found, &mut found)? == Go::On;
        }
        (self.visit)(Met::EndOfGroup(id, &group, is_whole.then_some(found)))
    }

    fn branches_with_rows(&mut self, id: GroupId, found: &mut u64) -> Result<Go, TurnError> {
        let prefix = branches_of(id);
        let end = prefix_end(&prefix);
        let mut from: Bound<Arc<str>> = Bound::Included(prefix.into());
        loop {
            let rows = self.storage.scan(from.as_ref().map(|key| &**key), Bound::Excluded(&end), ROWS_PER_READ)?;
            let is_last = rows.len() < ROWS_PER_READ;
            for (key, branch) in read::<Branch>(rows)? {
                *found += u64::from(!branch.has_arrived);
                if self.branch(&branch)? == Go::Out {
                    return Ok(Go::Out);
                }
                from = Bound::Excluded(key);
            }
            if is_last {
                return Ok(Go::On);
            }
        }
    }

    /// Those that are as they began. Of them nothing is known but their first tokens.
    fn branches_without_rows(
        &mut self,
        id: GroupId,
        group: &Group,
        mut wanted: u64,
        found: &mut u64,
    ) -> Result<Go, TurnError> {
        let mut next = 0;
        while wanted > 0 && next < group.created {
            if self.left == 0 {
                return Ok(Go::Out);
            }
            let count = WINDOW.min(group.created - next).min(self.left);
            self.left -= count;
            let (first, last) = (group.first_token_of(next), group.first_token_of(next + count - 1));
            for token in window(self.storage, first, last)?.iter().filter(|token| !token.status.is_terminal()) {
                let index = token.id.0 - group.first_token.0;
                if self.storage.get(&branch_key(id, index))?.is_some() {
                    continue;
                }
                (*found, wanted) = (*found + 1, wanted.saturating_sub(1));
                if (self.visit)(Met::Token(token))? == Go::Out {
                    return Ok(Go::Out);
                }
            }
            next += count;
        }
        Ok(Go::On)
    }
}

/// A token, unless it is at a join.
fn token(storage: &dyn Storage, id: TokenId) -> Result<Option<Token>, TurnError> {
    match decoded(storage, &token_key(id))? {
        Some(token) => Ok(Some(token)),
        None => Ok(window(storage, id, id)?.pop()),
    }
}

/// The tokens with these numbers, in their order, without those at joins. Reads about as many rows as there are numbers.
pub(in crate::graph) fn window(storage: &dyn Storage, first: TokenId, last: TokenId) -> Result<Vec<Token>, TurnError> {
    // Shared rows first: a token that gets a row of its own meanwhile is found there.
    let shared = sharing(storage, first, last)?;
    let (from, to) = (token_key(first), token_key(last));
    let own = storage.scan(Bound::Included(&from), Bound::Included(&to), limits::SCAN_ROWS_MAX)?;
    let mut tokens: Vec<Token> = read(own)?.into_iter().map(|(_, token)| token).collect();
    let has_row: BTreeSet<TokenId> = tokens.iter().map(|token| token.id).collect();
    for alike in shared {
        let among: Vec<Token> = alike.between(first, last).filter(|token| !has_row.contains(&token.id)).collect();
        let arrived = arrived(storage, &among)?;
        tokens.extend(among.into_iter().map(|token| {
            let arrived = token.branch().and_then(|place| arrived.get(&place.index));
            after_arrival(token, arrived)
        }));
    }
    tokens.sort_unstable_by_key(|token| token.id);
    Ok(tokens)
}

/// The shared rows in which there are tokens with these numbers.
fn sharing(storage: &dyn Storage, first: TokenId, last: TokenId) -> Result<Vec<Alike>, TurnError> {
    let end = prefix_end(ALIKE);
    let mut found: Vec<Alike> = Vec::new();
    let mut from: Bound<Arc<str>> = Bound::Included(alike_key(last).into());
    loop {
        let rows = storage.scan(from.as_ref().map(|key| &**key), Bound::Excluded(&end), ROWS_PER_READ)?;
        let is_last = rows.len() < ROWS_PER_READ;
        for (key, alike) in read::<Alike>(rows)? {
            // The last ones come first: all further rows are before this one.
            let is_before = alike.begins_at() <= first;
            found.push(alike);
            if is_before {
                return Ok(found);
            }
            from = Bound::Excluded(key);
        }
        if is_last {
            return Ok(found);
        }
    }
}

/// The arrivals of the branches that these tokens are the first of, which are neighbours.
fn arrived(storage: &dyn Storage, tokens: &[Token]) -> Result<BTreeMap<u64, Token>, TurnError> {
    /// What of an arrival is wanted: what it brings may be large.
    #[derive(Deserialize)]
    struct Arrived {
        token: Token,
    }
    let places = tokens.first().and_then(Token::branch).zip(tokens.last().and_then(Token::branch));
    let Some((first, last)) = places else { return Ok(BTreeMap::new()) };
    let (from, to) = (arrival_key(first.group, first.index), arrival_key(last.group, last.index));
    let rows = storage.scan(Bound::Included(&from), Bound::Included(&to), limits::SCAN_ROWS_MAX)?;
    let index = |key: &str| key.rsplit('/').next().and_then(|digits| digits.parse().ok()).unwrap_or(u64::MAX);
    Ok(read::<Arrived>(rows)?.into_iter().map(|(key, arrived)| (index(&key), arrived.token)).collect())
}

/// Rows as what they hold.
pub(in crate::graph) fn read<T: DeserializeOwned>(rows: Entries) -> Result<Vec<(Arc<str>, T)>, TurnError> {
    let decode = |(key, stored): (Arc<str>, crate::json::Json)| {
        let value = stored.decode().map_err(|source| TurnError::Stored { key: key.to_string(), source })?;
        Ok((key, value))
    };
    rows.into_iter().map(decode).collect()
}
