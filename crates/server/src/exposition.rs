//! Counts and loads as text, in the form that Prometheus reads.
//!
//! Owns the names and units. `docs/operations.md` lists them.

use std::sync::atomic::Ordering::Relaxed;

use steadfast::{Health, Load, Metrics, Spread};
use steadfast_store::rows::RunCount;

use crate::traffic::Traffic;

/// Everything, as Prometheus reads it.
pub(crate) fn exposition(
    metrics: &Metrics,
    load: &Load,
    health: &Health,
    runs: &[RunCount],
    traffic: &Traffic,
) -> String {
    let mut text = String::new();
    for (name, help, count) in counters(metrics) {
        let name = format!("steadfast_{name}_total");
        line(&mut text, format_args!("# HELP {name} {help}\n# TYPE {name} counter\n{name} {count}"));
    }
    for (name, help, value) in gauges(load, health, traffic) {
        let name = format!("steadfast_{name}");
        line(&mut text, format_args!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}"));
    }
    let seconds = |us: u64| us as f64 / 1e6;
    histogram(&mut text, "commit_seconds", "How long commits took, fsync included.", &load.commit_us, seconds);
    histogram(&mut text, "commit_turns", "Turns in a commit.", &load.commit_turns, |turns| turns as f64);
    line(
        &mut text,
        format_args!(
            "# HELP steadfast_http_requests_total Requests answered.\n# TYPE steadfast_http_requests_total counter"
        ),
    );
    for ((route, class), count) in traffic.requests() {
        let route = escaped(&route);
        line(
            &mut text,
            format_args!("steadfast_http_requests_total{{route=\"{route}\",status=\"{class}xx\"}} {count}"),
        );
    }
    line(&mut text, format_args!("# HELP steadfast_runs Runs on disk.\n# TYPE steadfast_runs gauge"));
    for RunCount { workflow, status, count } in runs {
        let (workflow, status) = (escaped(workflow), escaped(status));
        line(&mut text, format_args!("steadfast_runs{{workflow=\"{workflow}\",status=\"{status}\"}} {count}"));
    }
    text
}

fn gauges(load: &Load, health: &Health, traffic: &Traffic) -> [(&'static str, &'static str, u64); 8] {
    let Load { boot, tasks_running, tasks_waiting, tasks_lent, requests_waiting, .. } = *load;
    [
        ("ready", "Whether turns are acknowledged.", u64::from(*health == Health::Well)),
        ("boot", "How often an engine was started on the store.", u64::from(boot)),
        ("tasks_running", "Tasks that executors of this process run.", tasks_running),
        ("tasks_waiting", "Tasks that wait in memory for an executor; more may wait on disk.", tasks_waiting),
        ("tasks_lent", "Tasks that are lent to workers outside.", tasks_lent),
        ("requests_waiting", "Requests that actors have not answered.", requests_waiting),
        ("http_connections", "Connections.", traffic.connections.load(Relaxed)),
        ("http_streams", "Histories that are streamed.", traffic.streams.load(Relaxed)),
    ]
}

fn histogram(text: &mut String, name: &str, help: &str, spread: &Spread, unit: impl Fn(u64) -> f64) {
    line(text, format_args!("# HELP steadfast_{name} {help}\n# TYPE steadfast_{name} histogram"));
    for (bound, count) in &spread.up_to {
        line(text, format_args!("steadfast_{name}_bucket{{le=\"{}\"}} {count}", unit(*bound)));
    }
    let (count, sum) = (spread.count, unit(spread.sum));
    line(
        text,
        format_args!(
            "steadfast_{name}_bucket{{le=\"+Inf\"}} {count}\nsteadfast_{name}_sum {sum}\nsteadfast_{name}_count {count}"
        ),
    );
}

fn counters(metrics: &Metrics) -> Vec<(&'static str, &'static str, u64)> {
    // Every field by its name, so that a new counter must be thought about here.
    let Metrics {
        turns_committed,
        commits,
        commits_failed,
        turns_failed,
        dead_letters,
        inputs_dropped,
        loads,
        evictions,
        actors_removed,
        alarms_fired,
        tasks_started,
        tasks_settled,
        tasks_failed,
        tasks_cancelled,
        tasks_parked,
        messages_parked,
        messages_spilled,
    } = *metrics;
    vec![
        ("turns_committed", "Turns that are on disk.", turns_committed),
        ("commits", "Commits that succeeded.", commits),
        ("commits_failed", "Commits that failed.", commits_failed),
        ("turns_failed", "Turns that failed and left no trace.", turns_failed),
        ("dead_letters", "Inputs that were given up and kept.", dead_letters),
        ("inputs_dropped", "Inputs without effect.", inputs_dropped),
        ("actor_loads", "Actors read from the store.", loads),
        ("actor_evictions", "Actors that left memory.", evictions),
        ("actors_removed", "Actors that were removed with all their rows.", actors_removed),
        ("alarms_fired", "Alarms that fired.", alarms_fired),
        ("tasks_started", "Tasks handed to executors.", tasks_started),
        ("tasks_settled", "Tasks whose result a turn has taken.", tasks_settled),
        ("tasks_failed", "Tasks that were settled with a failure.", tasks_failed),
        ("tasks_cancelled", "Tasks that were called off.", tasks_cancelled),
        ("tasks_parked", "Tasks for which this process lacks something.", tasks_parked),
        ("messages_parked", "Messages for kinds that this process does not know.", messages_parked),
        ("messages_spilled", "Messages left on disk because memory was full.", messages_spilled),
    ]
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.push_str(&line.to_string());
    text.push('\n');
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_written_as_prometheus_reads_it() {
        let runs = [RunCount { workflow: "a\"b".into(), status: "running".into(), count: 3 }];
        let spread = Spread { up_to: vec![(500, 1), (1_000, 4)], count: 5, sum: 7_500 };
        let load = Load {
            boot: 2,
            tasks_running: 1,
            tasks_waiting: 0,
            tasks_lent: 0,
            requests_waiting: 0,
            commit_us: spread.clone(),
            commit_turns: spread,
        };
        let traffic = Traffic::default();
        traffic.answered(Some("/v1/runs"), axum::http::StatusCode::NOT_FOUND);
        let metrics = Metrics { commits: 7, ..Metrics::default() };
        let text = exposition(&metrics, &load, &Health::Well, &runs, &traffic);
        for expected in [
            "# TYPE steadfast_commits_total counter\nsteadfast_commits_total 7\n",
            "steadfast_commit_seconds_bucket{le=\"0.0005\"} 1\nsteadfast_commit_seconds_bucket{le=\"0.001\"} 4\n",
            "steadfast_commit_seconds_bucket{le=\"+Inf\"} 5\nsteadfast_commit_seconds_sum 0.0075\nsteadfast_commit_seconds_count 5\n",
            "steadfast_http_requests_total{route=\"/v1/runs\",status=\"4xx\"} 1\n",
            "steadfast_runs{workflow=\"a\\\"b\",status=\"running\"} 3\n",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
    }
}
