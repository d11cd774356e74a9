//! `/openapi.json`.

use serde_json::Value;

use crate::served::Served;

#[tokio::test(flavor = "multi_thread")]
async fn the_description_names_every_route() {
    let served = Served::new().await;
    let description = served.get("/openapi.json").await.body;
    let mut routes = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        routes.extend(methods.as_object().unwrap().keys().map(|method| format!("{method} {path}")));
    }
    routes.sort();
    let expected = [
        "delete /v1/dead-letters/{id}",
        "get /healthz",
        "get /metrics",
        "get /openapi.json",
        "get /readyz",
        "get /v1/dead-letters",
        "get /v1/dead-letters/{id}",
        "get /v1/definitions",
        "get /v1/definitions/{kind}/{name}",
        "get /v1/doctor",
        "get /v1/events",
        "get /v1/runs",
        "get /v1/runs/{id}",
        "get /v1/runs/{id}/artifacts",
        "get /v1/runs/{id}/children",
        "get /v1/runs/{id}/context",
        "get /v1/runs/{id}/decisions",
        "get /v1/runs/{id}/events",
        "get /v1/runs/{id}/tokens",
        "get /v1/runs/{id}/why",
        "post /v1/dead-letters/{id}/redrive",
        "post /v1/runs/{id}/cancel",
        "post /v1/runs/{id}/pause",
        "post /v1/runs/{id}/purge",
        "post /v1/runs/{id}/recover",
        "post /v1/runs/{id}/resume",
        "post /v1/runs/{id}/signals/{name}",
        "post /v1/tasks/lease",
        "post /v1/tasks/{id}/complete",
        "post /v1/tasks/{id}/fail",
        "post /v1/tasks/{id}/heartbeat",
        "post /v1/workflows/{name}/runs",
        "put /v1/definitions",
    ];
    assert_eq!(routes, expected);
    served.stop().await;
}

/// Reviewed whenever it changes: programs are written by it.
#[test]
fn the_description_is_the_one_in_the_documents() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let text = steadfast_server::openapi().unwrap() + "\n";
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(file, &text).unwrap();
    }
    let is_same = std::fs::read_to_string(file).unwrap() == text;
    assert!(
        is_same,
        "docs/openapi.json is another; run this test with `INSTA_UPDATE=always`, and look at the difference"
    );
}

#[test]
fn everything_that_is_referred_to_is_described() {
    let text = steadfast_server::openapi().unwrap();
    let description: Value = serde_json::from_str(&text).unwrap();
    let references = text.split("\"$ref\": \"#").skip(1).map(|rest| rest.split('"').next().unwrap());
    for reference in references {
        assert!(description.pointer(reference).is_some(), "{reference}");
    }
    let operations = text.matches("\"operationId\"").count();
    assert_eq!(operations, 33);
}
