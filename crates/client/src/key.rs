//! A key, which is shown to servers and to nobody else.

use std::fmt;

use reqwest::header::HeaderValue;

/// What lets a client in.
#[derive(Clone)]
pub struct Key(HeaderValue);

/// Why a text is no key. The text itself is not told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// There is nothing.
    #[error("it is empty")]
    Empty,
    /// It would not fit into a header.
    #[error("it is not one line of visible ASCII characters")]
    Characters,
}

impl Key {
    /// A key as it was given, without the space around it.
    pub fn new(text: &str) -> Result<Self, InvalidKey> {
        let text = text.trim();
        if text.is_empty() {
            return Err(InvalidKey::Empty);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidKey::Characters);
        }
        let mut header = HeaderValue::try_from(format!("Bearer {text}")).map_err(|_| InvalidKey::Characters)?;
        header.set_sensitive(true);
        Ok(Self(header))
    }

    /// The header `Authorization`.
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}
