//! Values as JSON text: the one form in which payloads pass through the system.
//!
//! Owns encoding and decoding. A value is encoded once, in the turn that makes it, and then shared: the
//! same text goes to the overlay, the batch and the disk without being copied or parsed again.

use std::cell::Cell;
use std::sync::Arc;
use std::{fmt, io};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::limits;

/// JSON text. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Json(Arc<str>);

/// A buffer for encoding that has grown beyond this is not kept.
const BUFFER_KEPT_BYTES: usize = 64 * 1024;

/// A value that could not be turned into JSON text, or text that is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonError(String);

impl JsonError {
    /// A value that is JSON, but not what was expected.
    #[must_use]
    pub fn new(message: String) -> Self {
        Self(message)
    }
}

impl Json {
    /// Encodes `value`.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, JsonError> {
        // Most values are small and made by the thousand: they are written to a buffer that is there already, and copied once.
        thread_local! {
            static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
        }
        let mut buffer = BUFFER.take();
        buffer.clear();
        let written = serde_json::to_writer(&mut buffer, value).map_err(|e| JsonError(e.to_string()));
        let text = written.map(|()| Self(str::from_utf8(&buffer).expect("JSON text is UTF-8").into()));
        if buffer.capacity() <= BUFFER_KEPT_BYTES {
            BUFFER.set(buffer);
        }
        text
    }

    /// Encodes `value`, giving up as soon as the text is longer than a value may be: parts of a value are shared, so
    /// its text can be far larger than itself.
    pub(crate) fn encode_bounded<T: Serialize + ?Sized>(value: &T) -> Result<Self, JsonError> {
        let mut text = Bounded { inner: Vec::new(), room: limits::VALUE_BYTES_MAX };
        serde_json::to_writer(&mut text, value).map_err(|e| JsonError(e.to_string()))?;
        let text = String::from_utf8(text.inner).expect("JSON text is UTF-8");
        Ok(Self(text.into()))
    }

    /// How long the text of `value` would be. Counts no further than `room`, beyond which it is an error.
    pub(crate) fn count<T: Serialize + ?Sized>(value: &T, room: usize) -> Result<usize, JsonError> {
        let mut nothing = Bounded { inner: io::sink(), room };
        serde_json::to_writer(&mut nothing, value).map_err(|e| JsonError(e.to_string()))?;
        Ok(room - nothing.room)
    }

    /// Takes text from outside, refusing what is not JSON.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        serde_json::from_str::<&RawValue>(text).map_err(|e| JsonError(e.to_string()))?;
        Ok(Self(text.into()))
    }

    /// Takes text that a store gave back. Damage shows when the value is decoded.
    #[must_use]
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    /// The value `null`.
    #[must_use]
    pub fn null() -> Self {
        Self("null".into())
    }

    /// Decodes into `T`.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, JsonError> {
        serde_json::from_str(&self.0).map_err(|e| JsonError(e.to_string()))
    }

    /// The text itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Length of the text.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

/// What is said of a value whose text would be longer than [`limits::VALUE_BYTES_MAX`].
pub(crate) fn too_large() -> String {
    format!("the value is larger than {} MiB (`VALUE_BYTES_MAX`)", limits::VALUE_BYTES_MAX / 1024 / 1024)
}

/// Writes until there is no more room.
struct Bounded<W> {
    inner: W,
    room: usize,
}

impl<W: io::Write> io::Write for Bounded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.room = self.room.checked_sub(bytes.len()).ok_or_else(|| io::Error::other(too_large()))?;
        self.inner.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(raw.get().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_inside_another_stays_the_same_text() {
        #[derive(Serialize, Deserialize)]
        struct Envelope {
            body: Json,
        }
        let text = r#"{"body":{"b":1,"a":[1.50,null]}}"#;
        let envelope: Envelope = Json::parse(text).unwrap().decode().unwrap();
        assert_eq!(envelope.body.as_str(), r#"{"b":1,"a":[1.50,null]}"#);
        assert_eq!(Json::encode(&envelope).unwrap().as_str(), text);
    }

    #[test]
    fn text_that_is_not_json_is_refused_with_its_place() {
        let error = Json::parse("{\"a\": }").unwrap_err().to_string();
        assert!(error.contains("line 1 column 7"), "{error}");
    }
}
