//! Secrets: filled in at the last moment, and taken out of whatever comes back.
//!
//! Owns where a secret is looked up and in which forms it is recognised again. A secret is never in anything that is stored or logged: what is on disk
//! says only where it belongs, and every occurrence in a result or a failure is replaced by its name.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value};
use steadfast_core::expression::{SecretPart, SecretPlace};
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::json::Json;
use steadfast_core::limits::SECRET_BYTES_MIN;

/// Where secrets come from.
pub trait Secrets: Send + Sync {
    /// The secret of this name, if there is one.
    fn get(&self, name: &str) -> Option<String>;

    /// What to do about a secret that is not there, for the message.
    fn advice(&self, name: &str) -> String;
}

/// Secrets from environment variables: `NAME` is in `STEADFAST_SECRET_NAME`.
#[derive(Debug, Clone, Copy, Default)]
pub struct EnvironmentSecrets;

impl Secrets for EnvironmentSecrets {
    fn get(&self, name: &str) -> Option<String> {
        // A name with these in it cannot be that of a variable, and asking for one panics on some systems.
        let is_possible = !name.is_empty() && !name.contains(['=', '\0']);
        is_possible.then(|| std::env::var(variable(name)).ok()).flatten()
    }

    fn advice(&self, name: &str) -> String {
        format!("set the environment variable `{}`", variable(name))
    }
}

fn variable(name: &str) -> String {
    format!("STEADFAST_SECRET_{name}")
}

/// Secrets that are given, for tests and for programs that keep their own.
impl Secrets for BTreeMap<String, String> {
    fn get(&self, name: &str) -> Option<String> {
        BTreeMap::get(self, name).cloned()
    }

    fn advice(&self, name: &str) -> String {
        format!("give the engine a secret `{name}`")
    }
}

/// The secrets of one call, by name.
pub(super) struct Used(BTreeMap<String, String>);

impl Used {
    /// Looks up everything that `places` need.
    pub(super) fn find(places: &[SecretPlace], secrets: &dyn Secrets) -> Result<Self, Failure> {
        let mut found = BTreeMap::new();
        for part in places.iter().flat_map(|place| &place.parts) {
            if let SecretPart::Secret(name) = part {
                let secret = secrets.get(name).ok_or_else(|| {
                    let message = format!("secret `{name}` is not set: {}", secrets.advice(name));
                    Failure::last(FailureKind::NotFound, &message)
                })?;
                found.insert(name.clone(), secret);
            }
        }
        Ok(Self(found))
    }

    /// A copy of the specification with the secrets in their places.
    pub(super) fn fill_in(&self, specification: &Json, places: &[SecretPlace]) -> Result<Value, Failure> {
        let internal = |message: String| Failure::last(FailureKind::Internal, &message);
        let mut filled: Value =
            specification.decode().map_err(|error| internal(format!("the task cannot be read: {error}")))?;
        for SecretPlace { pointer, parts } in places {
            let place = filled
                .pointer_mut(pointer)
                .ok_or_else(|| internal(format!("there is no `{pointer}` in the task for a secret")))?;
            let part = |part: &SecretPart| match part {
                SecretPart::Text(text) => text.clone(),
                SecretPart::Secret(name) => self.0.get(name).cloned().unwrap_or_default(),
            };
            *place = Value::String(parts.iter().map(part).collect());
        }
        Ok(filled)
    }

    /// The same outcome, with `[secret NAME]` wherever a secret was.
    pub(super) fn take_out(&self, outcome: Result<Json, Failure>) -> Result<Json, Failure> {
        let forms = self.forms();
        if forms.is_empty() {
            return outcome;
        }
        match outcome {
            Ok(result) => Ok(without(&result, &forms)),
            Err(failure) => Err(Failure {
                message: replaced(&failure.message, &forms),
                details: failure.details.map(|details| without(&details, &forms)),
                ..failure
            }),
        }
    }

    /// Every text in which a secret may come back, the longest first: one may be a part of another.
    fn forms(&self) -> Vec<(String, String)> {
        let mut forms = Vec::new();
        for (name, secret) in self.0.iter().filter(|(_, secret)| secret.len() >= SECRET_BYTES_MIN) {
            // Without the quotes around it.
            let quoted = Value::from(secret.as_str()).to_string();
            let escaped = quoted[1..quoted.len() - 1].to_owned();
            let encoded = percent_encoded(secret);
            let base64 = base64(secret.as_bytes());
            let unpadded = base64.trim_end_matches('=').to_owned();
            let texts = [
                secret.clone(),
                escaped,
                encoded.to_lowercase(),
                encoded.replace("%20", "+"),
                encoded,
                unpadded.replace('+', "-").replace('/', "_"),
                unpadded,
                base64,
            ];
            forms.extend(texts.map(|text| (text, format!("[secret {name}]"))));
        }
        forms.retain(|(text, _)| text.len() >= SECRET_BYTES_MIN);
        forms.sort_by(|left, right| right.0.len().cmp(&left.0.len()).then_with(|| left.cmp(right)));
        forms.dedup();
        forms
    }
}

fn without(json: &Json, forms: &[(String, String)]) -> Json {
    // What is not JSON is refused by the engine anyway, with a message that shows nothing of it.
    let Ok(value) = json.decode::<Value>() else { return Json::null() };
    Json::encode(&cleaned(value, forms)).unwrap_or_else(|_| Json::null())
}

fn cleaned(value: Value, forms: &[(String, String)]) -> Value {
    match value {
        Value::String(text) => Value::String(replaced(&text, forms)),
        Value::Array(items) => items.into_iter().map(|item| cleaned(item, forms)).collect(),
        Value::Object(fields) => {
            let cleaned = fields.into_iter().map(|(name, field)| (replaced(&name, forms), cleaned(field, forms)));
            Value::Object(cleaned.collect::<Map<_, _>>())
        }
        // A secret of digits may come back as a number.
        Value::Number(number) => {
            let text = number.to_string();
            let clean = replaced(&text, forms);
            if clean == text { Value::Number(number) } else { Value::String(clean) }
        }
        Value::Null | Value::Bool(_) => value,
    }
}

fn replaced(text: &str, forms: &[(String, String)]) -> String {
    forms
        .iter()
        .filter(|(form, _)| text.contains(form.as_str()))
        .fold(text.to_owned(), |text, (form, name)| text.replace(form.as_str(), name))
}

fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ => write!(encoded, "%{byte:02X}").expect("a string takes every text"),
        }
        encoded
    })
}

/// Base64 with padding, by the standard alphabet.
pub(super) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            let is_padding = index > chunk.len();
            let letter = ALPHABET[(bits >> (18 - 6 * index) & 63) as usize];
            encoded.push(if is_padding { '=' } else { char::from(letter) });
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(secret: &str) -> Used {
        Used(BTreeMap::from([("KEY".to_owned(), secret.to_owned())]))
    }

    #[track_caller]
    fn taken_out(secret: &str, result: &str, expected: &str) {
        let clean = used(secret).take_out(Ok(Json::parse(result).unwrap())).unwrap();
        assert_eq!(clean.as_str(), expected);
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        let encoded = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(encoded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }

    #[test]
    fn a_secret_is_taken_out_in_every_form() {
        taken_out("s3cr\"et/ü", r#"{"s3cr\"et/ü":["x s3cr\"et/ü y"]}"#, r#"{"[secret KEY]":["x [secret KEY] y"]}"#);
        taken_out("s3cr\"et", r#"["{\"a\":\"s3cr\\\"et\"}"]"#, r#"["{\"a\":\"[secret KEY]\"}"]"#);
        taken_out(
            "a b/c",
            r#"["q=a%20b%2Fc","q=a+b%2Fc","q=a%20b%2fc"]"#,
            r#"["q=[secret KEY]","q=[secret KEY]","q=[secret KEY]"]"#,
        );
        taken_out("hunter2", r#"["aHVudGVyMg==","aHVudGVyMg"]"#, r#"["[secret KEY]","[secret KEY]"]"#);
        taken_out("12345678", "[12345678,1]", r#"["[secret KEY]",1]"#);
    }

    #[test]
    fn a_secret_too_short_to_be_one_is_left() {
        taken_out("abc", r#"["abc"]"#, r#"["abc"]"#);
    }

    #[test]
    fn a_failure_shows_no_secret() {
        let failure = Failure {
            details: Some(Json::parse(r#"{"body":"hunter2"}"#).unwrap()),
            ..Failure::last(FailureKind::TaskFailed, "no hunter2 here")
        };
        let clean = used("hunter2").take_out(Err(failure)).unwrap_err();
        assert_eq!(clean.message, "no [secret KEY] here");
        assert_eq!(clean.details.unwrap().as_str(), r#"{"body":"[secret KEY]"}"#);
    }
}
