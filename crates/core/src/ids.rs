//! Names of things: actors, shards, messages, requests, tasks.
//!
//! Owns which names are allowed and where an actor lives (its shard). Never makes an id from a clock or a
//! random number: ids come from outside or from a [`Sequence`].

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::limits;

/// An actor's full name, `kind:name`, for instance `run:order-42` or `pool:webhooks/2`.
///
/// Ordered by shard first, as the rows on disk are, so that a sorted batch is written in disk order.
#[derive(Clone)]
pub struct ActorId {
    text: Arc<str>,
    shard: Shard,
}

/// Why a text is not the name of an actor, a task or a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// There is no `:` between kind and name.
    #[error("`{0}` is not an actor id: expected `kind:name`")]
    NoKind(String),
    /// A part is empty or too long.
    #[error("{what} `{text}` has {found} characters, allowed are 1 to {max}")]
    Length {
        /// Which part it is.
        what: &'static str,
        /// The part, shortened for the message.
        text: String,
        /// How long it is.
        found: usize,
        /// How long it may be.
        max: usize,
    },
    /// A character is not allowed in this part.
    #[error("{what} `{text}` contains {found:?}, allowed are {allowed}")]
    Character {
        /// Which part it is.
        what: &'static str,
        /// The part.
        text: String,
        /// The first character that is refused.
        found: char,
        /// What would have been accepted.
        allowed: &'static str,
    },
}

impl ActorId {
    /// The actor `name` of `kind`.
    pub fn new(kind: &str, name: &str) -> Result<Self, InvalidId> {
        check("kind", kind, limits::KIND_BYTES_MAX, "a-z, 0-9, `_` and `-`", |c| {
            c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-')
        })?;
        check("actor name", name, limits::ACTOR_NAME_BYTES_MAX, "letters, digits, `.`, `_`, `-`, `:` and `/`", |c| {
            c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':' | '/')
        })?;
        Ok(Self::from_checked(&format!("{kind}:{name}")))
    }

    /// Reads `kind:name`.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let (kind, name) = text.split_once(':').ok_or_else(|| InvalidId::NoKind(shortened(text)))?;
        Self::new(kind, name)
    }

    fn from_checked(text: &str) -> Self {
        Self { text: text.into(), shard: Shard::of(text) }
    }

    /// The part before the first `:`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.text.split_once(':').map_or("", |(kind, _)| kind)
    }

    /// The part after the first `:`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text.split_once(':').map_or("", |(_, name)| name)
    }

    /// `kind:name`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Where the actor lives.
    #[must_use]
    pub fn shard(&self) -> Shard {
        self.shard
    }
}

impl PartialEq for ActorId {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for ActorId {}

impl PartialOrd for ActorId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ActorId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.shard.cmp(&other.shard).then_with(|| self.text.cmp(&other.text))
    }
}

impl Hash for ActorId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Debug for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for ActorId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for ActorId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// One of a fixed number of parts of the world. An actor belongs to one for ever, by a stable hash of its id;
/// every row on disk leads with it, so that shards can one day live on different machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Shard(pub u16);

impl Shard {
    /// How many there are. Stored in every row: changing it means moving rows.
    pub const COUNT: u16 = 64;

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }

    /// FNV-1a, because it is stable, tiny, and spreads short names well enough over 64 shards.
    fn of(text: &str) -> Self {
        let hash = stable_hash(text.as_bytes());
        // The upper half is folded in: the low bits of FNV alone follow the last characters too closely.
        Self((((hash >> 32) ^ hash) % u64::from(Self::COUNT)) as u16)
    }
}

/// A hash that is the same on every machine, in every version. Not for untrusted tables.
#[must_use]
pub fn stable_hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The order of arrival of messages and tasks, over all restarts of a store.
///
/// The upper bits are the *boot*: how many times the store has been opened for running, up to a million. The lower
/// 43 count within it, which is enough for 200,000 a second during 500 days without a restart. So numbers only grow although no counter is written per message, and a number tells in
/// which life of the process a thing was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sequence(pub u64);

impl Sequence {
    const COUNT_BITS: u32 = 43;

    /// The most boots that fit a signed 64-bit column.
    pub const BOOTS_MAX: u32 = (1 << (63 - Self::COUNT_BITS)) - 1;

    /// The first number of a boot.
    #[must_use]
    pub fn first_of(boot: u32) -> Self {
        Self(u64::from(boot) << Self::COUNT_BITS)
    }

    /// Number `count` of a boot; `None` when either is too large.
    #[must_use]
    pub fn of(boot: u32, count: u64) -> Option<Self> {
        let is_possible = boot <= Self::BOOTS_MAX && count < 1 << Self::COUNT_BITS;
        is_possible.then(|| Self(Self::first_of(boot).0 | count))
    }

    /// The count within the boot.
    #[must_use]
    pub fn count(self) -> u64 {
        self.0 & ((1 << Self::COUNT_BITS) - 1)
    }

    /// The boot in which this number was given.
    #[must_use]
    pub fn boot(self) -> u32 {
        (self.0 >> Self::COUNT_BITS) as u32
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.boot(), self.count())
    }
}

/// A task's name within its actor, chosen by the actor and stable over attempts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(Arc<str>);

impl TaskId {
    /// Takes a name of 1 to 200 printable characters.
    pub fn new(text: &str) -> Result<Self, InvalidId> {
        check("task id", text, limits::ID_BYTES_MAX, "printable ASCII characters", |c| c.is_ascii_graphic())?;
        Ok(Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names a request (or a message) that came from outside.
///
/// Given by the caller it is remembered, and the same id again gets the first answer again. Made by the engine
/// (`~17`) it only connects an answer with its caller and is forgotten with the process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(Caller);

// A number needs no allocation: most requests have no id of their own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Caller {
    Named(Arc<str>),
    Sender(Arc<str>),
    Anonymous(u64),
}

impl RequestId {
    /// Takes a caller's id: 1 to 200 of letters, digits, `.`, `_`, `-`, `:`.
    pub fn given(text: &str) -> Result<Self, InvalidId> {
        check("request id", text, limits::ID_BYTES_MAX, "letters, digits, `.`, `_`, `-` and `:`", |c| {
            c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':')
        })?;
        Ok(Self(Caller::Named(text.into())))
    }

    /// An id for a caller that gave none.
    #[must_use]
    pub fn anonymous(number: u64) -> Self {
        Self(Caller::Anonymous(number))
    }

    /// Whether the caller chose it, so that it is remembered.
    #[must_use]
    pub fn is_given(&self) -> bool {
        matches!(self.0, Caller::Named(_) | Caller::Sender(_))
    }

    /// The same id as that of a message (`+order-42`): a message and a request of one id are two things.
    #[must_use]
    pub fn of_message(self) -> Self {
        match self.0 {
            Caller::Named(text) => Self(Caller::Sender(text)),
            Caller::Sender(_) | Caller::Anonymous(_) => self,
        }
    }

    /// Reads every form.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        if let Some(text) = text.strip_prefix('+') {
            return Self::given(text).map(Self::of_message);
        }
        match text.strip_prefix('~').and_then(|digits| digits.parse().ok()) {
            Some(number) => Ok(Self::anonymous(number)),
            None => Self::given(text),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Caller::Named(text) => f.write_str(text),
            Caller::Sender(text) => write!(f, "+{text}"),
            Caller::Anonymous(number) => write!(f, "~{number}"),
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

fn check(
    what: &'static str,
    text: &str,
    max: usize,
    allowed: &'static str,
    is_allowed: impl Fn(char) -> bool,
) -> Result<(), InvalidId> {
    if text.is_empty() || text.len() > max {
        return Err(InvalidId::Length { what, text: shortened(text), found: text.len(), max });
    }
    match text.chars().find(|c| !is_allowed(*c)) {
        None => Ok(()),
        Some(found) => Err(InvalidId::Character { what, text: text.to_owned(), found, allowed }),
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= 40 { text.to_owned() } else { text.chars().take(40).chain("…".chars()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, message: &str) {
        assert_eq!(ActorId::parse(text).unwrap_err().to_string(), message);
    }

    #[test]
    fn an_actor_id_is_kind_and_name() {
        let id = ActorId::parse("pool:webhooks/2").unwrap();
        assert_eq!((id.kind(), id.name()), ("pool", "webhooks/2"));
    }

    #[test]
    fn the_name_may_contain_colons() {
        assert_eq!(ActorId::parse("run:a:b").unwrap().name(), "a:b");
    }

    #[test]
    fn a_wrong_actor_id_is_refused_with_what_was_expected() {
        refused("order-42", "`order-42` is not an actor id: expected `kind:name`");
        refused("run:", "actor name `` has 0 characters, allowed are 1 to 256");
        refused("Run:a", "kind `Run` contains 'R', allowed are a-z, 0-9, `_` and `-`");
        refused("run:a b", "actor name `a b` contains ' ', allowed are letters, digits, `.`, `_`, `-`, `:` and `/`");
    }

    #[test]
    fn the_shard_of_an_actor_never_changes() {
        let shards: Vec<u16> = ["run:order-42", "counter:0", "counter:1", "pool:webhooks/2"]
            .iter()
            .map(|text| ActorId::parse(text).unwrap().shard().0)
            .collect();
        assert_eq!(shards, [16, 53, 58, 24], "rows on disk lead with these numbers");
    }

    #[test]
    fn numbered_actors_spread_over_all_shards() {
        let mut counts = [0; Shard::COUNT as usize];
        for n in 0..6400 {
            counts[usize::from(ActorId::new("counter", &n.to_string()).unwrap().shard().0)] += 1;
        }
        assert!(counts.iter().all(|count| (50..200).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_sequence_knows_its_boot() {
        let third = Sequence::of(7, 3).unwrap();
        assert_eq!((third.boot(), third.to_string().as_str()), (7, "7.3"));
        assert!(third < Sequence::first_of(8));
        assert_eq!(Sequence::of(7, 1 << 43), None, "it would be the first of another boot");
        assert_eq!(Sequence::of(1 << 20, 0), None, "it would not fit a signed column");
    }

    #[test]
    fn an_id_made_by_the_engine_cannot_be_chosen_by_a_caller() {
        let made = RequestId::anonymous(3);
        assert!(RequestId::given(&made.to_string()).is_err());
        assert_eq!(RequestId::parse(&made.to_string()), Ok(made), "but an actor can keep it");
        let sent = RequestId::given("m").unwrap().of_message();
        assert_eq!(RequestId::parse(&sent.to_string()), Ok(sent));
    }
}
