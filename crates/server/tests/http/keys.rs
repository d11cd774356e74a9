//! Keys and roles.

use reqwest::Method;
use steadfast_server::{Access, BindError, Keys, Server};

use crate::served::{Served, answered};

/// Lines with the SHA-256 of the roles' own names, which are the keys here.
const FILE: &str = "\
admin 8c6976e5b5410415bde908bd4dee15dfb167a9c873fc4bb8a81f6f2ab448a918 the boss
operate 2c29d39181de8f853de5e48ba983a5c88612b9dbaa5ab32c7748800a0840aeb8
start cced28c6dc3f99c2396a5eaad732bf6b28142335892b1cd0e6af6cdb53f5ccfa
worker 87eba76e7f3164534045ba922e7770fb58bbd14ad732bbf5ba6f11cc56989e6e
read 3316348dbadfb7b11c7c2ea235949419e23f9fa898ad2c198f999617912a9925
";

async fn served() -> Served {
    Served::with(Access::Keys(Keys::parse(FILE).unwrap()), |builder| builder).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_may_what_it_is_for() {
    let served = served().await;
    let requests = [
        (Method::GET, "/v1/runs"),
        (Method::GET, "/metrics"),
        (Method::POST, "/v1/workflows/hello/runs"),
        (Method::POST, "/v1/runs/nobody/signals/go"),
        (Method::POST, "/v1/runs/nobody/cancel"),
        (Method::DELETE, "/v1/dead-letters/1-1-1"),
        (Method::PUT, "/v1/definitions"),
        (Method::POST, "/v1/runs/nobody/purge"),
    ];
    let allowed = [("read", 2), ("start", 4), ("operate", 6), ("admin", 8), ("worker", 0)];
    for (role, count) in allowed {
        for (place, (method, path)) in requests.iter().enumerate() {
            let request = served.request(method.clone(), path).header("authorization", format!("Bearer {role}"));
            let answer = answered(request).await;
            assert_eq!(answer.status != 403, place < count, "{role} {path}: {answer:?}");
            assert_ne!(answer.status, 401);
        }
    }
    for role in ["read", "start", "operate", "admin", "worker"] {
        let path = "/v1/tasks/lease";
        let request = served.request(Method::POST, path).header("authorization", format!("Bearer {role}"));
        assert_eq!(answered(request).await.status != 403, matches!(role, "admin" | "worker"), "{role} {path}");
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_that_is_known_nothing_is_told() {
    let served = served().await;
    let unknown = ["Bearer nobody", "Bearer ", "Bearer", "Basic admin", "admin", "Bearer ADMIN"];
    for path in ["/v1/runs", "/metrics", "/v1/nothing", "/"] {
        served.get(path).await.problem(401, "unauthorized");
        for header in unknown {
            let request = served.request(Method::GET, path).header("authorization", header);
            answered(request).await.problem(401, "unauthorized");
        }
    }
    for path in ["/healthz", "/readyz", "/openapi.json"] {
        assert_eq!(served.get(path).await.status, 200);
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_keys_only_loopback_is_listened_on() {
    let exposed = Server::bind("0.0.0.0:0".parse().unwrap(), Access::Loopback).await;
    assert!(matches!(exposed, Err(BindError::Exposed(_))));
    assert!(Server::bind("0.0.0.0:0".parse().unwrap(), Access::Insecure).await.is_ok());
    let first = Server::bind("127.0.0.1:0".parse().unwrap(), Access::Loopback).await.unwrap();
    let second = Server::bind(first.address(), Access::Loopback).await;
    assert!(matches!(second, Err(BindError::InUse(_))));
}
