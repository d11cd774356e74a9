//! The examples do what they say.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::command::{names_in, run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn folder() -> PathBuf {
    root().join("examples/graphs")
}

/// The commands that the head of an example says it is run with.
fn commands(file: &str) -> Vec<String> {
    let text = fs::read_to_string(folder().join(file)).unwrap();
    let head = text.lines().take_while(|line| line.starts_with('#'));
    head.filter_map(|line| line.strip_prefix("#   steadfast ")).map(str::to_owned).collect()
}

/// Every example, and what its first command gives.
fn examples() -> Vec<(&'static str, Value)> {
    let sources = json!(["encyclopedia", "newspaper", "archive", "expert"]);
    let conclusion =
        |question: &str, finding: Value| json!({ "question": question, "sources": sources, "finding": finding });
    let city = |city: &str, letters: u32, place: &str| json!({ "city": city, "letters": letters, "place": place });
    let cities = [city("Bern", 4, "1 of 3"), city("Oslo", 4, "2 of 3"), city("Lisbon", 6, "3 of 3")];
    let unknown = "What is still unknown about tides?";
    let conclusions = json!([
        conclusion("What are tides?", Value::Null),
        conclusion("Who found out about tides?", Value::Null),
        conclusion("Where are tides seen?", Value::Null),
        conclusion("Why do tides matter?", Value::Null),
        conclusion(unknown, json!(format!("read everything about “{unknown}”"))),
    ]);
    let undone = json!(["hotel H1 cancelled", "flight F1 cancelled"]);
    vec![
        ("approval.yaml", json!({ "outcome": "sent a letter, approved by Ada" })),
        ("big-fan-out.yaml", json!({ "counted": 1000 })),
        ("compensation.yaml", json!({ "outcome": "not booked: the card was declined", "undone": undone })),
        ("fan-out-and-merge.yaml", json!({ "cities": cities })),
        ("hello.yaml", json!({ "greeting": "Hello, Ada!" })),
        ("nested-fan-out.yaml", json!({ "summaries": ["Beginning: ONE TWO", "Middle: THREE", "End: empty"] })),
        ("priority-routing.yaml", json!({ "decision": "a person looks at it", "note": "2500 is written down" })),
        ("quorum.yaml", json!({ "votes": ["Ann says yes", "Cid says yes", "Eve says yes"] })),
        ("race.yaml", json!({ "first": "near" })),
        ("recursion.yaml", json!({ "levels": 101 })),
        ("research.yaml", json!({ "summary": "5 questions answered", "conclusions": conclusions })),
        (
            "retry-and-error-path.yaml",
            json!({ "flaky": "worked in the end", "broken": "broken gave up (task_failed): out of paper" }),
        ),
    ]
}

#[test]
fn every_example_gives_what_it_promises() {
    for (file, expected) in examples() {
        let commands = commands(file);
        let command = commands.first().unwrap_or_else(|| panic!("{file} does not say how it is run"));
        assert!(command.starts_with(&format!("run examples/graphs/{file}")), "{file}: {command}");
        let line = format!("'{}' {command}", env!("CARGO_BIN_EXE_steadfast"));
        let output = Command::new("sh").args(["-c", &line]).current_dir(root()).output().unwrap();
        assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(0), ""), "{file}");
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found, expected, "{file}");
    }
}

#[test]
fn an_input_leads_another_way() {
    let ended = run(&folder(), r#"run compensation.yaml --input {"card":"good"}"#);
    assert_eq!(ended.done(), "{\n  \"outcome\": \"booked, receipt R1\",\n  \"undone\": null\n}\n");
    let ended = run(&folder(), r#"run priority-routing.yaml --input {"amount":0}"#);
    assert_eq!(ended.done(), "{\n  \"decision\": \"nothing to do\",\n  \"note\": null\n}\n");
}

#[test]
fn every_example_is_tested() {
    let tested: Vec<&str> = examples().into_iter().map(|(file, _)| file).collect();
    assert_eq!(names_in(&folder()), tested);
}

#[test]
fn every_example_is_right_alone_and_among_the_others() {
    for (file, _) in examples() {
        let told = run(&folder(), &format!("validate {file}")).done();
        assert!(told.starts_with("1 file, ") && told.ends_with(": no problems\n"), "{file}: {told}");
    }
    assert!(run(&folder(), "validate .").done().ends_with(": no problems\n"));
}
