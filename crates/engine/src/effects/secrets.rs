//! Secrets: filled in at the last moment, and taken out of whatever comes back.
//!
//! Owns where a secret is looked up and in which forms it is recognised again. A secret is never in anything that is stored or logged: what is on disk
//! says only where it belongs, and every occurrence in a result or a failure is replaced by its name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::{Map, Value};
use steadfast_core::expression::{SecretPart, SecretPlace};
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::json::{Json, JsonError};
use steadfast_core::limits::{FAILURE_MESSAGE_BYTES_MAX, SECRET_BYTES_MIN};

use crate::tasks::NotDone;

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

/// The secrets of one call.
#[derive(Default)]
pub(super) struct Used {
    by_name: BTreeMap<String, String>,
    /// Every text in which a secret may come back, the longest first: one may be a part of another.
    forms: Vec<Form>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    text: String,
    /// What is shown instead.
    shown: String,
}

impl Used {
    fn new(by_name: BTreeMap<String, String>) -> Self {
        let mut forms = Vec::new();
        for (name, secret) in by_name.iter().filter(|(_, secret)| secret.len() >= SECRET_BYTES_MIN) {
            let shown = format!("[secret {name}]");
            // Whoever shows it may have cut off the space around it.
            let texts = texts_of(secret).into_iter().chain(texts_of(secret.trim()));
            forms.extend(texts.map(|text| Form { text, shown: shown.clone() }));
        }
        forms.retain(|form| form.text.len() >= SECRET_BYTES_MIN);
        forms.sort_by(|left, right| right.text.len().cmp(&left.text.len()).then_with(|| left.cmp(right)));
        forms.dedup();
        Self { by_name, forms }
    }

    /// Looks up everything that `places` need. What is missing is told all at once.
    pub(super) fn find(places: &[SecretPlace], secrets: &dyn Secrets) -> Result<Self, NotDone> {
        let names: BTreeSet<&String> = places
            .iter()
            .flat_map(|place| &place.parts)
            .filter_map(|part| match part {
                SecretPart::Secret(name) => Some(name),
                SecretPart::Text(_) => None,
            })
            .collect();
        let mut found = BTreeMap::new();
        let mut missing = Vec::new();
        for name in names {
            match secrets.get(name) {
                Some(secret) => drop(found.insert(name.clone(), secret)),
                None => missing.push(format!("secret `{name}` is not set: {}", secrets.advice(name))),
            }
        }
        if missing.is_empty() { Ok(Self::new(found)) } else { Err(NotDone::Lacking(missing.join("; "))) }
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
                SecretPart::Secret(name) => self.by_name.get(name).cloned().unwrap_or_default(),
            };
            *place = Value::String(parts.iter().map(part).collect());
        }
        Ok(filled)
    }

    /// The same outcome, with `[secret NAME]` wherever a secret was.
    pub(super) fn take_out(&self, outcome: Result<Json, Failure>) -> Result<Json, Failure> {
        if self.forms.is_empty() {
            return outcome;
        }
        match outcome {
            Ok(result) => self.without(&result).map_err(|error| {
                let message = format!("secrets cannot be taken out of the task's result: {error}");
                Failure::last(FailureKind::InvalidOutput, &message)
            }),
            Err(failure) => Err(Failure {
                message: self.clean_message(&failure.message),
                details: failure.details.and_then(|details| self.without(&details).ok()),
                ..failure
            }),
        }
    }

    /// The text, with `[secret NAME]` wherever a secret was.
    pub(super) fn clean(&self, text: &str) -> String {
        self.forms
            .iter()
            .filter(|form| text.contains(&form.text))
            .fold(text.to_owned(), |text, form| text.replace(&form.text, &form.shown))
    }

    /// The same of a text that was cut off at its end: what may be the beginning of a secret there goes too.
    pub(super) fn clean_beginning(&self, text: &str) -> String {
        let mut clean = self.clean(text);
        let cut_off = self.forms.iter().filter_map(|Form { text, .. }| {
            let parts = text.char_indices().rev().map(|(end, _)| &text[..end]);
            parts.filter(|part| clean.ends_with(part)).map(str::len).next()
        });
        clean.truncate(clean.len() - cut_off.max().unwrap_or(0));
        clean
    }

    /// The same of a text that was cut off at its beginning.
    pub(super) fn clean_end(&self, text: &str) -> String {
        let mut clean = self.clean(text);
        let cut_off = self.forms.iter().filter_map(|Form { text, .. }| {
            let parts = text.char_indices().skip(1).map(|(begin, _)| &text[begin..]);
            parts.filter(|part| clean.starts_with(part)).map(str::len).next()
        });
        clean.drain(..cut_off.max().unwrap_or(0));
        clean
    }

    /// A failure's message, which was cut off where it reached the bound.
    fn clean_message(&self, message: &str) -> String {
        // A character has up to four bytes: the last one may not have fitted.
        let is_whole = message.len() + 4 <= FAILURE_MESSAGE_BYTES_MAX;
        if is_whole { self.clean(message) } else { self.clean_beginning(message) }
    }

    /// Whether a secret is in the text, in whatever case.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.forms.iter().any(|form| text.contains(&form.text.to_lowercase()))
    }

    fn without(&self, json: &Json) -> Result<Json, JsonError> {
        Json::encode(&self.cleaned(json.decode()?))
    }

    fn cleaned(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.clean(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.cleaned(item)).collect(),
            Value::Object(fields) => {
                let cleaned = fields.into_iter().map(|(name, field)| (self.clean(&name), self.cleaned(field)));
                Value::Object(cleaned.collect::<Map<_, _>>())
            }
            // A secret of digits may come back as a number.
            Value::Number(number) => {
                let text = number.to_string();
                let clean = self.clean(&text);
                if clean == text { Value::Number(number) } else { Value::String(clean) }
            }
            Value::Null | Value::Bool(_) => value,
        }
    }
}

/// As it is, and as others may write it: in JSON, in a URL, in base64.
fn texts_of(secret: &str) -> Vec<String> {
    let quoted = Value::from(secret).to_string();
    let base64 = base64(secret.as_bytes());
    let unpadded = base64.trim_end_matches('=').to_owned();
    let mut texts = vec![
        secret.to_owned(),
        // Without the quotes around it.
        quoted[1..quoted.len() - 1].to_owned(),
        unpadded.replace('+', "-").replace('/', "_"),
        unpadded,
        base64,
    ];
    // Everybody agrees on letters, digits, `-`, `.` and `_`. Of the rest, some write more as it is than others: the strict ones, scripts
    // (`encodeURIComponent`), forms, and URLs in their path and in their query.
    for plain in ["~", "~!'()*", "*", "~!'()*/:@$&+,;=[]|^%\\", "~!()*/:@$&+,;=?[]|^`{}%\\"] {
        let encoded = percent_encoded(secret, plain);
        for encoded in [with_small_digits(&encoded), encoded] {
            texts.push(encoded.replace("%20", "+"));
            texts.push(encoded);
        }
    }
    texts
}

fn percent_encoded(text: &str, plain: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => encoded.push(char::from(byte)),
            _ if plain.as_bytes().contains(&byte) => encoded.push(char::from(byte)),
            _ => write!(encoded, "%{byte:02X}").expect("a string takes every text"),
        }
        encoded
    })
}

/// `%2F` as `%2f`; everything else stays.
fn with_small_digits(encoded: &str) -> String {
    let mut digits_left = 0;
    let small = |letter: char| {
        let is_digit = digits_left > 0;
        digits_left = if letter == '%' { 2 } else { digits_left.max(1) - 1 };
        if is_digit { letter.to_ascii_lowercase() } else { letter }
    };
    encoded.chars().map(small).collect()
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

    impl Used {
        pub(crate) fn one(name: &str, secret: &str) -> Self {
            Self::new(BTreeMap::from([(name.to_owned(), secret.to_owned())]))
        }
    }

    fn used(secret: &str) -> Used {
        Used::one("KEY", secret)
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
    fn only_the_digits_after_a_percent_sign_may_be_small() {
        taken_out("AbC/dEf", r#"["AbC%2fdEf","AbC%2FdEf"]"#, r#"["[secret KEY]","[secret KEY]"]"#);
    }

    #[test]
    fn a_secret_is_taken_out_as_urls_have_it() {
        let secret = "it's (a) *test*~/ü!";
        let mut url = reqwest::Url::parse("http://x/").unwrap();
        url.set_path(secret);
        url.set_query(Some(secret));
        let mut form = reqwest::Url::parse("http://x/").unwrap();
        form.query_pairs_mut().append_pair("k", secret);
        let result = Json::encode(&[url.as_str(), form.as_str()]).unwrap();
        let clean = used(secret).take_out(Ok(result)).unwrap();
        assert_eq!(clean.as_str(), r#"["http://x/[secret KEY]?[secret KEY]","http://x/?k=[secret KEY]"]"#);
    }

    #[test]
    fn a_secret_without_the_space_around_it_is_one() {
        taken_out("hunter2\n", r#"["hunter2"]"#, r#"["[secret KEY]"]"#);
    }

    #[test]
    fn a_result_too_deep_to_look_into_is_a_failure() {
        let deep = Json::parse(&format!("{}\"hunter2\"{}", "[".repeat(200), "]".repeat(200))).unwrap();
        let failure = used("hunter2").take_out(Ok(deep.clone())).unwrap_err();
        assert_eq!((failure.kind, failure.retryable), (FailureKind::InvalidOutput, false));
        assert!(failure.message.contains("recursion limit exceeded"), "{failure}");
        let failure = Failure { details: Some(deep), ..Failure::last(FailureKind::TaskFailed, "no") };
        assert_eq!(used("hunter2").take_out(Err(failure)).unwrap_err().details, None);
    }

    #[test]
    fn a_message_that_was_cut_shows_no_part_of_a_secret() {
        for before in FAILURE_MESSAGE_BYTES_MAX - 10..FAILURE_MESSAGE_BYTES_MAX {
            let message = format!("{}hünter2 and more", "-".repeat(before));
            let clean = used("hünter2").take_out(Err(Failure::last(FailureKind::TaskFailed, &message))).unwrap_err();
            assert!(!clean.message.contains('h'), "{before}");
        }
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
