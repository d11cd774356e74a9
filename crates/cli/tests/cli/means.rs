//! What `run` does about secrets, programs and functions that are not here: it refuses what it is asked for, and leaves alone what it is not.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use steadfast::Engine;
use steadfast::graph::{Graphs, Run};
use steadfast_core::json::Json;
use tempfile::{TempDir, tempdir};

use crate::command::{names_in, run, steadfast};

const PAYS: &str = r#"
kind: workflow
name: pays
nodes:
  pay:
    run: { command: { program: /bin/sh, args: ["-c", "test \"$KEY\" = s3cr3t && echo 7"], env: { KEY: "${secret.CLI_TEST_KEY}" } } }
    output: { output.paid: "${result}" }
"#;

const PLAIN: &str = "kind: workflow\nname: plain\nnodes: { a: { run: { mock: { value: 1 } }, output: { output.one: \"${result}\" } } }\n";

fn folder_with(files: &[(&str, &str)]) -> TempDir {
    let folder = tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Begins a run of `pays` in a process that cannot do its task.
fn begin_paying(folder: &Path) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let engine = Engine::open(folder.join("x.db")).unwrap().graphs().start().unwrap();
        let graphs = Graphs::of(&engine);
        graphs.apply(&steadfast_core::definition::read("", PAYS).definitions).await.unwrap();
        graphs.start(Run::new("pays", Json::parse("{}").unwrap()).with_id("a")).await.unwrap();
        engine.stop(Duration::ZERO).await;
    });
}

#[test]
fn a_run_of_somebody_else_waits_for_what_is_not_here_and_goes_on_where_it_is() {
    let folder = folder_with(&[("pays.yaml", PAYS), ("plain.yaml", PLAIN)]);
    begin_paying(folder.path());
    for line in ["run plain.yaml --store x.db", "run plain.yaml --store x.db --allow-command"] {
        let Output { status, stdout, stderr } = steadfast(folder.path(), line).output().unwrap();
        let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert_eq!((status.code(), &*stdout), (Some(0), "{\n  \"one\": 1\n}\n"), "{stderr}");
        let told: Vec<&str> = stderr.lines().collect();
        let [told] = told[..] else { panic!("one line for the one task that waits: {stderr}") };
        assert!(told.contains("WARN") && told.contains("actor=run:a") && told.contains("task="), "{told}");
        assert!(told.contains("set the environment variable `STEADFAST_SECRET_CLI_TEST_KEY`"), "{told}");
    }
    // With the secret, and without the permission.
    let mut third = steadfast(folder.path(), "run plain.yaml --store x.db");
    let Output { status, stderr, .. } = third.env("STEADFAST_SECRET_CLI_TEST_KEY", "s3cr3t").output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("actor=run:a") && stderr.contains("`--allow-command`"), "{stderr}");

    let mut last = steadfast(folder.path(), "run pays.yaml --store x.db --id a --allow-command");
    let Output { status, stdout, stderr } = last.env("STEADFAST_SECRET_CLI_TEST_KEY", "s3cr3t").output().unwrap();
    assert_eq!(String::from_utf8(stdout).unwrap(), "{\n  \"paid\": 7\n}\n");
    assert_eq!((status.code(), String::from_utf8(stderr).unwrap()), (Some(0), String::new()));
}

#[test]
fn a_file_whose_secrets_are_not_set_is_refused_before_anything_is_stored() {
    let request = |secret: &str| {
        format!("http: {{ url: \"https://example.org\", headers: {{ x: \"Bearer ${{secret.{secret}}}\" }} }}")
    };
    let (here, missing, other) = (request("CLI_TEST_KEY"), request("CLI_TEST_MISSING"), request("CLI_TEST_OTHER"));
    let nodes: String = (1..=5).map(|n| format!("  n{n}: {{ run: {{ {missing} }} }}\n")).collect();
    let file = format!(
        "kind: task\nname: t\nrun: {{ {other} }}\n---\nkind: workflow\nname: w\nnodes:\n  a: {{ run: {{ {here} }} }}\n  b: {{ task: t }}\n{nodes}\
         transitions: [{{ from: a, to: b }}]\n",
    );
    let transitions: String = (1..=5).map(|n| format!(", {{ from: a, to: n{n} }}")).collect();
    let file = file.replace(" to: b }]", &format!(" to: b }}{transitions}]"));
    let folder = folder_with(&[("flow.yaml", &file)]);
    let mut command = steadfast(folder.path(), "run flow.yaml --store x.db");
    let output = command.env("STEADFAST_SECRET_CLI_TEST_KEY", "s3cr3t").output().unwrap();
    let expected = "error: secrets are not set:
  `CLI_TEST_MISSING`, used by node `n1` of workflow `w`, node `n2` of workflow `w`, node `n3` of workflow `w` and 2 more places: \
        set the environment variable `STEADFAST_SECRET_CLI_TEST_MISSING`
  `CLI_TEST_OTHER`, used by task `t`: set the environment variable `STEADFAST_SECRET_CLI_TEST_OTHER`
";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(names_in(folder.path()), ["flow.yaml"]);
}

#[test]
fn a_workflow_that_calls_a_function_is_refused_and_its_neighbours_are_not() {
    let calls = "kind: workflow\nname: calls\nnodes: { a: { workflow: below } }\n---\n\
        kind: workflow\nname: below\nnodes: { b: { task: t } }\n---\nkind: task\nname: t\nrun: { function: double }\n";
    let folder = folder_with(&[("flow.yaml", &format!("{calls}---\n{PLAIN}"))]);
    let error = run(folder.path(), "run flow.yaml --workflow calls --store x.db").failed(2);
    assert!(error.starts_with("error: task `t` calls the function `double`, which is not here"), "{error}");
    assert_eq!(names_in(folder.path()), ["flow.yaml"]);
    assert!(run(folder.path(), "run flow.yaml --workflow plain").done().contains("\"one\": 1"));
}
