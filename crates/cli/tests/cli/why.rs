//! `why` and `doctor`.

use serde_json::json;

use crate::command::run;
use crate::served::Served;

const WAITS: &str = "kind: workflow\nname: waits\nnodes: { ask: { wait: { signal: answer } } }\n";
const NAPS: &str = "kind: workflow\nname: naps\nnodes: { nap: { sleep: 1h } }\n";
const MAILS: &str = "kind: workflow\nname: mails\nnodes: { send: { run: { worker: mail } } }\n";
const OUTER: &str = "
kind: workflow
name: outer
nodes: { begin: {}, below: { workflow: waits }, end: {} }
transitions:
  - { from: begin, to: below, spawn: 7, group: all }
  - { from: below, to: end, join: { group: all } }
";

#[test]
fn a_run_is_explained_as_a_tree_with_what_can_be_done() {
    let served = Served::with(&[WAITS, MAILS, OUTER]);
    served.run("start waits --id w").done();
    assert_eq!(
        served.run("why w").done(),
        "run `w` of `waits` is running\n\
         └─ node `ask`: waits for signal `answer`, which nobody has sent\n   send it: steadfast signal w answer JSON\n"
    );
    served.run("runs pause w").done();
    assert!(served.run("why w").done().contains("\ngo on: steadfast runs resume w\n"));
    served.run("runs cancel w").done();
    assert!(served.run("why w").done().starts_with("run `w` of `waits` is cancelled since 20"));

    served.run("start mails --id m").done();
    assert!(served.run("why m").done().ends_with("\n   start a worker that asks for queue `mail`\n"));
    assert_eq!(served.document("why m")["waits"][0]["queue"], "mail");
    served.run("why nobody").failed(2);

    served.run("start outer --id o").done();
    let told = served.run("why o").done();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[1], "└─ group `all`: 0 of 7 branches have arrived, join `all`");
    assert!(lines[2].starts_with("   ├─ branch 0: node `below`: waits for run `o."), "{told}");
    assert_eq!(lines.last(), Some(&"   └─ … and 2 more"), "{told}");
}

#[test]
fn what_nothing_will_wake_is_found_in_a_broken_store() {
    let mut served = Served::with(&[WAITS, NAPS, MAILS, OUTER]);
    for (workflow, id) in [("waits", "w"), ("naps", "n"), ("mails", "m"), ("outer", "o")] {
        served.run(&format!("start {workflow} --id {id}")).done();
    }
    let well = served.run("doctor").done();
    assert!(well.contains("looked at, nothing is stuck; woken next: 1 by alarm, "), "{well}");
    served.run("doctor --store s.db").failed(1);

    served.child.kill().unwrap();
    served.child.wait().unwrap();
    assert!(run(served.path(), "doctor --store s.db").done().contains("nothing is stuck"));
    let store = rusqlite::Connection::open(served.path().join("s.db")).unwrap();
    assert_eq!(store.execute("DELETE FROM alarms WHERE actor = 'run:n'", ()).unwrap(), 1);
    assert_eq!(store.execute("DELETE FROM tasks WHERE actor = 'run:m'", ()).unwrap(), 1);
    drop(store);
    let found = run(served.path(), "doctor --store s.db");
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.stdout.contains(
        "run `m` of `mails` would wait for ever\n  node `send`, token 1: it waits for a task that is not there\n"
    ));
    assert!(found.stdout.contains("run `n` of `naps` would wait for ever\n  something is due at 20"), "{found:?}");

    served.killed_and_begun_again();
    let document = served.run("doctor --json");
    assert_eq!(document.code, Some(1));
    let document: serde_json::Value = serde_json::from_str(&document.stdout).unwrap();
    let stuck: Vec<&serde_json::Value> = document["stuck"].as_array().unwrap().iter().map(|run| &run["id"]).collect();
    assert_eq!(stuck, [&json!("m"), &json!("n")]);

    let expected = "m  running  retried 0, dispatched 1, unparked 0, taken back 0\n\
                    n  running  retried 0, dispatched 0, unparked 0, taken back 0\n";
    assert_eq!(served.run("runs recover m n").done(), expected);
    assert!(served.run("doctor").done().contains("nothing is stuck"));
}

#[test]
fn a_store_that_is_not_there_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let error = run(folder.path(), "doctor --store none.db").failed(2);
    assert!(error.contains("there is no store `none.db`"), "{error}");
    assert!(crate::command::names_in(folder.path()).is_empty());
    run(folder.path(), "doctor --store none.db --url http://127.0.0.1:1").failed(2);
}
