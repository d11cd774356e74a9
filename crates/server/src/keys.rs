//! Keys: who may do what.
//!
//! Owns the file of keys, their roles, and the comparing, which takes as long for every key. Never holds a key: only its hash.
//! Start reading at [`Keys`].

use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// The keys that are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys(Vec<Key>);

/// One key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) role: Role,
    /// How people call it; empty if they do not.
    pub(crate) name: String,
    hash: [u8; HASH_BYTES],
}

const HASH_BYTES: usize = 32;

/// What the holder of a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Everything.
    Admin,
    /// Look, start, signal, and control runs and dead letters; all but definitions.
    Operate,
    /// Look, start runs, and send signals.
    Start,
    /// Work on tasks, and nothing else.
    Worker,
    /// Look.
    Read,
}

/// What a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing: whether the server is well is no secret, nor is what it can do.
    Nothing,
    /// To look.
    Read,
    /// To start a run or to send a signal.
    Start,
    /// To work on tasks.
    Work,
    /// To control a run or a dead letter.
    Operate,
    /// To change definitions.
    Define,
}

/// A file of keys that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeys {
    /// A line is not as lines are.
    #[error("line {line}: {message}; expected `role sha256hex [name]`")]
    Line {
        /// Which, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// There is none.
    #[error("it holds no key; expected lines `role sha256hex [name]`")]
    None,
}

impl Role {
    const ALL: [Self; 5] = [Self::Admin, Self::Operate, Self::Start, Self::Worker, Self::Read];

    /// Its name in files of keys.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operate => "operate",
            Self::Start => "start",
            Self::Worker => "worker",
            Self::Read => "read",
        }
    }

    pub(crate) fn may(self, need: Need) -> bool {
        match need {
            Need::Nothing => true,
            Need::Read => matches!(self, Self::Admin | Self::Operate | Self::Start | Self::Read),
            Need::Start => matches!(self, Self::Admin | Self::Operate | Self::Start),
            Need::Work => matches!(self, Self::Admin | Self::Worker),
            Need::Operate => matches!(self, Self::Admin | Self::Operate),
            Need::Define => matches!(self, Self::Admin),
        }
    }
}

impl Need {
    /// The least role that has it, for somebody whose role has not.
    pub(crate) fn role(self) -> Role {
        match self {
            Self::Nothing | Self::Read => Role::Read,
            Self::Start => Role::Start,
            Self::Work => Role::Worker,
            Self::Operate => Role::Operate,
            Self::Define => Role::Admin,
        }
    }
}

impl Keys {
    /// Reads a file of keys: a line `role sha256hex [name]` for each; empty lines and those that begin with `#` are passed by.
    pub fn parse(text: &str) -> Result<Self, InvalidKeys> {
        let lines = text.lines().zip(1..).map(|(text, line)| (text.trim(), line));
        let wanted = lines.filter(|(text, _)| !text.is_empty() && !text.starts_with('#'));
        let keys: Result<Vec<Key>, InvalidKeys> =
            wanted.map(|(text, line)| key(text).map_err(|message| InvalidKeys::Line { line, message })).collect();
        let keys = keys?;
        if keys.is_empty() { Err(InvalidKeys::None) } else { Ok(Self(keys)) }
    }

    /// The key that was shown, if it is known. All are compared, whichever it is.
    pub(crate) fn find(&self, shown: &str) -> Option<&Key> {
        let hash: [u8; HASH_BYTES] = Sha256::digest(shown.as_bytes()).into();
        let (mut found, mut place) = (Choice::from(0), 0_u64);
        for (key, number) in self.0.iter().zip(0_u64..) {
            let is_it = key.hash.ct_eq(&hash);
            place.conditional_assign(&number, is_it);
            found |= is_it;
        }
        let place = usize::try_from(place).ok().filter(|_| bool::from(found))?;
        self.0.get(place)
    }
}

fn key(text: &str) -> Result<Key, String> {
    let mut words = text.split_whitespace();
    let word = words.next().unwrap_or_default();
    let role = Role::ALL.into_iter().find(|role| role.name() == word).ok_or_else(|| {
        let names: Vec<String> = Role::ALL.iter().map(|role| format!("`{}`", role.name())).collect();
        format!("`{word}` is not a role: there are {}", names.join(", "))
    })?;
    // What stands there wrongly may be a key: it is not shown.
    let hash = words.next().and_then(read_hash).ok_or("the second word is not a SHA-256 in 64 hexadecimal digits")?;
    let name = words.collect::<Vec<_>>().join(" ");
    Ok(Key { role, name, hash })
}

fn read_hash(text: &str) -> Option<[u8; HASH_BYTES]> {
    if text.len() != HASH_BYTES * 2 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut hash = [0; HASH_BYTES];
    for (byte, start) in hash.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[start..start + 2], 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]
mod tests {
    use super::*;

    /// The SHA-256 of `secret`.
    const SECRET: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

    #[test]
    fn a_key_is_found_by_its_hash() {
        let keys = Keys::parse(&format!("# ours\n\nread {}\nstart {SECRET} ci of the shop\n", "0".repeat(64))).unwrap();
        let found = keys.find("secret").unwrap();
        assert_eq!((found.role, &*found.name), (Role::Start, "ci of the shop"));
        assert_eq!(keys.find("Secret"), None);
        assert_eq!(keys.find(""), None);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_refused_with_its_line_and_without_the_key() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Keys::parse(text).unwrap_err().to_string(), expected);
        };
        check("# nothing", "it holds no key; expected lines `role sha256hex [name]`");
        check(
            "\nadmin hunter2",
            "line 2: the second word is not a SHA-256 in 64 hexadecimal digits; expected `role sha256hex [name]`",
        );
        check(
            "root x",
            "line 1: `root` is not a role: there are `admin`, `operate`, `start`, `worker`, `read`; expected `role sha256hex [name]`",
        );
    }

    #[test]
    fn a_role_may_what_the_one_below_may() {
        let may = |role: Role| {
            let needs = [Need::Nothing, Need::Read, Need::Start, Need::Operate, Need::Define];
            needs.into_iter().filter(|need| role.may(*need)).count()
        };
        assert_eq!(Role::ALL.map(may), [5, 4, 3, 1, 2]);
    }
}
