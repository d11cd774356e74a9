//! What `steadfast serve` is told by flags, environment and file; and what it logs.

use std::fs;
use std::io::Read;
use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::tempdir;

use crate::command::{run, steadfast};
use crate::serve::{SERVE, ask, end};

#[test]
fn flags_win_over_the_environment_that_over_the_file_that_over_defaults() {
    let folder = tempdir().unwrap();
    let file = "store: file.db\nlisten: 127.0.0.1:1\ngrace: 3s\nretention: 7d\n";
    fs::write(folder.path().join("s.yaml"), file).unwrap();
    let mut command = steadfast(folder.path(), "serve --config s.yaml --print-config --listen 127.0.0.1:3");
    let Output { status, stdout, stderr } =
        command.env("STEADFAST_LISTEN", "127.0.0.1:2").env("STEADFAST_GRACE", "5s").output().unwrap();
    assert_eq!((status.code(), &*stderr), (Some(0), &b""[..]));
    let printed = String::from_utf8(stdout).unwrap();
    let lines: Vec<String> =
        printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        r#"store: "file.db" # s.yaml:1"#,
        r#"listen: "127.0.0.1:3" # --listen"#,
        "# api_key_file: # not set: no keys",
        r#"insecure: "false" # default"#,
        r#"allow_command: "false" # default"#,
        r#"retention: "7d" # s.yaml:4"#,
        r#"grace: "5s" # STEADFAST_GRACE"#,
        r#"connections: "4096" # default"#,
        r#"body_mib: "8" # default"#,
        "# otlp: # not set: no traces are sent",
        r#"log_format: "text" # default"#,
        r#"log: "info" # default"#,
    ];
    assert_eq!(lines, expected);
    // What was printed is a file of settings that says the same.
    fs::write(folder.path().join("again.yaml"), &printed).unwrap();
    let again = run(folder.path(), "serve --config again.yaml --print-config").done();
    let values = |text: &str| text.lines().map(|line| line.split('#').next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(values(&again), values(&printed));
    assert!(!folder.path().join("file.db").exists());
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("s.yaml"), "store: a.db\nretetion: 7d\nlisten: [1]\n").unwrap();
    let error = run(folder.path(), "serve --config s.yaml").failed(2);
    assert!(error.contains("s.yaml:2:1: error: unknown setting `retetion`"), "{error}");
    assert!(error.contains("did you mean `retention`?") && error.contains("s.yaml:3:9"), "{error}");
    fs::write(folder.path().join("s.yaml"), "store: a.db\nretention: 7\n").unwrap();
    let error = run(folder.path(), "serve --config s.yaml").failed(2);
    assert!(error.contains("s.yaml:2:12: error: `7` has no unit"), "{error}");
    let error = run(folder.path(), "serve --store a.db --connections 0").failed(2);
    assert!(error.contains("`--connections`: `0` is not a number from 1 to"), "{error}");
    let Output { status, stderr, .. } =
        steadfast(folder.path(), "serve --store a.db").env("STEADFAST_LOG_FORMAT", "xml").output().unwrap();
    let error = String::from_utf8(stderr).unwrap();
    assert!(status.code() == Some(2) && error.contains("`STEADFAST_LOG_FORMAT`: `xml` is not"), "{error}");
    let error = run(folder.path(), "serve").failed(2);
    assert!(error.contains("`--store`, `STEADFAST_STORE`"), "{error}");
    let error = run(folder.path(), "serve --store a.db --insecure --api-key-file keys").failed(2);
    assert!(error.contains("give one of the two"), "{error}");
    let error = run(folder.path(), "serve --config nothing.yaml").failed(2);
    assert!(error.contains("`nothing.yaml` cannot be read"), "{error}");
    assert!(!folder.path().join("a.db").exists());
}

#[test]
fn a_log_in_json_tells_of_runs_and_of_no_secrets() {
    let folder = tempdir().unwrap();
    let hash = "8c6976e5b5410415bde908bd4dee15dfb167a9c873fc4bb8a81f6f2ab448a918";
    fs::write(folder.path().join("keys"), format!("admin {hash}\n")).unwrap();
    let line = format!("{SERVE} --log-format json --log debug --body-mib 1 --api-key-file keys");
    let mut child = steadfast(folder.path(), &line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = child.stderr.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        log.read_to_string(&mut text).map(|_| text).unwrap()
    });
    let address = crate::serve::address(&mut child);
    let with_key = "HTTP/1.1\r\nAuthorization: Bearer admin\r\nX-Rest:";
    let workflow =
        r#"{"kind": "workflow", "name": "fails", "nodes": {"a": {"run": {"mock": {"fail": {"times": 9}}}}}}"#;
    let applied = ask(&address, &format!("PUT /v1/definitions {with_key}"), workflow);
    assert!(applied.starts_with("HTTP/1.1 200 "), "{applied}");
    let body = r#"{"id": "r1", "wait": "60s"}"#;
    let failed = ask(&address, &format!("POST /v1/workflows/fails/runs {with_key}"), body);
    assert!(failed.contains(r#""status":"failed""#), "{failed}");
    let refused = ask(&address, "GET /v1/runs HTTP/1.1\r\nAuthorization: Bearer guessed-key\r\nX-Rest:", "");
    assert!(refused.starts_with("HTTP/1.1 401 "));
    let large = ask(&address, &format!("POST /v1/runs/r1/signals/go {with_key}"), &" ".repeat(1024 * 1024 + 1));
    assert!(large.starts_with("HTTP/1.1 413 ") && large.contains("larger than 1 MiB"), "{large}");
    end(child, "-TERM");

    let log = reading.join().unwrap();
    assert!(!log.contains("guessed-key") && !log.contains("Bearer"), "{log}");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = |message: &str| {
        lines.iter().find(|line| line["message"].as_str().is_some_and(|text| text.starts_with(message)))
    };
    for message in [
        "serving",
        "the engine has started",
        "a definition was applied",
        "a request was answered",
        "stopping",
        "stopped",
    ] {
        assert!(said(message).is_some(), "{message}: {log}");
    }
    let task = said("a task failed").unwrap();
    assert_eq!((&task["run"], &task["level"]), (&"r1".into(), &"INFO".into()));
    let refused = said("a request was refused").unwrap();
    assert_eq!((&refused["path"], &refused["level"]), (&"/v1/runs".into(), &"WARN".into()));
}
