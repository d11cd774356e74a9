//! A client that is made from `/openapi.json`, and used.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::ended;
use crate::served::Served;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/clients")
}

#[track_caller]
fn python(folder: &Path, script: &Path, argument: &str) -> String {
    let mut command = Command::new("python3");
    command.arg("-B").arg(script).arg(argument).current_dir(folder).env("PYTHONPATH", folder);
    ended(command.output().unwrap()).done()
}

#[test]
fn a_client_generated_from_the_description_does_what_the_description_says() {
    let served = Served::with(&[]);
    let client = python(served.path(), &examples().join("generate.py"), &format!("{}/openapi.json", served.url));
    fs::write(served.path().join("steadfast_api.py"), &client).unwrap();
    let walked = python(served.path(), &examples().join("tour.py"), &served.url);
    let expected = "\
ok
created
running
Ada says yes
True
workflow.completed
422 /problems/invalid-input
400 /problems/invalid-id
409 /problems/run-ended
";
    assert_eq!(walked, expected);
}

#[test]
fn a_generated_client_has_a_method_for_every_operation() {
    let folder = tempfile::tempdir().unwrap();
    let description = steadfast_server::openapi().unwrap();
    fs::write(folder.path().join("openapi.json"), &description).unwrap();
    let client = python(folder.path(), &examples().join("generate.py"), "openapi.json");
    let names = description.split("\"operationId\": \"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let mut count = 0;
    for name in names {
        assert!(client.contains(&format!("    def {name}(self")), "{name}");
        count += 1;
    }
    assert!(count > 20, "{count}");
}
