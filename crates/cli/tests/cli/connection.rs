//! What is said when no server is there, or none that lets us in; and what a shell completes.

use std::fs;

use tempfile::tempdir;

use crate::command::run;
use crate::served::Served;

/// The hash of the key `admin`, and that of `guest`.
const ADMIN: &str = "8c6976e5b5410415bde908bd4dee15dfb167a9c873fc4bb8a81f6f2ab448a918";
const GUEST: &str = "84983c60f7daadc1cb8698621f802c0d9f9a3c3c295c810748fb048115c186ec";

/// Nobody listens on the first port, which belongs to the system.
#[test]
fn without_a_server_it_is_said_how_to_get_one() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("flow.yaml"), "kind: task\nname: t\nrun: { value: 1 }\n").unwrap();
    for line in [
        "apply flow.yaml",
        "start x",
        "runs list",
        "runs show x",
        "runs events x --follow",
        "signal x y",
        "dead-letters list",
    ] {
        let error = run(folder.path(), &format!("{line} --url http://127.0.0.1:1")).failed(1);
        assert!(
            error.contains("nobody answers at http://127.0.0.1:1 (") && error.contains("`steadfast dev`"),
            "{error}"
        );
    }
    for url in ["localhost:7400", "nonsense"] {
        let error = run(folder.path(), &format!("runs list --url {url}")).failed(2);
        assert!(error.contains("expected one such as http://127.0.0.1:7400"), "{error}");
    }
}

#[test]
fn a_key_that_is_missing_wrong_or_too_weak_is_told_from_each_other() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("keys"), format!("admin {ADMIN} ada\nread {GUEST} visitor\n")).unwrap();
    fs::write(folder.path().join("key"), "admin\n").unwrap();
    let served = Served::begin(folder, "serve --store s.db --json --listen 127.0.0.1:0 --api-key-file keys");
    let missing = served.run("runs list").failed(2);
    assert!(
        missing.contains("this server wants a key")
            && missing.contains("STEADFAST_KEY")
            && missing.contains("--key-file"),
        "{missing}"
    );
    let wrong = served.run_with_key("runs list", "abracadabra").failed(2);
    assert!(wrong.contains("this key is not known here") && !wrong.contains("abracadabra"), "{wrong}");
    assert!(served.run_with_key("runs list --json", "guest").done().contains("items"));
    let weak = served.run_with_key("runs cancel x", "guest").failed(2);
    assert!(weak.contains("the key `visitor` has the role `read`; this needs at least `operate`"), "{weak}");
    assert!(served.run("runs list --json --key-file key").done().contains("items"));
    let unreadable = served.run("runs list --key-file nothing").failed(2);
    assert!(unreadable.contains("the file of the key `nothing` cannot be read"), "{unreadable}");
    let none = served.run_with_key("runs list", "two words").failed(2);
    assert!(none.contains("STEADFAST_KEY does not hold a key") && !none.contains("two words"), "{none}");
}

#[test]
fn every_shell_gets_a_script_that_knows_the_commands() {
    let folder = tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(folder.path(), &format!("completions {shell}")).done();
        assert!(script.contains("dead-letters") && script.contains("redrive"), "{shell}");
    }
    let error = run(folder.path(), "completions basic").failed(2);
    assert!(error.contains("[possible values: bash"), "{error}");
}
