//! State: what a run keeps in its storage.
//!
//! Owns the keys and the stored forms: facts and progress ([`run`]), tokens ([`tokens`]), group instances and branches ([`groups`]), context and
//! branch overlays ([`context`]), artifacts ([`artifacts`]); and the way through them for those who only look ([`walk`]). A turn reads and writes what it touches, never the whole run. Decides nothing.

pub(super) mod artifacts;
pub(super) mod context;
pub(super) mod groups;
pub(super) mod run;
pub(super) mod tokens;
pub(super) mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::expression::Value;
use crate::json::Json;
use crate::turn::{Turn, TurnError};

use super::token::{GroupId, Token, TokenId};
use context::ContextCache;
use groups::{ArrivalsCache, Branch, Group, ItemsCache};
use run::{Facts, Progress};
use tokens::Alike;

/// The largest number in a key.
pub(in crate::graph) const TOKEN_NUMBER_MAX: u64 = 9_999_999_999;

/// A key: `prefix` and a number of ten digits, so that keys are in the order of their numbers.
pub(in crate::graph) fn numbered(prefix: &str, number: u64) -> String {
    debug_assert!(number <= TOKEN_NUMBER_MAX, "{prefix} {number}");
    let mut digits = [b'0'; 10];
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    let mut key = String::with_capacity(prefix.len() + digits.len());
    key.push_str(prefix);
    key.extend(digits.map(char::from));
    key
}

/// What is kept of a run in memory between two turns: a reading of its storage.
pub(super) struct Kept {
    pub(super) facts: Facts,
    pub(super) progress: Progress,
    pub(super) input: Value,
    pub(super) context: ContextCache,
    pub(super) items: ItemsCache,
    arrivals: ArrivalsCache,
    pub(super) groups: BTreeMap<GroupId, Group>,
    /// Tokens that are active, as they are on disk.
    // Boxed, so that the maps move pointers and not what they point to.
    tokens: BTreeMap<TokenId, Box<Token>>,
    branches: BTreeMap<(GroupId, u64), Box<Held>>,
}

/// Open group instances kept in memory between turns.
const GROUPS_KEPT_MAX: usize = 256;

/// Active tokens, and branches, kept in memory between turns: about 300 bytes each. Those beyond are read from disk when they are needed.
const TOKENS_KEPT_MAX: usize = 50_000;

/// About how much one of them holds.
const TOKEN_BYTES: usize = 300;

impl Kept {
    pub(super) fn new(facts: Facts, progress: Progress, input: Value) -> Self {
        Self {
            facts,
            progress,
            input,
            context: ContextCache::default(),
            items: ItemsCache::default(),
            arrivals: ArrivalsCache::default(),
            groups: BTreeMap::new(),
            tokens: BTreeMap::new(),
            branches: BTreeMap::new(),
        }
    }

    /// About how much memory it holds.
    pub(super) fn bytes(&self) -> usize {
        let rows = (self.tokens.len() + self.branches.len()) * TOKEN_BYTES + self.groups.len() * 512;
        self.facts.input_bytes + self.context.bytes() + self.items.bytes() + self.arrivals.bytes() + rows + 1024
    }
}

/// A run's storage in one turn. Group instances and branches that were changed are written at the end, by [`Rows::flush`].
pub(super) struct Rows<'c, 't> {
    pub(super) turn: &'c mut Turn<'t>,
    pub(super) kept: &'c mut Kept,
    changed_groups: BTreeSet<GroupId>,
    changed_branches: BTreeSet<(GroupId, u64)>,
    /// Tokens of this turn that share a row, which is not among the turn's effects yet.
    alike: Option<Alike>,
    /// What branches have written that is not among the turn's effects yet.
    unsaved_bytes: usize,
}

/// A branch in memory.
#[derive(Default)]
struct Held {
    /// Nothing when it is over.
    branch: Option<Branch>,
    /// Whether it has a row, as far as this turn has flushed.
    has_row: bool,
    /// What it has written in this turn. It reaches the disk at the end, if the branch is not over by then.
    unsaved: BTreeMap<Arc<str>, (Value, Json)>,
    /// What it has never written before this turn, so that nothing of it is on disk.
    first_written: Vec<Arc<str>>,
}

impl<'c, 't> Rows<'c, 't> {
    pub(super) fn new(turn: &'c mut Turn<'t>, kept: &'c mut Kept) -> Self {
        if kept.groups.len() > GROUPS_KEPT_MAX {
            kept.groups.clear();
        }
        if kept.branches.len() > TOKENS_KEPT_MAX {
            kept.branches.clear();
        }
        let (changed_groups, changed_branches) = (BTreeSet::new(), BTreeSet::new());
        Self { turn, kept, changed_groups, changed_branches, alike: None, unsaved_bytes: 0 }
    }

    /// About how much this turn writes.
    pub(super) fn bytes(&self) -> usize {
        self.turn.bytes() + self.unsaved_bytes
    }

    /// Writes what was changed, so that a scan sees it too.
    pub(super) fn flush(&mut self) -> Result<(), TurnError> {
        self.unsaved_bytes = 0;
        self.flush_alike()?;
        for id in std::mem::take(&mut self.changed_groups) {
            if let Some(group) = self.kept.groups.get(&id) {
                self.turn.put(&groups::group_key(id), group)?;
            }
        }
        for (group, index) in std::mem::take(&mut self.changed_branches) {
            let Some(held) = self.kept.branches.get_mut(&(group, index)) else { continue };
            let key = groups::branch_key(group, index);
            held.first_written.clear();
            match &held.branch {
                Some(branch) => {
                    self.turn.put(&key, branch)?;
                    held.has_row = true;
                    for (name, (_, json)) in std::mem::take(&mut held.unsaved) {
                        self.turn.put_json(&context::overlay_key(group, index, &name), json)?;
                    }
                }
                None => {
                    if held.has_row {
                        self.turn.delete(&key);
                    }
                    self.kept.branches.remove(&(group, index));
                }
            }
        }
        Ok(())
    }

    /// Writes everything at the end of a turn.
    pub(super) fn end(mut self) -> Result<(), TurnError> {
        self.flush()?;
        let Kept { facts, progress, .. } = &mut *self.kept;
        let root = facts.root(self.turn.actor().name());
        if let Some(listing) = progress.relisted(facts, &root) {
            self.turn.list(listing);
        }
        self.turn.belong_to(root);
        self.turn.put(run::PROGRESS, &self.kept.progress)
    }
}
