//! Mocks over plain data: what each keyword gives, and that it gives it again.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn mocked(specification: Value, attempt: u32) -> Mocked {
    outcome(&serde_json::from_value(specification).unwrap(), "run:a/node", attempt)
}

/// Compiled straight from the schema's text, with a validator that is not ours.
#[track_caller]
fn fits(schema: &Value) {
    let validator = jsonschema::validator_for(schema).unwrap();
    for seed in 0..50 {
        let made: Value = mocked(json!({ "schema": schema, "seed": seed }), 1).outcome.unwrap().decode().unwrap();
        assert!(validator.is_valid(&made), "{made} is no {schema}");
    }
}

#[test]
fn a_value_is_given_as_it_is() {
    let value = json!({ "a": [1, null, "x"] });
    assert_eq!(mocked(json!({ "value": value }), 1).outcome.unwrap().decode::<Value>().unwrap(), value);
    assert_eq!(mocked(json!({}), 1), Mocked { delay_ms: 0, outcome: Ok(Json::null()) });
}

#[test]
fn the_first_attempts_fail_as_often_as_they_are_told_to() {
    let specification = json!({ "value": 1, "fail": { "times": 2, "type": "timeout", "message": "slow" } });
    let failure = Failure::retryable(FailureKind::Timeout, "slow");
    assert_eq!(mocked(specification.clone(), 1).outcome, Err(failure.clone()));
    assert_eq!(mocked(specification.clone(), 2).outcome, Err(failure));
    assert_eq!(mocked(specification, 3).outcome, Ok(Json::encode(&1).unwrap()));
}

#[test]
fn a_failure_without_a_number_is_for_ever_and_retryable_unless_told_otherwise() {
    let failure = mocked(json!({ "fail": {} }), 99).outcome.unwrap_err();
    assert_eq!((failure.kind, failure.retryable), (FailureKind::TaskFailed, true));
    assert!(!mocked(json!({ "fail": { "retryable": false } }), 1).outcome.unwrap_err().retryable);
}

#[test]
fn a_delay_is_a_duration_or_milliseconds_and_jitter_adds_up_to_itself() {
    assert_eq!(mocked(json!({ "delay": "2s" }), 1).delay_ms, 2_000);
    assert_eq!(mocked(json!({ "delay": 250 }), 1).delay_ms, 250);
    let delays: Vec<u64> =
        (1..50).map(|attempt| mocked(json!({ "delay": 100, "delay_jitter": "50ms" }), attempt).delay_ms).collect();
    assert!(delays.iter().all(|delay| (100..=150).contains(delay)), "{delays:?}");
    assert!(delays.iter().any(|delay| *delay != delays[0]), "{delays:?}");
}

#[test]
fn a_specification_that_makes_no_sense_fails_for_good() {
    for (specification, message) in [
        (json!({ "delay": "soon" }), "`soon` is not a duration"),
        (json!({ "delay": -1 }), "a delay is 0 or more milliseconds, found -1"),
        (json!({ "value": 1, "schema": {} }), "a mock has a `value` or a `schema`, not both"),
    ] {
        let failure = mocked(specification, 1).outcome.unwrap_err();
        assert_eq!((failure.kind, failure.retryable), (FailureKind::InvalidInput, false));
        assert!(failure.message.contains(message), "{failure}");
    }
}

#[test]
fn the_same_seed_key_and_attempt_give_the_same_and_another_seed_another() {
    let of_seed = |seed: u32| mocked(json!({ "schema": { "type": "number" }, "seed": seed }), 1);
    assert_eq!(of_seed(1), of_seed(1));
    assert_ne!(of_seed(1), of_seed(2));
}

#[test]
fn what_is_made_from_a_schema_fits_it() {
    fits(&json!({
        "type": "object",
        "required": ["id", "tags", "undescribed"],
        "properties": {
            "id": { "type": "integer", "minimum": 3, "maximum": 5 },
            "even": { "type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 2 },
            "share": { "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 },
            "name": { "type": "string", "minLength": 3, "maxLength": 5 },
            "long": { "type": "string", "minLength": 40 },
            "tags": { "type": "array", "minItems": 2, "maxItems": 4, "items": { "enum": ["a", "b"] } },
            "pair": { "type": "array", "prefixItems": [{ "const": 1 }, { "type": "boolean" }], "minItems": 2 },
            "maybe": { "type": ["null", "boolean"] },
            "either": { "oneOf": [{ "type": "integer" }, { "type": "string" }] },
            "both": { "allOf": [{ "properties": { "a": { "const": 1 } } }, { "required": ["b"] }] },
            "there": { "$ref": "#/$defs/there" },
        },
        "$defs": { "there": { "type": "string", "format": "uuid" } },
    }));
    fits(&json!({ "type": "array", "maxItems": 0 }));
}

#[test]
fn a_schema_without_end_ends() {
    let made = mocked(json!({ "schema": { "properties": { "next": { "$ref": "#" } } } }), 1).outcome.unwrap();
    assert!(made.bytes() < 1_000, "{made}");
    let many = mocked(json!({ "schema": { "type": "array", "minItems": 1_000_000_000_000_u64 } }), 1).outcome.unwrap();
    assert_eq!(many.decode::<Vec<Value>>().unwrap().len(), crate::limits::MOCK_ITEMS_MAX);
}

#[test]
fn a_schema_of_far_too_many_values_gives_a_part_of_them_at_once() {
    let mut lists = json!({ "type": "string" });
    for _ in 0..10 {
        lists = json!({ "type": "array", "minItems": 100, "items": lists });
    }
    let round: serde_json::Map<String, Value> = (0..50).map(|n| (n.to_string(), json!({ "$ref": "#" }))).collect();
    let long = json!({ "type": "string", "minLength": 60_000 });
    let named = json!({ "const": vec![1; 1_000] });
    for schema in [
        lists,
        json!({ "properties": round }),
        json!({ "allOf": [{ "properties": round }] }),
        json!({ "type": "array", "minItems": 100, "items": { "type": "array", "minItems": 100, "items": long } }),
        json!({ "type": "array", "minItems": 100, "items": { "type": "array", "minItems": 100, "items": named } }),
    ] {
        let made = mocked(json!({ "schema": schema }), 1).outcome.unwrap();
        assert!((10..1_000_000).contains(&made.bytes()), "{}", made.bytes());
    }
}

proptest! {
    #[test]
    fn no_bounds_panic(min in any::<f64>(), max in any::<f64>(), kind in "integer|number|string|array", whole in any::<u64>()) {
        let schema = json!({
            "type": kind, "minimum": min, "maximum": max, "exclusiveMaximum": max, "multipleOf": whole,
            "minLength": whole, "maxLength": whole / 2, "minItems": whole, "maxItems": 3,
        });
        let mocked = mocked(json!({ "schema": schema }), 1);
        prop_assert!(mocked.outcome.is_ok());
    }
}
