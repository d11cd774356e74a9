//! What is too large, not there, or not so.

use reqwest::Method;

use crate::served::{Served, answered};

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_refused() {
    let served = Served::new().await;
    let text = format!("{{\"input\": \"{}\"}}", "x".repeat(8 * 1024 * 1024));
    served.post("/v1/workflows/hello/runs", text).await.problem(413, "too-large");
    let put = served.request(Method::PUT, "/v1/definitions").body(" ".repeat(8 * 1024 * 1024 + 1));
    answered(put).await.problem(413, "too-large");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_and_methods_that_are_not_there_are_problems_too() {
    let served = Served::new().await;
    for path in ["/", "/v1", "/v1/runs/", "/v2/runs", "/v1/runs/a/b/c", "//"] {
        served.get(path).await.problem(404, "path-not-found");
    }
    answered(served.request(Method::DELETE, "/v1/runs")).await.problem(405, "method-not-allowed");
    answered(served.request(Method::POST, "/healthz")).await.problem(405, "method-not-allowed");
    answered(served.request(Method::GET, "/v1/runs/a/cancel")).await.problem(405, "method-not-allowed");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_in_a_browser_is_kept_out_where_there_are_no_keys() {
    let served = Served::new().await;
    let foreign = served.request(Method::GET, "/v1/runs").header("origin", "https://example.com");
    answered(foreign).await.problem(403, "forbidden");
    let rebound = served.request(Method::GET, "/v1/runs").header("host", "example.com:7400");
    answered(rebound).await.problem(403, "forbidden");
    let own = served.request(Method::GET, "/v1/runs").header("origin", format!("http://{}", served.address));
    let response = own.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers().keys().all(|name| !name.as_str().starts_with("access-control")));
    served.stop().await;
}
