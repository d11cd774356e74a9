//! Each benchmark in a tiny size: its table, its JSON lines, and that nothing is left behind. No timing is asserted.

use serde_json::Value;
use tempfile::tempdir;

use crate::command::{names_in, run};

/// What every line says about where it was measured.
const FACTS: [&str; 8] = ["bench", "version", "date", "cores", "kernel", "file_system", "fsync_is_real", "fsync_us"];

/// The table has these words; the JSON lines are of these benchmarks. Returns the lines.
#[track_caller]
fn check(line: &str, words: &[&str], benches: &[&str]) -> Vec<Value> {
    let folder = tempdir().unwrap();
    let table = run(folder.path(), line).done();
    for word in words {
        assert!(table.contains(word), "`{word}` is missing in\n{table}");
    }
    let lines = run(folder.path(), &format!("{line} --json")).lines();
    assert_eq!(lines.iter().map(|line| line["bench"].as_str().unwrap()).collect::<Vec<_>>(), benches);
    assert_eq!(names_in(folder.path()), [""; 0]);
    lines
}

/// Besides the facts, a line has these fields and no others, all of them numbers or truth values.
#[track_caller]
fn check_fields(line: &Value, fields: &[&str]) {
    let mut expected: Vec<&str> = FACTS.iter().chain(fields).copied().collect();
    let mut found: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
    for field in fields {
        let is_flat = line[field].is_number() || line[field].is_boolean() || line[field].is_string();
        assert!(is_flat, "{field} is {}", line[field]);
    }
}

#[test]
fn turns_are_compared_with_raw_sqlite() {
    let words = ["clients", "turns/s", "p50 µs", "p99 µs", "turns/fsync", "fsyncs/s", "raw SQLite turns/s", "ratio"];
    let lines = check("bench turns --concurrency 1,8 --count 40", &words, &["turns", "turns"]);
    for line in &lines {
        check_fields(
            line,
            &[
                "concurrency",
                "turns",
                "turns_per_s",
                "p50_us",
                "p99_us",
                "batch_turns_mean",
                "fsyncs_per_s",
                "limit_turns_per_s",
                "ratio",
            ],
        );
    }
    assert_eq!(lines[1]["concurrency"], 8);
    assert_eq!(lines[1]["turns"], 40);
}

#[test]
fn turns_can_be_measured_for_a_time() {
    check("bench turns --concurrency 4 --seconds 0.05", &["clients"], &["turns"]);
}

#[test]
fn a_level_may_be_a_run_of_a_workflow() {
    let lines = check("bench nest --workflow --depth 5 --depth 20", &["µs/level"], &["nest", "nest", "nest_growth"]);
    assert_eq!((&lines[0]["of"], &lines[1]["levels"]), (&serde_json::json!("runs"), &serde_json::json!(20)));
}

#[test]
fn fanout_compares_the_time_of_a_branch_at_several_widths() {
    let words = ["branches", "µs/branch", "raw SQLite ms", "times as long as a branch of 5"];
    let lines = check("bench fanout --width 5 --width 50", &words, &["fanout", "fanout", "fanout_growth"]);
    assert_eq!(lines[1]["width"], 50);
}

#[test]
fn graph_counts_whole_runs_a_second() {
    let lines = check("bench graph --concurrency 1,4 --runs 20", &["runs/s", "fsyncs/run"], &["graph", "graph"]);
    assert_eq!(lines[1]["runs"], 20);
}

#[test]
fn http_compares_starts_with_requests_that_do_nothing() {
    let words = ["connections", "starts/s", "p50 µs", "p99 µs", "limit/s", "ratio", "turns/fsync"];
    let lines = check("bench http --connections 1,8 --count 80", &words, &["http", "http"]);
    for line in &lines {
        let fields =
            ["connections", "starts", "starts_per_s", "p50_us", "p99_us", "limit_per_s", "ratio", "turns_per_fsync"];
        check_fields(line, &fields);
        assert_eq!(line["starts"], 80);
    }
}

#[test]
fn nest_compares_the_time_of_a_level_at_several_depths() {
    let words = ["levels", "µs/level", "peak MiB", "bytes/level", "raw SQLite ms", "times as long as a level of 5"];
    let lines = check("bench nest --depth 5 --depth 50", &words, &["nest", "nest", "nest_growth"]);
    for line in &lines[..2] {
        check_fields(
            line,
            &[
                "depth",
                "levels",
                "resumed",
                "total_ms",
                "level_us",
                "batch_turns_mean",
                "peak_bytes",
                "level_bytes",
                "limit_ms",
                "of",
                "ratio",
            ],
        );
        assert_eq!(line["levels"], line["depth"]);
    }
    check_fields(&lines[2], &["depth_smallest", "depth_largest", "level_us_smallest", "level_us_largest", "ratio"]);
}

#[test]
fn sleepers_are_compared_with_an_empty_store() {
    let words = ["with sleepers", "empty store", "file MiB", "first answer", "idle memory MiB", "ratio"];
    let lines = check("bench sleepers --count 100", &words, &["sleepers"]);
    check_fields(
        &lines[0],
        &[
            "count",
            "made_per_s",
            "maker_rss_bytes",
            "file_bytes",
            "first_request_ms",
            "limit_first_request_ms",
            "ratio",
            "rss_bytes",
            "limit_rss_bytes",
            "rss_ratio",
        ],
    );
}

#[test]
fn runs_compare_a_store_of_many_with_one_of_few() {
    let words = ["µs with many", "µs with few", "ratio", "restart to first start", "list", "show", "start"];
    let lines = check("bench runs --count 2000", &words, &["runs"; 12]);
    for line in &lines {
        check_fields(line, &["what", "count", "count_small", "us", "small_us", "ratio"]);
        assert_eq!(line["count"], 2000);
    }
}

#[test]
fn recover_loses_nothing_and_settles_once() {
    let words = ["tasks", "ms to first", "ms to last", "undisturbed ms", "executions", "lost", "settled twice"];
    let lines = check("bench recover --count 30", &words, &["recover"]);
    check_fields(
        &lines[0],
        &["count", "first_ms", "last_ms", "limit_last_ms", "ratio", "executions", "lost", "repeated_settlements"],
    );
    assert_eq!(lines[0]["lost"], 0);
    assert_eq!(lines[0]["repeated_settlements"], 0);
    // Each begun before the kill, and ended after it.
    assert_eq!(lines[0]["executions"], 60);
}

#[test]
fn more_tasks_than_wait_in_memory_are_recovered_too() {
    let folder = tempdir().unwrap();
    let lines = run(folder.path(), "bench recover --count 10000 --json").lines();
    assert_eq!(lines[0]["lost"], 0);
    assert_eq!(lines[0]["repeated_settlements"], 0);
}

#[test]
fn a_store_that_was_named_is_kept_and_can_be_used_again() {
    let folder = tempdir().unwrap();
    for bench in ["turns --count 5", "sleepers --count 5", "recover --count 5", "turns --count 5", "recover --count 5"]
    {
        run(folder.path(), &format!("bench {bench} --store kept.db")).done();
        let names = names_in(folder.path());
        assert!(names.iter().all(|name| name.starts_with("kept.db")), "{bench}: {names:?}");
        assert_eq!(names.first().map(String::as_str), Some("kept.db"), "{bench}");
    }
}
