//! What those who run a server ask it: whether it is well, and what it has done.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use steadfast::{Health, Metrics};
use steadfast_api::problem::Problem;
use steadfast_api::v1::operations::{HEALTH, METRICS, OPENAPI, READY, Well};
use steadfast_store::rows::RunCount;

use super::Answer;
use crate::app::App;
use crate::error::Refusal;

/// Whether the process answers.
#[utoipa::path(get, path = HEALTH, tag = "operations", responses((status = 200, body = Well)))]
pub(crate) async fn health() -> Answer<Well> {
    Answer(Well { status: "ok".to_owned() })
}

/// Whether it can take work: turns are acknowledged.
#[utoipa::path(
    get, path = READY, tag = "operations",
    responses((status = 200, body = Well), (status = 503, body = Problem))
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<Answer<Well>, Refusal> {
    match app.engine.health() {
        Health::Well => Ok(Answer(Well { status: "ok".to_owned() })),
        Health::Unwell(reason) => {
            // It names files. Whoever may see the log may see them.
            tracing::warn!("not ready: {reason}");
            Err(Refusal::unavailable("the store does not take writes now; the server's log says why"))
        }
    }
}

/// Counts, as Prometheus reads them.
#[utoipa::path(
    get, path = METRICS, tag = "operations",
    responses((status = 200, body = String, content_type = "text/plain; version=0.0.4"))
)]
pub(crate) async fn metrics(State(app): State<App>) -> Result<impl IntoResponse, Refusal> {
    let runs = app.read(|graphs| graphs.counts()).await?;
    let text = exposition(&app.engine.metrics(), &app.engine.health(), &runs);
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text))
}

/// This API, as OpenAPI 3.1.
#[utoipa::path(get, path = OPENAPI, tag = "operations", responses((status = 200, body = serde_json::Value)))]
pub(crate) async fn description(State(app): State<App>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], app.openapi.to_string())
}

fn exposition(metrics: &Metrics, health: &Health, runs: &[RunCount]) -> String {
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
        tasks_cancelled,
        tasks_parked,
        messages_parked,
        messages_spilled,
    } = *metrics;
    let counters = [
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
        ("tasks_cancelled", "Tasks that were called off.", tasks_cancelled),
        ("tasks_parked", "Tasks for which this process lacks something.", tasks_parked),
        ("messages_parked", "Messages for kinds that this process does not know.", messages_parked),
        ("messages_spilled", "Messages left on disk because memory was full.", messages_spilled),
    ];
    let mut text = String::new();
    for (name, help, count) in counters {
        let name = format!("steadfast_{name}_total");
        line(&mut text, format_args!("# HELP {name} {help}\n# TYPE {name} counter\n{name} {count}"));
    }
    let up = u8::from(*health == Health::Well);
    let help = "Whether turns are acknowledged.";
    line(&mut text, format_args!("# HELP steadfast_ready {help}\n# TYPE steadfast_ready gauge\nsteadfast_ready {up}"));
    line(&mut text, format_args!("# HELP steadfast_runs Runs on disk.\n# TYPE steadfast_runs gauge"));
    for RunCount { workflow, status, count } in runs {
        let (workflow, status) = (escaped(workflow), escaped(status));
        line(&mut text, format_args!("steadfast_runs{{workflow=\"{workflow}\",status=\"{status}\"}} {count}"));
    }
    text
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
    fn counts_are_written_as_prometheus_reads_them() {
        let runs = [RunCount { workflow: "a\"b".into(), status: "running".into(), count: 3 }];
        let text = exposition(&Metrics { commits: 7, ..Metrics::default() }, &Health::Well, &runs);
        assert!(text.contains("# TYPE steadfast_commits_total counter\nsteadfast_commits_total 7\n"), "{text}");
        assert!(text.ends_with("steadfast_runs{workflow=\"a\\\"b\",status=\"running\"} 3\n"), "{text}");
    }
}
