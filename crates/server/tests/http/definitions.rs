//! Definitions: applied, listed, read.

use reqwest::Method;
use serde_json::json;

use crate::served::{Answered, Served, answered};

async fn put(served: &Served, path: &str, body: &str) -> Answered {
    answered(served.request(Method::PUT, path).header("content-type", "application/yaml").body(body.to_owned())).await
}

const TWO: &str = "kind: workflow\nname: new\nnodes: { a: { workflow: hello } }\n---\nkind: workflow\nname: waits\nnodes: { a: {} }\n";

#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_applied_once() {
    let served = Served::new().await;
    let created = json!([
        { "kind": "workflow", "name": "new", "version": 1, "status": "created" },
        { "kind": "workflow", "name": "waits", "version": 2, "status": "created" },
    ]);
    let dry = put(&served, "/v1/definitions?dry_run=true", TWO).await;
    assert_eq!((dry.status, &dry.body["items"]), (200, &created));
    assert_eq!(served.get("/v1/definitions/workflow/new").await.status, 404, "nothing was stored");
    assert_eq!(put(&served, "/v1/definitions", TWO).await.body["items"], created);
    for path in ["/v1/definitions?dry_run=true", "/v1/definitions"] {
        let again = put(&served, path, TWO).await;
        assert_eq!(
            (again.items("status"), again.items("version")),
            (vec!["unchanged".into(); 2], vec!["1".into(), "2".into()])
        );
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_problem_of_definitions_is_told_and_nothing_applied() {
    let served = Served::new().await;
    let text = "kind: workflow\nname: good\nnodes: { a: {} }\n---\nkind: workflow\nname: bad\nnoodes: {}\nnodes: { a: { workflow: nobody } }\n";
    let answer = put(&served, "/v1/definitions", text).await;
    answer.problem(422, "invalid-definitions");
    let problems = answer.body["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert_eq!(
        (&problems[0]["line"], &problems[0]["column"], &problems[0]["file"]),
        (&json!(7), &json!(1), &json!("body"))
    );
    assert!(problems[1]["message"].as_str().unwrap().contains("nobody"));
    served.get("/v1/definitions/workflow/good").await.problem(404, "definition-not-found");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_listed_in_pages_and_read_in_any_version() {
    let served = Served::new().await;
    put(&served, "/v1/definitions", TWO).await;
    let first = served.get("/v1/definitions?kind=workflow&limit=4").await;
    assert_eq!(first.items("name"), ["hello", "mails", "new", "outer"]);
    let cursor = first.body["next_cursor"].as_str().unwrap();
    let last = served.get(&format!("/v1/definitions?kind=workflow&limit=4&cursor={cursor}")).await;
    assert_eq!(
        (last.items("name"), &last.body["next_cursor"]),
        (["waits", "waits_thrice", "wide"].map(str::to_owned).to_vec(), &json!(null))
    );
    let newest = served.get("/v1/definitions/workflow/waits").await.body;
    assert_eq!((&newest["version"], &newest["document"]["nodes"]), (&json!(2), &json!({ "a": {} })));
    let older = served.get("/v1/definitions/workflow/waits@1").await.body;
    assert_eq!((&older["version"], &older["document"]["name"]), (&json!(1), &json!("waits")));
    for path in ["waits@3", "waits@x", "waits@", "%2e%2e%2fx", "nobody"] {
        served.get(&format!("/v1/definitions/workflow/{path}")).await.problem(404, "definition-not-found");
    }
    served.get("/v1/definitions/pool/waits").await.problem(400, "invalid-parameter");
    served.stop().await;
}
