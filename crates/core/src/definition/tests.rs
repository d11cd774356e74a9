//! Tests of reading as a whole. What people see of broken files is under `tests/broken`.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::workflow::{TransitionIndex, Workflow};
use super::{Definition, Problem, Severity, check_references, compile, read};
use crate::limits;

/// What is said about a text, a line for each problem.
fn check(text: &str) -> String {
    let found = read("f", text);
    found.problems.iter().map(shown).collect()
}

fn shown(problem: &Problem) -> String {
    let Problem { severity, line, column, message, hint, .. } = problem;
    let mut line = format!("{line}:{column} {}: {message}", severity.name());
    if let Some(hint) = hint {
        write!(line, " ({hint})").unwrap();
    }
    line + "\n"
}

#[track_caller]
fn workflow(text: &str) -> Workflow {
    let mut found = read("f", text);
    let errors: String = found.problems.iter().filter(|p| p.severity == Severity::Error).map(shown).collect();
    assert_eq!(errors, "");
    match found.definitions.remove(0).definition {
        Definition::Workflow(workflow) => workflow,
        Definition::Task(_) => panic!("a workflow was expected"),
    }
}

/// The value of `run: { value: … }` of a task, as the stored document has it.
#[track_caller]
fn value(text: &str) -> String {
    let found = read("f", &format!("kind: task\nname: t\nrun:\n  value: {text}\n"));
    assert_eq!(found.problems, []);
    let crate::expression::Value::Object(fields) = &found.definitions[0].document else { panic!("not an object") };
    format!("{:?}", fields["run"])
}

#[test]
fn text_without_quotes_is_read_by_the_core_schema() {
    let meanings = [
        ("on", "String(\"on\")"),
        ("yes", "String(\"yes\")"),
        ("No", "String(\"No\")"),
        ("true", "Bool(true)"),
        ("~", "Null"),
        ("0x10", "Int(16)"),
        ("0o10", "Int(8)"),
        ("-7", "Int(-7)"),
        ("18446744073709551615", "UInt(18446744073709551615)"),
        ("1e3", "Float(1000.0)"),
        (".5", "Float(0.5)"),
        ("1_000", "String(\"1_000\")"),
        ("1.2.3", "String(\"1.2.3\")"),
        ("e5", "String(\"e5\")"),
        (".", "String(\".\")"),
        ("'7'", "String(\"7\")"),
        ("\"\\u00e4\\/\"", "String(\"ä/\")"),
    ];
    for (text, expected) in meanings {
        let found = value(text);
        assert!(found.contains(&format!("\"value\": {expected}")), "{text}: {found}");
    }
}

#[test]
fn the_form_of_a_text_does_not_change_the_document() {
    let a = "\u{feff}# a comment\nkind: task\nname: t\nrun: { value: { a: &x [1, two], b: *x } }\n";
    let b = r#"{"run": {"value": {"b": [1, "two"], "a": [1, "two"]}}, "name": "t", "kind": "task"}"#;
    let (a, b) = (read("a", a), read("b", b));
    assert_eq!((&a.problems[..], &b.problems[..]), (&[][..], &[][..]));
    assert_eq!(a.definitions[0].document, b.definitions[0].document);
}

#[test]
fn empty_documents_are_skipped() {
    let found = read("f", "---\n---\nkind: task\nname: t\nrun: { value: 1 }\n---\n# nothing\n");
    assert_eq!((found.problems.len(), found.definitions.len()), (0, 1));
    let nothing =
        "0:0 error: the file holds no definition (a definition begins with `kind: workflow` or `kind: task`)\n";
    for text in ["", "---\n---\n", "# nothing\n", "~"] {
        assert_eq!(check(text), nothing);
    }
}

#[test]
fn a_broken_document_does_not_hide_the_next() {
    let found = read("f", "a: [\n---\nkind: task\nname: t\nrun: { value: 1 }\n");
    assert_eq!((found.problems.len(), found.definitions.len()), (1, 1));
}

#[test]
fn aliases_of_aliases_are_bounded() {
    let mut text = "a: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
    for level in 1..10 {
        let last = level - 1;
        let many = vec![format!("*a{last}"); 10].join(", ");
        writeln!(text, "b{level}: &a{level} [{many}]").unwrap();
    }
    let said = check(&text);
    assert!(said.contains("the document has more than 1000000 values (`definition_values_max`)"), "{said}");
    let said = check("a: &a [*a]\n");
    assert_eq!(said, "1:8 error: this alias stands inside the value that it means\n");
}

#[test]
fn depth_and_size_are_bounded() {
    let deep = format!("a: {}1{}", "[".repeat(limits::DEFINITION_DEPTH_MAX), "]".repeat(limits::DEFINITION_DEPTH_MAX));
    assert!(check(&deep).contains("`definition_depth_max`"), "{}", check(&deep));
    let wide = " ".repeat(limits::DEFINITION_BYTES_MAX + 1);
    assert_eq!(
        check(&wide),
        "0:0 error: the file has 4194305 bytes, the limit is 4194304 (`definition_bytes_max`) (split it into several files)\n"
    );
    let mut nested = crate::expression::Value::Null;
    for _ in 0..limits::DEFINITION_DEPTH_MAX {
        nested = crate::expression::Value::List(vec![nested].into());
    }
    assert!(compile(&nested).is_err());
}

#[test]
fn problems_are_bounded_and_the_rest_is_counted() {
    let text = format!(
        "kind: task\nname: t\nrun: {{ value: 1 }}\n{}",
        (0..1500).map(|n| format!("x{n}: 1\n")).collect::<String>()
    );
    let found = read("f", &text);
    assert_eq!(found.problems.len(), limits::DEFINITION_PROBLEMS_MAX + 1);
    let last = shown(&found.problems[limits::DEFINITION_PROBLEMS_MAX]);
    assert_eq!(last, "1:1 error: 500 more problems are not shown (at most 1000 are (`definition_problems_max`))\n");
    assert!(found.definitions.is_empty());
}

#[test]
fn of_a_long_line_the_part_around_the_place_is_shown() {
    let filler = "x".repeat(500);
    let text =
        format!(r#"{{"kind": "task", "name": "t", "description": "{filler}", "rum": 1, "timeout": "{filler}"}}"#);
    let printed = read("f", &text).problems.iter().find(|p| p.message.contains("rum")).unwrap().to_string();
    let lines: Vec<&str> = printed.lines().collect();
    let caret = lines[2].find('^').unwrap();
    let pointed: String = lines[1].chars().skip(lines[2][..caret].chars().count()).take(5).collect();
    assert_eq!(pointed, "\"rum\"", "{printed}");
    assert!(lines[1].chars().count() < 140, "{printed}");
}

const FAN_OUT: &str = "kind: workflow\nname: w\nnodes: { a: , b: , c: , d: }\ntransitions:\n";

#[test]
fn a_group_knows_the_join_that_closes_it() {
    let found = workflow(&format!(
        "{FAN_OUT}
  - {{ from: a, to: b, spawn: 2, group: g }}
  - {{ from: b, to: c }}
  - {{ from: c, to: d, join: {{ group: g }} }}
"
    ));
    assert_eq!(found.transitions[0].closed_by, Some(TransitionIndex(2)));
    assert_eq!((found.node(found.start).name.as_ref(), found.transitions[2].closed_by), ("a", None));
}

#[test]
fn a_group_inside_one_of_the_same_name_is_closed_by_its_own_join() {
    let found = workflow(
        "kind: workflow\nname: w\nnodes: { a: , b: , c: , d: , e: }\ntransitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: c, spawn: 2, group: g }
  - { from: c, to: d, join: { group: g } }
  - { from: d, to: e, join: { group: g, wait_for: any } }
",
    );
    let closed: Vec<_> = found.transitions.iter().map(|transition| transition.closed_by.map(|join| join.0)).collect();
    assert_eq!(closed, [Some(3), Some(2), None, None]);
}

#[test]
fn a_loop_opens_and_closes_its_group_again() {
    let found = workflow(&format!(
        "{FAN_OUT}
  - {{ from: a, to: b }}
  - {{ from: b, to: c, spawn: 2, group: g }}
  - {{ from: c, to: b, join: {{ group: g }}, max_iterations: 3 }}
  - {{ from: c, to: d, priority: 1 }}
"
    ));
    assert_eq!(found.transitions[1].closed_by, Some(TransitionIndex(2)));
}

#[test]
fn what_a_join_of_an_inner_group_merges_is_written_in_the_outer_branch() {
    let said = check(
        "kind: workflow\nname: w\nnodes: { a: , b: , c: { run: { value: 1 }, output: { state.x: 1 } }, d: , e: }\ntransitions:
  - { from: a, to: b, spawn: 2, group: outer }
  - { from: b, to: c, spawn: 2, group: inner }
  - { from: c, to: d, join: { group: inner, merge: { from: state.x, into: state.xs } } }
  - { from: d, to: e, join: { group: outer } }
",
    );
    insta::assert_snapshot!(said, @"7:38 warning: `state.xs` is written in a branch and never merged, so it is lost (add `merge: { from: state.xs, into: … }` to the join before `e`, on line 8)");
}

#[test]
fn what_a_branch_keeps_for_itself_is_not_lost() {
    let said = check(
        "kind: workflow\nname: w\nnodes: { a: , b: { output: { state.x: 1 } }, c: { output: { state.y: '${state.x}' } }, d: }\ntransitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: c }
  - { from: c, to: d, join: { group: g, merge: { from: state.y, into: state.ys } } }
",
    );
    assert_eq!(said, "");
}

#[test]
fn a_loop_that_waits_or_can_end_is_not_warned_about() {
    let said = |node: &str, ways: &str| {
        check(&format!(
            "kind: workflow\nname: w\nstart: a\nnodes: {{ a: , {node}, c: }}\ntransitions: [{{ from: a, to: b }}, {ways}]\n"
        ))
    };
    let leave = "{ from: b, to: c, when: state.done }";
    assert!(said("b:", &format!("{leave}, {{ from: b, to: a }}")).contains("may never end"));
    assert_eq!(said("b: { sleep: 1s }", &format!("{leave}, {{ from: b, to: a }}")), "");
    assert_eq!(said("b:", &format!("{leave}, {{ from: b, to: a, when: state.n < 3 }}")), "");
    assert_eq!(said("b:", &format!("{leave}, {{ from: b, to: a, max_iterations: 2 }}")), "");
    assert_eq!(said("b:", &format!("{leave}, {{ from: b, to: a, priority: 1 }}")), "");
}

#[test]
fn a_stored_document_means_the_same_as_the_text() {
    let text = include_str!("../../tests/whole/research.yaml");
    for parsed in read("f", text).definitions {
        let compiled = compile(&parsed.document).unwrap();
        assert_eq!(format!("{compiled:?}"), format!("{:?}", parsed.definition));
    }
}

#[test]
fn a_stored_document_that_is_broken_is_refused_without_places() {
    let text = "kind: task\nname: t\nrun: { value: 1 }\n";
    let document = read("f", &text.replace("value: 1", "value: 2")).definitions.remove(0).document;
    assert!(compile(&document).is_ok());
    let problems = compile(&crate::expression::Value::Null).unwrap_err();
    assert_eq!(
        problems[0].to_string(),
        "error: expected a definition, found nothing (a definition is an object that begins with `kind: workflow` or `kind: task`)"
    );
}

#[test]
fn a_definition_names_what_it_refers_to_once() {
    let found = read(
        "f",
        "kind: workflow\nname: w\nnodes: { a: { task: t }, b: { workflow: w@3 }, c: { task: t } }\ntransitions: [{ from: a, to: b }, { from: b, to: c }]\n",
    );
    assert_eq!(
        format!("{:?}", found.definitions[0].definition.references()),
        r#"[(Workflow, Reference { name: "w", version: Some(3) }), (Task, Reference { name: "t", version: None })]"#
    );
}

#[test]
fn references_are_found_over_several_files() {
    let flow = "kind: workflow\nname: w\nnodes: { a: { task: greet } }\n";
    let task = "kind: task\nname: greet\nrun: { value: 1 }\n";
    let mut reads = [read("flow", flow), read("a", task), read("b", task)];
    check_references(&mut reads, &|_, _| false);
    let said: Vec<String> = reads.iter().flat_map(|read| &read.problems).map(shown).collect();
    assert_eq!(said, ["2:7 error: the task `greet` is defined twice (the first one is at a:2:7)\n"]);
}

#[test]
fn large_workflows_are_read() {
    let count = limits::NODES_MAX;
    let mut text = "kind: workflow\nname: w\nnodes:\n".to_owned();
    (0..count).for_each(|n| {
        writeln!(
            text,
            "  n{n}: {{ task: t, input: {{ a: '${{state.x}}' }}, output: {{ state.x{n}: '${{result.a + 1}}' }} }}"
        )
        .unwrap()
    });
    text.push_str("transitions:\n");
    (1..count)
        .for_each(|n| writeln!(text, "  - {{ from: n{}, to: n{n}, group: g{n}, when: state.ok }}", n - 1).unwrap());
    let found = read("f", &text);
    assert!(found.problems.iter().all(|problem| problem.severity == Severity::Warning), "{}", found.problems[0]);
    let refused = check(&text.replacen("nodes:\n", "nodes:\n  one-more:\n", 1));
    assert!(refused.contains("10001 nodes are too many, the limit is 10000 (`nodes_max`)"), "{refused}");
}

proptest! {
    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = check(&text);
    }

    #[test]
    fn no_text_that_looks_like_a_definition_panics(
        words in proptest::collection::vec(
            prop_oneof![
                Just("kind: workflow\n"), Just("name: w\n"), Just("nodes:\n"), Just("  a: { task: t }\n"), Just("  b:\n"),
                Just("    run: { value: \"${state.x\" }\n"), Just("transitions:\n"), Just("  - { from: a, to: b }\n"),
                Just("  - from: b\n"), Just("    to: a\n"), Just("    join: { group: g }\n"), Just("    group: g\n"),
                Just("---\n"), Just("\t"), Just("&x "), Just("*x"), Just("\""), Just("'"), Just("["), Just("}"), Just(": "),
                Just("|\n"), Just("!!str "), Just("ä"), Just("\r"), Just("on: error\n"), Just("kind: task\n"), Just("run:\n"),
            ],
            0..40,
        )
    ) {
        let text: String = words.concat();
        for problem in read("f", &text).problems {
            let _ = problem.to_string();
        }
    }
}

#[test]
fn joins_that_are_alike_for_one_opening_are_still_compared_for_the_next() {
    let text = "kind: workflow
name: w
nodes: { s: { task: t }, p: { task: t }, q: { task: t }, a: { task: t }, b: { task: t }, c: { task: t }, end: { task: t } }
transitions:
  - { from: s, to: p, when: input.first }
  - { from: s, to: q }
  - { from: p, to: a, group: g }
  - { from: p, to: b, group: g }
  - { from: q, to: c, group: g }
  - { from: q, to: b, group: g }
  - { from: a, to: end, join: { group: g } }
  - { from: c, to: end, join: { group: g, wait_for: any } }
  - { from: b, to: end, join: { group: g } }
";
    let expected = "13:40 error: two joins close the same group `g`, but differ in `wait_for` \
                    (they fire as one, so make this like the join on line 12)\n";
    assert_eq!(check(text), expected);
}

/// What is said about a workflow of two nodes, with `rest` on the transition between them.
fn check_transition(rest: &str) -> String {
    let transitions = format!("transitions:\n  - {{ from: a, to: b, {rest} }}\n");
    check(&format!("kind: workflow\nname: w\nnodes: {{ a: {{ task: t }}, b: {{ task: t }} }}\n{transitions}"))
}

#[test]
fn a_number_of_branches_is_bounded_and_whole() {
    assert_eq!(check_transition("spawn: 400000"), "");
    for huge in ["400001", "18446744073709551615"] {
        let expected = format!("5:30 error: {huge} branches are too many, the limit is 400000 (`branches_max`)\n");
        assert_eq!(check_transition(&format!("spawn: {huge}")), expected);
    }
    let literals = [
        ("1.5", "the number `1.5`"),
        ("null", "nothing"),
        ("true", "`true`"),
        ("-1", "the number `-1`"),
        ("[1]", "a list"),
    ];
    for (literal, found) in literals {
        let expected = format!(
            "5:30 error: `spawn` must be a whole number from 0, or an expression such as `input.count`, found {found}\n"
        );
        assert_eq!(check_transition(&format!("spawn: {literal}")), expected);
    }
}

#[test]
fn the_result_of_a_workflow_sees_nothing_that_belongs_to_one_token() {
    let workflow = |name: &str| {
        let text = "kind: workflow
name: w
nodes: { a: { task: t }, b: { task: t }, c: { task: t } }
transitions:
  - { from: a, to: b, foreach: { in: input.list, as: question } }
  - { from: b, to: c, on: error }
result: { x: \"${";
        check(&format!("{text}{name}}}\" }}\n"))
    };
    for name in ["input", "state", "output", "run"] {
        assert_eq!(workflow(name), "");
    }
    let known = "`input`, `state`, `output` and `run`";
    for name in ["error", "item", "branch", "question", "result"] {
        let expected = format!("7:17 error: there is no `{name}` here (when the run is done there is only {known})\n");
        assert_eq!(workflow(name), expected);
    }
    assert_eq!(workflow("elsewhere"), format!("7:17 error: unknown name `elsewhere` (known here are {known})\n"));
}

#[test]
fn an_unknown_name_is_answered_with_those_that_are_there() {
    let hint = "(known here are `input`, `state`, `output`, `result`, `item`, `branch` and `run`)";
    assert_eq!(check_transition("when: elsewhere"), format!("5:29 error: unknown name `elsewhere` {hint}\n"));
    let hint = "(known here are `input`, `state`, `output`, `result`, `error`, `item`, `branch` and `run`)";
    let found = check_transition("on: error, when: elsewhere");
    assert_eq!(found, format!("5:40 error: unknown name `elsewhere` {hint}\n"));
}

#[test]
fn a_mock_takes_its_delay_as_milliseconds_too() {
    let mock = |delay: &str| check(&format!("kind: task\nname: t\nrun: {{ mock: {{ {delay} }} }}\n"));
    assert_eq!(mock("delay: 10, delay_jitter: 0"), "");
    assert_eq!(mock("delay: 10ms, delay_jitter: \"${input.ms}\""), "");
    let expected = "must be a duration such as `100ms`, or a whole number of milliseconds from 0, found the number";
    assert_eq!(mock("delay: -5"), format!("3:23 error: `delay` {expected} `-5`\n"));
    assert_eq!(mock("delay_jitter: 1.5"), format!("3:30 error: `delay_jitter` {expected} `1.5`\n"));
    assert_eq!(mock("delay: 316224000001"), "3:23 error: `delay` is longer than ten years\n");
}

#[test]
fn nothing_is_told_that_may_only_follow_from_what_could_not_be_read() {
    let said = |transitions: &str| {
        let nodes = "a: { task: t }, b: , c: { output: { state.x: 1 } }, d: { task: t }";
        check(&format!("kind: workflow\nname: w\nstart: a\nnodes: {{ {nodes} }}\ntransitions:\n{transitions}"))
    };
    let fan_out = "  - { from: a, to: b, spawn: 2, group: g }\n  - { from: a, to: c, group: g }\n";
    let joins = |first: &str, second: &str| {
        let joins = format!("  - {{ from: b, to: d, join: {{ group: g, {first} }} }}\n");
        said(&format!("{fan_out}{joins}  - {{ from: c, to: d, join: {{ group: g, {second} }} }}\n"))
    };
    let these = |said: &str, expected: &[&str]| {
        let is_there = expected.iter().all(|part| said.contains(part));
        assert_eq!((said.lines().count(), is_there), (expected.len(), true), "{said}");
    };
    // Two joins that may be alike, and may merge what is written.
    these(&joins("wait_for: any", "wait_for: any"), &["`state.x` is written in a branch and never merged"]);
    these(&joins("wait_for: any", "wait_for: most"), &["found the text `most`", "`state.x` is written"]);
    these(&joins("wait_for: any", "wait: any"), &["unknown field `wait`"]);
    these(&joins("wait_for: any", "merge: 3, wait_for: any"), &["a merge must be an object"]);
    these(&joins("wait_for: any", "timeout: 5"), &["differ in `wait_for` (", "`timeout` has no unit"]);
    // A loop that may end, or be taken after something else.
    let ways = |last: &str| {
        let first = "  - { from: a, to: b }\n  - { from: b, to: c }\n  - { from: c, to: d, when: input.x }\n";
        said(&format!("{first}{last}"))
    };
    these(&ways("  - { from: c, to: b }\n"), &["may never end"]);
    these(&ways("  - { from: c, to: b, when: }\n"), &["`when` must be an expression"]);
    these(&ways("  - { from: c, to: b }\n  - { from: c, to: dd }\n"), &["there is no node `dd`"]);
    let bad_beside = ways("  - { from: c, to: b }\n  - { from: c, to: d, when: }\n");
    these(&bad_beside, &["may never end", "`when` must be an expression"]);
}

#[test]
fn where_a_run_begins_is_asked_only_when_no_transition_can_tell() {
    let said = |transitions: &str| {
        check(&format!("kind: workflow\nname: w\ntimeout: 1\nnodes: {{ a: , b: }}\ntransitions: [{transitions}]\n"))
    };
    assert_eq!(check("kind: workflow\nname: w\nstate: {}\nnodes: { a: }\n"), "");
    assert!(said("").contains("it is not clear where a run begins: no transition leads to `a` and `b`"));
    assert!(!said("{ from: a, to: bb }").contains("not clear"));
    assert!(!said("{ from: aa, to: b }").contains("not clear"));
    assert!(said("{ from: a, to: b, when: input.x }, { from: bb, to: a }, { from: a }").contains("every node has a"));
}
