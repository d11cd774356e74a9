//! A server that is held by more connections than it has room for.

use std::net::TcpStream;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::raw_http::Connection;
use crate::served::Served;

const HELD: usize = 10_000;

/// Far more than the server needs for all connections it allows, and far less than it would need if each cost a megabyte.
const RESIDENT_KIB_MAX: u64 = 512 * 1024;

const FLOW: &str = r#"
kind: workflow
name: flow
nodes: { one: { run: { value: 1 } } }
"#;

#[test]
fn a_client_is_served_while_ten_thousand_silent_connections_are_held_open() {
    let given = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: given.maximum, ..given }).unwrap();
    let served = Served::with(&[FLOW]);
    let address = served.url.strip_prefix("http://").unwrap();
    let mut held = Vec::new();
    for number in 1..=HELD {
        held.push(TcpStream::connect(address).unwrap());
        if number.is_multiple_of(1_000) {
            let mut connection = Connection::open(&served.url).unwrap();
            let (status, body) = connection.ask("POST /v1/workflows/flow/runs", r#"{"wait": "60s"}"#).unwrap();
            assert_eq!(status, 201, "with {number} connections: {body}");
        }
    }
    if let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", served.child.id())) {
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kib: u64 = resident.split_whitespace().next().unwrap().parse().unwrap();
        assert!(kib < RESIDENT_KIB_MAX, "{kib} KiB");
    }
}
