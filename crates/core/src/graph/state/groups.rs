//! Group instances and their branches on disk.
//!
//! The first tokens of an instance's branches have numbers in a row, so that a branch that is as it began needs no row: its first token
//! is active, and nothing else is known of it. Otherwise a branch has a row while anything in it is active. One that has arrived has another,
//! with what it brings to the join; that row stays, as its token's (without what it brought, if that is much), and how the token ended is told by
//! how the instance was closed.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::context::overlay_key;
use super::{Held, Rows, numbered};
use crate::expression::Value;
use crate::graph::planning::synchronization::Standing;
use crate::graph::state::run::AfterJoin;
use crate::graph::token::{GroupId, Iterations, NodeError, Place, Token, TokenId};
use crate::json::Json;
use crate::time::Timestamp;
use crate::turn::{TurnError, prefix_end};

/// Arrivals, each with the index of its branch.
pub(in crate::graph) type Arrivals = Vec<(u64, Arc<Arrival>)>;

/// A group instance.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::graph) struct Group {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::graph) name: Option<Arc<str>>,
    /// The token that opened it, and what of it the continuation inherits.
    pub(in crate::graph) opener: TokenId,
    /// The first token of its first branch; those of the others have the numbers after it.
    pub(in crate::graph) first_token: TokenId,
    pub(in crate::graph) path: Arc<str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::graph) lineage: Vec<Place>,
    #[serde(default, skip_serializing_if = "Iterations::is_empty")]
    pub(in crate::graph) iterations: Iterations,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::graph) error: Option<NodeError>,
    /// The transitions that opened it, each with its first branch.
    pub(in crate::graph) parts: Vec<GroupPart>,
    /// The transition whose join closes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::graph) join: Option<usize>,
    pub(in crate::graph) total: u64,
    /// How many branches have a token so far.
    pub(in crate::graph) created: u64,
    pub(in crate::graph) arrived: u64,
    /// How many ended without arriving.
    pub(in crate::graph) ended: u64,
}

/// One of the transitions that opened a group instance.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(in crate::graph) struct GroupPart {
    pub(in crate::graph) transition: usize,
    pub(in crate::graph) first: u64,
}

/// What is active in a branch, and what it has written.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::graph) struct Branch {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::graph) tokens: Vec<TokenId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::graph) groups: Vec<GroupId>,
    /// What of the context it sees its own value of: `state.answer`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::graph) written: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::graph) has_arrived: bool,
}

/// How an instance was closed, and with it the tokens that waited at its join.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(in crate::graph) struct Closed {
    pub(in crate::graph) arrivals: AfterJoin,
    pub(in crate::graph) at: Timestamp,
}

/// A branch that has arrived: its token at the join, and what it brings to each merge.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::graph) struct Arrival {
    pub(in crate::graph) token: Token,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::graph) brings: Vec<Bring>,
    /// Whether that is dropped after the join.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::graph) is_large: bool,
}

/// What a branch brings to one merge.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::graph) struct Bring {
    pub(in crate::graph) value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::graph) key: Option<Arc<str>>,
}

/// Items per row: small enough that a branch that reads its own does not read them all, large enough that rows are few.
const ITEMS_PER_ROW: usize = 256;

/// Rows of items kept in memory.
const ITEM_ROWS_KEPT: usize = 16;

/// Rows of items that were read last.
#[derive(Default)]
pub(in crate::graph) struct ItemsCache {
    rows: VecDeque<(String, Value, usize)>,
}

impl ItemsCache {
    pub(in crate::graph) fn bytes(&self) -> usize {
        self.rows.iter().map(|(_, _, bytes)| bytes).sum()
    }

    fn insert(&mut self, key: String, row: Value, bytes: usize) {
        if self.rows.len() == ITEM_ROWS_KEPT {
            self.rows.pop_front();
        }
        self.rows.push_back((key, row, bytes));
    }
}

impl Group {
    pub(in crate::graph) fn standing(&self, group: GroupId) -> Standing {
        Standing { group, total: self.total, arrived: self.arrived, ended: self.ended }
    }

    /// The transition that opened branch `index`.
    pub(in crate::graph) fn opened_by(&self, index: u64) -> usize {
        let part = self.parts.iter().rev().find(|part| part.first <= index);
        part.or(self.parts.first()).map_or(0, |part| part.transition)
    }

    /// The first token of branch `index`.
    pub(in crate::graph) fn first_token_of(&self, index: u64) -> TokenId {
        TokenId(self.first_token.0 + index)
    }

    /// Its name, for people.
    pub(in crate::graph) fn shown_as(&self) -> &str {
        self.name.as_deref().unwrap_or("branches")
    }
}

impl Branch {
    /// A branch as it begins.
    fn begun(first: TokenId) -> Self {
        Self { tokens: vec![first], ..Self::default() }
    }

    pub(in crate::graph) fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.groups.is_empty()
    }
}

pub(in crate::graph) fn group_key(id: GroupId) -> String {
    numbered("group/", id.0)
}

/// Where the branches of a group instance are.
pub(in crate::graph) fn branches_of(group: GroupId) -> String {
    numbered("branch/", group.0) + "/"
}

pub(in crate::graph) fn branch_key(group: GroupId, index: u64) -> String {
    numbered(&branches_of(group), index)
}

/// Where is told how group instances were closed.
pub(in crate::graph) const CLOSED: &str = "closed/";

pub(in crate::graph) fn closed_key(id: GroupId) -> String {
    numbered(CLOSED, id.0)
}

/// Where the arrivals of all group instances are.
pub(in crate::graph) const ARRIVALS: &str = "arrived/";

/// Where the arrivals of a group instance are, in the order of its branches.
pub(in crate::graph) fn arrivals_of(group: GroupId) -> String {
    numbered(ARRIVALS, group.0) + "/"
}

pub(in crate::graph) fn arrival_key(group: GroupId, index: u64) -> String {
    numbered(&arrivals_of(group), index)
}

/// Where the items of a group instance are.
pub(in crate::graph) fn items_of(group: GroupId) -> String {
    numbered("items/", group.0) + "/"
}

fn items_key(group: GroupId, row: u64) -> String {
    numbered(&items_of(group), row)
}

/// Arrivals kept in memory, so that a join that fires need not read them all. They are few or many; what they bring may be large.
const ARRIVALS_KEPT_BYTES: usize = 4 * 1024 * 1024;

/// What branches bring is dropped after the join, if it has more bytes than this; less stays in the rows of their tokens.
const BRINGS_KEPT_BYTES: usize = 512;

/// What has arrived at the joins of open group instances: all of an instance, as far as these fit.
#[derive(Default)]
pub(in crate::graph) struct ArrivalsCache {
    by_group: BTreeMap<GroupId, (BTreeMap<u64, Arc<Arrival>>, usize)>,
    bytes: usize,
}

impl ArrivalsCache {
    pub(in crate::graph) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds to a group instance of which `arrived` were here before. One that is not here as a whole is of no use.
    fn insert(&mut self, place: Place, arrived: u64, arrival: Arrival, bytes: usize) {
        let (arrivals, held) = self.by_group.entry(place.group).or_default();
        if arrivals.len() as u64 == arrived && self.bytes + bytes <= ARRIVALS_KEPT_BYTES {
            arrivals.insert(place.index, Arc::new(arrival));
            *held += bytes;
            self.bytes += bytes;
        } else {
            self.remove(place.group);
        }
    }

    fn remove(&mut self, group: GroupId) {
        if let Some((_, held)) = self.by_group.remove(&group) {
            self.bytes -= held;
        }
    }
}

impl Rows<'_, '_> {
    /// Keeps what a branch brings, with its token at the join.
    pub(in crate::graph) fn insert_arrival(
        &mut self,
        place: Place,
        token: Token,
        brings: Vec<Bring>,
    ) -> Result<(), TurnError> {
        let mut arrival = Arrival { token, brings, is_large: false };
        let mut json = Json::encode(&arrival)?;
        if !arrival.brings.is_empty() && json.bytes() > BRINGS_KEPT_BYTES {
            arrival.is_large = Json::count(&arrival.brings, BRINGS_KEPT_BYTES).is_err();
            json = if arrival.is_large { Json::encode(&arrival)? } else { json };
        }
        let arrived = self.open_group(place.group)?.arrived;
        self.kept.arrivals.insert(place, arrived, arrival, json.bytes());
        self.turn.put_json(&arrival_key(place.group, place.index), json)
    }

    /// Drops what a branch has brought, and leaves its token.
    pub(in crate::graph) fn drop_brings(
        &mut self,
        group: GroupId,
        index: u64,
        arrival: &Arrival,
    ) -> Result<(), TurnError> {
        let token = arrival.token.clone();
        self.turn.put(&arrival_key(group, index), &Arrival { token, brings: Vec::new(), is_large: false })
    }

    /// Up to `limit` arrivals of a group instance, from branch `from` on, and how many bytes were read for that. `arrived` is how many it has.
    pub(in crate::graph) fn arrivals(
        &mut self,
        group: GroupId,
        arrived: u64,
        from: u64,
        limit: usize,
    ) -> Result<(Arrivals, usize), TurnError> {
        let kept = self.kept.arrivals.by_group.get(&group).map(|(kept, _)| kept);
        if let Some(kept) = kept.filter(|kept| kept.len() as u64 == arrived) {
            return Ok((kept.range(from..).take(limit).map(|(index, arrival)| (*index, arrival.clone())).collect(), 0));
        }
        let prefix = arrivals_of(group);
        let (first, end) = (arrival_key(group, from), prefix_end(&prefix));
        let rows = self.turn.scan(Bound::Included(&first), Bound::Excluded(&end), limit)?;
        let decoded = |(key, stored): (Arc<str>, Json)| {
            let index = key[prefix.len()..].parse().unwrap_or(u64::MAX);
            let arrival = stored.decode().map_err(|source| TurnError::Stored { key: key.to_string(), source })?;
            Ok((index, arrival))
        };
        let bytes = rows.iter().map(|(_, stored)| stored.bytes()).sum();
        Ok((rows.into_iter().map(decoded).collect::<Result<_, TurnError>>()?, bytes))
    }

    /// Forgets the arrivals of a group instance that is over; their rows stay.
    pub(in crate::graph) fn forget_arrivals(&mut self, group: GroupId) {
        self.kept.arrivals.remove(group);
    }

    /// The number of a new group instance.
    pub(in crate::graph) fn next_group(&mut self) -> GroupId {
        let last = &mut self.kept.progress.last_group;
        last.0 += 1;
        *last
    }

    /// A group instance, unless it is closed.
    pub(in crate::graph) fn group(&mut self, id: GroupId) -> Result<Option<&Group>, TurnError> {
        if !self.kept.groups.contains_key(&id) {
            match self.turn.get(&group_key(id))? {
                Some(group) => self.kept.groups.insert(id, group),
                None => return Ok(None),
            };
        }
        Ok(self.kept.groups.get(&id))
    }

    /// A group instance that is open, because something active is in it.
    pub(in crate::graph) fn open_group(&mut self, id: GroupId) -> Result<&Group, TurnError> {
        self.group(id)?
            .ok_or_else(|| TurnError::failed(format!("group instance {id} is missing from the run's storage")))
    }

    /// Changes a group instance that is open.
    pub(in crate::graph) fn change_group(&mut self, id: GroupId) -> Result<&mut Group, TurnError> {
        self.open_group(id)?;
        self.changed_groups.insert(id);
        Ok(self.kept.groups.get_mut(&id).expect("it was found just above"))
    }

    /// Opens a group instance.
    pub(in crate::graph) fn insert_group(&mut self, id: GroupId, group: Group) {
        self.kept.groups.insert(id, group);
        self.changed_groups.insert(id);
    }

    /// Closes a group instance: what still happens inside it is of no interest.
    pub(in crate::graph) fn remove_group(&mut self, id: GroupId) -> Result<Option<Group>, TurnError> {
        self.group(id)?;
        self.changed_groups.remove(&id);
        self.turn.delete(&group_key(id));
        Ok(self.kept.groups.remove(&id))
    }

    /// A branch; the part of the run outside of all groups when `place` is `None`. Nothing when it is over.
    pub(in crate::graph) fn branch(&mut self, place: Option<Place>) -> Result<Option<&Branch>, TurnError> {
        let Some(place) = place else { return Ok(Some(&self.kept.progress.root)) };
        Ok(self.held(place)?.branch.as_ref())
    }

    /// Changes a branch that is not over.
    pub(in crate::graph) fn change_branch(&mut self, place: Option<Place>) -> Result<&mut Branch, TurnError> {
        let Some(place) = place else { return Ok(&mut self.kept.progress.root) };
        self.changed_branches.insert((place.group, place.index));
        let held = self.held(place)?;
        held.branch.as_mut().ok_or_else(|| {
            TurnError::failed(format!(
                "branch {} of instance {} is missing from the run's storage",
                place.index, place.group
            ))
        })
    }

    /// Begins a branch, which needs no row for that.
    pub(in crate::graph) fn begin_branch(&mut self, place: Place, first: TokenId) {
        let held = Held { branch: Some(Branch::begun(first)), ..Held::default() };
        self.kept.branches.insert((place.group, place.index), Box::new(held));
    }

    /// Ends a branch, together with what only it has seen.
    pub(in crate::graph) fn remove_branch(&mut self, place: Place) -> Result<(), TurnError> {
        self.changed_branches.insert((place.group, place.index));
        let held = self.held(place)?;
        let (branch, first_written) = (held.branch.take(), std::mem::take(&mut held.first_written));
        held.unsaved.clear();
        for name in branch.iter().flat_map(|branch| &branch.written) {
            if !first_written.contains(name) {
                self.turn.delete(&overlay_key(place.group, place.index, name));
            }
        }
        Ok(())
    }

    pub(super) fn held(&mut self, place: Place) -> Result<&mut Held, TurnError> {
        let key = (place.group, place.index);
        if !self.kept.branches.contains_key(&key) {
            let stored = self.turn.get(&branch_key(place.group, place.index))?;
            let has_row = stored.is_some();
            let branch = stored.map_or_else(|| self.as_it_began(place), |branch| Ok(Some(branch)))?;
            self.kept.branches.insert(key, Box::new(Held { branch, has_row, ..Held::default() }));
        }
        Ok(self.kept.branches.get_mut(&key).expect("it was put there just above"))
    }

    /// A branch without a row. Nothing when it is over.
    fn as_it_began(&mut self, place: Place) -> Result<Option<Branch>, TurnError> {
        let Some(group) = self.group(place.group)? else { return Ok(None) };
        let first = group.first_token_of(place.index);
        let is_active = self.token(first)?.is_some_and(|token| !token.status.is_terminal());
        Ok(is_active.then(|| Branch::begun(first)))
    }

    /// Keeps what the branches of a part are given, one after the other from branch `first`.
    pub(in crate::graph) fn save_items(
        &mut self,
        group: GroupId,
        first: u64,
        items: &[Value],
    ) -> Result<(), TurnError> {
        // A row begins at a multiple of its size, so that a branch's row follows from its index. Parts of one instance may share a row.
        let mut index = first as usize;
        let mut rest = items;
        while !rest.is_empty() {
            let room = ITEMS_PER_ROW - index % ITEMS_PER_ROW;
            let (row, later) = rest.split_at(room.min(rest.len()));
            let key = items_key(group, (index / ITEMS_PER_ROW) as u64);
            let mut values: Vec<Value> = self.turn.get::<Vec<Value>>(&key)?.unwrap_or_default();
            values.resize(index % ITEMS_PER_ROW, Value::Null);
            values.extend(row.iter().cloned());
            self.turn.put(&key, &values)?;
            index += row.len();
            rest = later;
        }
        Ok(())
    }

    /// What branch `index` was given.
    pub(in crate::graph) fn item(&mut self, group: GroupId, index: u64) -> Result<Value, TurnError> {
        let key = items_key(group, index / ITEMS_PER_ROW as u64);
        let place = (index % ITEMS_PER_ROW as u64) as usize;
        if let Some((_, row, _)) = self.kept.items.rows.iter().find(|(known, _, _)| *known == key) {
            return Ok(row.at(place).cloned().unwrap_or_default());
        }
        let stored: Option<Json> = crate::turn::Storage::get(self.turn, &key)?;
        let stored = stored.unwrap_or_else(Json::null);
        let row: Value = stored.decode().map_err(|source| TurnError::Stored { key: key.clone(), source })?;
        let item = row.at(place).cloned().unwrap_or_default();
        self.kept.items.insert(key, row, stored.bytes());
        Ok(item)
    }
}
