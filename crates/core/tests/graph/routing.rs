//! Routing: which transitions a token takes, and when a run is over.

use serde_json::{Value as JsonValue, json};

use crate::world::{World, failure, output};

/// Where a run of one token goes from `a`.
#[track_caller]
fn check(transitions: &str, input: JsonValue, expected: &[&str]) {
    let mut world = World::with(&format!(
        "start: a\nnodes: {{ a: {{ run: {{ value: {{ n: 7 }} }} }}, b: {{}}, c: {{}}, d: {{}} }}\ntransitions:\n{transitions}"
    ));
    output(world.run("w", input));
    assert_eq!(world.nodes("r")[1..], *expected);
}

/// How a run ends whose transition from `a` to `b` has this `when`.
#[track_caller]
fn check_failure(when: &str, input: JsonValue, expected: &str) {
    let transition = format!("{{ from: a, to: b, when: {} }}", json!(when));
    let mut world = World::with(&format!("nodes: {{ a: {{}}, b: {{}} }}\ntransitions: [{transition}]"));
    let failure = failure(world.run("w", input));
    assert_eq!(failure.kind.name(), "expression");
    assert_eq!(failure.message, format!("`when` of the transition from `a` to `b`: {expected}"));
}

const TIERS: &str = r#"
  - { from: a, to: d, priority: 2 }
  - { from: a, to: c, when: "input.c" }
  - { from: a, to: b, when: "input.b" }
"#;

#[test]
fn all_matches_of_the_first_tier_with_any_match_fire() {
    check(TIERS, json!({ "b": true, "c": true }), &["c", "b"]);
    check(TIERS, json!({ "b": true, "c": false }), &["b"]);
}

#[test]
fn a_later_tier_is_looked_at_when_none_matches_before() {
    check(TIERS, json!({ "b": false, "c": false }), &["d"]);
}

#[test]
fn tiers_are_in_the_order_of_their_numbers_whatever_the_order_written() {
    let transitions = r#"
  - { from: a, to: b, priority: 10 }
  - { from: a, to: c, priority: -1 }
  - { from: a, to: d }
"#;
    check(transitions, json!({}), &["c"]);
}

#[test]
fn conditions_of_later_tiers_are_not_even_evaluated() {
    let transitions = r#"
  - { from: a, to: b, priority: 1 }
  - { from: a, to: c, priority: 2, when: "1 / 0 > 0" }
  - { from: a, to: d, priority: 2 }
"#;
    check(transitions, json!({}), &["b"]);
}

#[test]
fn a_condition_sees_the_result_of_the_node_and_the_input() {
    let transitions = r#"
  - { from: a, to: b, when: "result.n == input.n" }
  - { from: a, to: c, when: "result.n != input.n" }
  - { from: b, to: d }
"#;
    check(transitions, json!({ "n": 7 }), &["b", "d"]);
}

#[test]
fn a_token_that_no_transition_takes_up_ends_and_the_run_completes() {
    let nowhere = "  - { from: a, to: b, when: 'false' }\n  - { from: b, to: c }\n  - { from: b, to: d }\n";
    check(nowhere, json!({}), &[]);
}

#[test]
fn a_condition_that_cannot_be_decided_because_something_is_missing_is_false() {
    for missing in ["state.n > 3", "input.a.b.c == 1", "state.list[2] == 1", "size(state.list) > 0", "!state.flag"] {
        let ways = format!(
            "  - {{ from: a, to: b, when: '{missing}' }}\n  - {{ from: a, to: c, priority: 1 }}\n  - {{ from: c, to: d }}\n"
        );
        check(&ways, json!({}), &["c", "d"]);
    }
}

#[test]
fn a_missing_field_reads_as_null() {
    let transitions = r#"
  - { from: a, to: b, when: "state.n == null && input.x.y == null" }
  - { from: b, to: c, when: "(state.n == null ? 1 : state.n + 1) == 1" }
  - { from: c, to: d }
"#;
    check(transitions, json!({}), &["b", "c", "d"]);
}

#[test]
fn any_other_error_in_a_condition_fails_the_run_with_expression_place_and_values() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: {} }
transitions: [{ from: a, to: b, when: "input.text + 1 > input.n" }]
"#,
    );
    let message = failure(world.run("w", json!({ "text": "ten", "n": 5 }))).message;
    for part in ["`when` of the transition from `a` to `b`", "`input.text + 1 > input.n`", "\"ten\"", "input.n = 5"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_condition_that_gives_neither_true_nor_false_fails_the_run() {
    check_failure(
        "input.n",
        json!({ "n": 5 }),
        "`input.n` cannot be evaluated: a condition must give true or false, this one gives 5; it saw input.n = 5",
    );
}

#[test]
fn a_run_completes_when_no_token_is_active_any_more() {
    let mut world = World::with(
        r#"
nodes:
  a: {}
  slow: { run: { mock: { delay: 9s } } }
  quick: { run: { mock: { delay: 1s } } }
transitions: [{ from: a, to: slow }, { from: a, to: quick }]
"#,
    );
    world.start("r", "w", json!({}));
    world.pass(8_999);
    assert_eq!((world.at("r", "quick"), world.at("r", "slow")), (vec!["completed"], vec!["dispatched"]));
    assert!(!world.view("r").status.is_over());
    world.pass(1);
    assert!(world.view("r").status.is_over());
}

#[test]
fn without_a_join_two_ways_that_meet_are_two_tokens() {
    let transitions = r#"
  - { from: a, to: b }
  - { from: a, to: c }
  - { from: b, to: d }
  - { from: c, to: d }
"#;
    let mut world =
        World::with(&format!("nodes: {{ a: {{}}, b: {{}}, c: {{}}, d: {{}} }}\ntransitions:\n{transitions}"));
    output(world.run("w", json!({})));
    assert_eq!(world.at("r", "d"), ["completed", "completed"]);
}

#[test]
fn a_start_that_is_named_is_where_a_run_begins() {
    let mut world = World::with(
        r#"
start: b
nodes: { a: {}, b: {} }
transitions: [{ from: b, to: a, max_iterations: 1 }, { from: a, to: b, max_iterations: 1 }]
"#,
    );
    output(world.run("w", json!({})));
    assert_eq!(world.nodes("r"), ["b", "a", "b"]);
}

#[test]
fn what_all_expressions_see_of_the_run_itself() {
    let mut world = World::with(
        r#"
nodes: { a: { output: { state.at: "${run.started_at}" } } }
result: { id: "${run.id}", workflow: "${run.workflow}", at: "${state.at}" }
"#,
    );
    let expected = json!({ "id": "r", "workflow": "w", "at": "1970-01-01T00:16:40.000Z" });
    assert_eq!(output(world.run("w", json!({}))), expected);
}

#[test]
fn an_expression_that_fails_elsewhere_fails_the_run_with_its_place() {
    let bad = "${input.n / 0}";
    let cases = [
        (format!("nodes: {{ a: {{ run: {{ value: '{bad}' }} }} }}"), "`run` of node `a`"),
        (format!("nodes: {{ a: {{ output: {{ state.x: '{bad}' }} }} }}"), "`output` of node `a`"),
        (format!("nodes: {{ a: {{ sleep: '{bad}' }} }}"), "`sleep` of node `a`"),
        (format!("nodes: {{ a: {{ wait: {{ signal: '{bad}' }} }} }}"), "`wait` of node `a`"),
        (format!("nodes: {{ a: {{ run: {{ function: f }}, input: {{ x: '{bad}' }} }} }}"), "`input` of node `a`"),
        (format!("nodes: {{ a: {{}} }}\nresult: {{ x: '{bad}' }}"), "`result`"),
    ];
    for (workflow, place) in cases {
        let mut world = World::with(&workflow);
        let failure = failure(world.run("w", json!({ "n": 8 })));
        assert_eq!(failure.kind.name(), "expression");
        assert!(failure.message.starts_with(&format!("{place}: `input.n / 0` cannot be evaluated")), "{failure}");
        assert!(failure.message.contains("input.n = 8"), "{failure}");
    }
}
