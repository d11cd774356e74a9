//! Dead letters: listed, tried again, thrown away.

use std::time::Duration;

use reqwest::Method;
use steadfast_server::Access;
use steadfast_sim::actors::{actor, fragile};

use crate::served::{Served, answered};

/// A server with two dead letters, and their ids.
async fn served() -> (Served, Vec<String>) {
    let served = Served::with(Access::Loopback, |builder| builder.kind(fragile::KIND, fragile::Fragile)).await;
    for name in ["a", "b"] {
        served.engine.send(&actor(fragile::KIND, name), &fragile::Knock::Error).await.unwrap();
    }
    loop {
        let ids = served.get("/v1/dead-letters").await.items("id");
        if ids.len() == 2 {
            return (served, ids);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_listed_in_pages_with_what_went_wrong() {
    let (served, ids) = served().await;
    let first = served.get("/v1/dead-letters?limit=1").await;
    assert_eq!(first.items("id"), ids[..1]);
    assert_eq!((first.items("attempts"), first.body["items"][0]["error"].is_string()), (vec!["3".to_owned()], true));
    assert_eq!(first.body["items"][0]["input"]["message"]["body"], "error");
    let second = served.get(&format!("/v1/dead-letters?cursor={}", ids[0])).await;
    assert_eq!(second.items("id"), ids[1..]);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_found_by_its_id_and_by_its_source() {
    let (served, ids) = served().await;
    let found = served.get(&format!("/v1/dead-letters/{}", ids[1])).await;
    let listed = served.get("/v1/dead-letters").await.body["items"][1].clone();
    assert_eq!((found.status, &found.body), (200, &listed));
    let actor = listed["actor"].as_str().unwrap();
    let of_actor = served.get(&format!("/v1/dead-letters?source={actor}&limit=1")).await;
    assert_eq!(of_actor.items("id"), ids[1..]);
    let cursor = of_actor.body["next_cursor"].as_str().unwrap();
    assert!(served.get(&format!("/v1/dead-letters?source={actor}&cursor={cursor}")).await.items("id").is_empty());
    assert!(served.get("/v1/dead-letters?source=order-42").await.items("id").is_empty());
    served.get("/v1/dead-letters?source=no%20run").await.problem(400, "invalid-parameter");
    served.get("/v1/dead-letters/1-1-1").await.problem(404, "dead-letter-not-found");
    served.get("/v1/dead-letters/nothing").await.problem(400, "invalid-id");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_redriven_or_deleted_once() {
    let (served, ids) = served().await;
    let delete = || answered(served.request(Method::DELETE, &format!("/v1/dead-letters/{}", ids[0])));
    assert_eq!(delete().await.status, 204);
    delete().await.problem(404, "dead-letter-not-found");
    let redrive = || answered(served.request(Method::POST, &format!("/v1/dead-letters/{}/redrive", ids[1])));
    assert_eq!(redrive().await.status, 204);
    redrive().await.problem(404, "dead-letter-not-found");
    served.stop().await;
}
