//! What those who run a server ask it.

use serde_json::json;

use crate::served::Served;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_tells_that_it_is_well_and_what_it_did() {
    let served = Served::new().await;
    served.start("waits", "a").await;
    for path in ["/healthz", "/readyz"] {
        let answer = served.get(path).await;
        assert_eq!((answer.status, &answer.body), (200, &json!({ "status": "ok" })));
    }
    let metrics = served.get("/metrics").await;
    assert_eq!(metrics.media_type, "text/plain; version=0.0.4; charset=utf-8");
    let text = metrics.body.as_str().unwrap();
    assert!(text.contains("steadfast_runs{workflow=\"waits\",status=\"running\"} 1\n"), "{text}");
    assert!(text.contains("\nsteadfast_ready 1\n"), "{text}");
    served.stop().await;
}
