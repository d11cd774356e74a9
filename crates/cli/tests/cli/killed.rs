//! A run that is killed again and again ends as if nothing had happened.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use steadfast::Engine;
use steadfast::graph::Graphs;
use tempfile::tempdir;

use crate::command::{run, steadfast};

const SIGKILL: i32 = 9;
const KILLS: u32 = 50;

/// Fan-outs, one inside of the other, retries, sleeps and sub-workflows; each `write` appends its key to the log named by the input.
const FLOW: &str = r#"
kind: task
name: write
run:
  command:
    program: sh
    args: [-c, 'echo "$STEADFAST_TASK_ID" >> "$0"; echo "$1"', "${input.log}", "${input.number}"]
---
kind: workflow
name: part
nodes:
  write: { task: write, input: { log: "${input.log}", number: "${input.number}" }, output: { state.number: "${result}" } }
  nap: { sleep: 15ms }
transitions: [{ from: write, to: nap }]
result: { number: "${state.number}" }
---
kind: workflow
name: whole
nodes:
  begin: { run: { value: [1, 2, 3] }, output: { state.items: "${result}" } }
  open: { run: { value: [10, 20] }, output: { state.inner: "${result}" } }
  write:
    task: write
    input: { log: "${input.log}", number: "${outer * inner}" }
    output: { state.number: "${result}" }
  flaky:
    run: { mock: { value: "${state.number + 1}", delay: 5ms, fail: { times: 2 } } }
    retry: { max_attempts: 3, delay: 20ms }
    output: { state.number: "${result}" }
  part:
    workflow: part
    input: { log: "${input.log}", number: "${outer}" }
    output: { state.numbers: "${state.inner_numbers + [result.number]}" }
  nap: { sleep: 30ms }
  last: { task: write, input: { log: "${input.log}", number: 0 } }
transitions:
  - { from: begin, to: open, foreach: { in: state.items, as: outer }, group: outer }
  - { from: open, to: write, foreach: { in: state.inner, as: inner }, group: inner }
  - { from: write, to: flaky }
  - from: flaky
    to: part
    join: { group: inner, merge: { from: state.number, into: state.inner_numbers, strategy: append } }
  - from: part
    to: nap
    join: { group: outer, merge: { from: state.numbers, into: state.numbers, strategy: append } }
  - { from: nap, to: last }
result: { numbers: "${state.numbers}" }
"#;

/// What one run came to, beside its output.
#[derive(Debug, PartialEq)]
struct Done {
    output: Value,
    /// How many tasks have left their mark.
    written: usize,
}

fn command(round: u32) -> String {
    format!(r#"run flow.yaml --input {{"log":"log-{round}"}} --store x.db --id round-{round} --allow-command"#)
}

/// Runs to the end, and looks at what is there.
#[track_caller]
fn finish(folder: &Path, round: u32) -> Done {
    let shown: Value = serde_json::from_str(&run(folder, &format!("{} --json", command(round))).done()).unwrap();
    assert_eq!(shown["status"], "completed");
    let log = fs::read_to_string(folder.join(format!("log-{round}"))).unwrap();
    let written: BTreeSet<&str> = log.lines().collect();
    Done { output: shown["output"].clone(), written: written.len() }
}

/// Starts the run and kills it. Whether it lived until then.
fn is_killed(folder: &Path, round: u32, random: &mut Random) -> bool {
    let before = state_of(folder);
    let mut child = steadfast(folder, &command(round)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // One in five dies while it begins, the others while the run goes.
    if random.below(5) > 0 {
        while state_of(folder) == before && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    // The moment of death is what varies here, so this waits by the clock; whatever the moment, the end must be right.
    std::thread::sleep(Duration::from_micros(random.below(100_000)));
    child.kill().unwrap();
    child.wait().unwrap().signal() == Some(SIGKILL)
}

/// Of the file to which commits go.
fn state_of(folder: &Path) -> Option<(u64, SystemTime)> {
    fs::metadata(folder.join("x.db-wal")).ok().map(|found| (found.len(), found.modified().unwrap()))
}

#[test]
fn a_run_that_is_killed_fifty_times_ends_as_an_undisturbed_one() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("flow.yaml"), FLOW).unwrap();
    let undisturbed = finish(folder.path(), 0);
    assert_eq!(undisturbed.output["numbers"], serde_json::json!([11, 21, 1, 21, 41, 2, 31, 61, 3]));
    assert_eq!(undisturbed.written, 10);

    let mut random = Random(4711);
    let (mut kills, mut round) = (0, 0);
    while kills < KILLS {
        round += 1;
        while kills < KILLS && is_killed(folder.path(), round, &mut random) {
            kills += 1;
        }
        assert_eq!(finish(folder.path(), round), undisturbed, "round {round}, after {kills} kills");
    }
    tokio::runtime::Runtime::new().unwrap().block_on(check_histories(folder.path(), round));
}

/// In the store itself: every history is whole, no task settled twice, and nothing is active any more.
async fn check_histories(folder: &Path, rounds: u32) {
    let engine = Engine::open(folder.join("x.db")).unwrap().graphs().start().unwrap();
    let graphs = Graphs::of(&engine);
    let mut runs: Vec<String> = (0..=rounds).map(|round| format!("round-{round}")).collect();
    let mut count = 0;
    while let Some(id) = runs.pop() {
        count += 1;
        let view = graphs.run(&id).unwrap().unwrap();
        let active = graphs.tokens(&id).unwrap().into_iter().filter(|token| !token.status.is_terminal()).count();
        assert_eq!(active, 0, "{id}");
        let mut settled: BTreeMap<u64, u32> = BTreeMap::new();
        for (index, event) in graphs.events(&view, 0, usize::MAX).unwrap().into_iter().enumerate() {
            assert_eq!(event.sequence, index as u64 + 1, "{id}");
            let data: Value = event.data.decode().unwrap();
            match &*event.event_type {
                "task.completed" => *settled.entry(data["token"].as_u64().unwrap()).or_default() += 1,
                "subworkflow.started" => runs.push(data["run"].as_str().unwrap().to_owned()),
                _ => {}
            }
        }
        assert!(settled.values().all(|times| *times == 1), "{id}: {settled:?}");
    }
    // Each with its three parts.
    assert_eq!(count, (rounds + 1) * 4);
    engine.stop(Duration::ZERO).await;
}

/// The same numbers each time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
