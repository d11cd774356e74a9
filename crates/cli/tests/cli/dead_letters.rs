//! `dead-letters`: listed, shown, redriven, deleted.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use steadfast::Engine;
use steadfast_sim::actors::{actor, fragile};
use tempfile::tempdir;

use crate::served::Served;

/// Makes a store with two dead letters, of actors that only this process knows.
fn leave_letters(store: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = Engine::open(store).unwrap().kind(fragile::KIND, fragile::Fragile).start().unwrap();
        for name in ["a", "b"] {
            engine.send(&actor(fragile::KIND, name), &fragile::Knock::Error).await.unwrap();
        }
        while engine.dead_letters(None, 10).unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        engine.stop(Duration::from_secs(10)).await;
    });
}

#[test]
fn dead_letters_are_listed_shown_redriven_and_deleted() {
    let folder = tempdir().unwrap();
    leave_letters(&folder.path().join("s.db"));
    let served = Served::begin(folder, "serve --store s.db --json --listen 127.0.0.1:0");
    let list = served.document("dead-letters list");
    let ids: Vec<&str> = list["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!((ids.len(), &list["next_cursor"]), (2, &Value::Null));
    let table = served.run("dead-letters list").done();
    assert!(
        table.starts_with("ID") && table.contains(&format!("\n{}", ids[0])) && table.contains("  3         20"),
        "{table}"
    );
    let source = list["items"][1]["actor"].as_str().unwrap();
    let of_one = served.document(&format!("dead-letters list --source {source}"));
    assert_eq!((of_one["items"].as_array().unwrap().len(), &of_one["items"][0]["id"]), (1, &json!(ids[1])));
    let part = served.run("dead-letters list --limit 1");
    assert_eq!((part.stdout.lines().count(), part.stderr.contains("there are more")), (2, true), "{part:?}");

    let shown = served.run(&format!("dead-letters show {}", ids[1])).done();
    assert!(shown.starts_with(&format!("id        {}\nactor     {}:", ids[1], fragile::KIND)), "{shown}");
    assert_eq!(served.document(&format!("dead-letters show {}", ids[1]))["attempts"], 3);

    let deleted = served.run(&format!("dead-letters delete {} --json", ids[0])).lines();
    assert_eq!(deleted, [json!({ "id": ids[0], "status": "deleted" })]);
    // Gone once; the other is done nevertheless.
    let both = served.run(&format!("dead-letters redrive {} {}", ids[0], ids[1]));
    assert_eq!(both.stdout, format!("{}  redriven\n", ids[1]));
    assert!(both.failed(2).contains("it may have been redriven or deleted already"));
    let none = served.run("dead-letters list");
    assert_eq!((&*none.stdout, &*none.stderr), ("", "note: there are no dead letters\n"));
    let error = served.run(&format!("dead-letters show {}", ids[0])).failed(2);
    assert!(error.contains("it may have been redriven or deleted already"), "{error}");
    served.run("dead-letters delete nonsense").failed(2);
}
