//! What came of many simulations, in a few lines.

use std::collections::BTreeMap;
use std::io::Write as _;

use serde_json::json;
use steadfast_core::graph::protocol::Outcome;
use steadfast_sim::Violation;
use steadfast_sim::graphs::Ended;

use super::Arguments;

/// Outcomes of seeds, counted.
pub(super) struct Report {
    workflow: String,
    first: u64,
    seeds: u64,
    completed: u64,
    cancelled: u64,
    failed: BTreeMap<&'static str, u64>,
    /// Different outputs, each with the first seed that gave it.
    outputs: BTreeMap<String, u64>,
    commits: u64,
    crashes: u64,
}

/// What is shown of an output.
const OUTPUT_CHARS_MAX: usize = 400;

impl Report {
    pub(super) fn new(workflow: &str, first: u64) -> Self {
        Self {
            workflow: workflow.to_owned(),
            first,
            seeds: 0,
            completed: 0,
            cancelled: 0,
            failed: BTreeMap::new(),
            outputs: BTreeMap::new(),
            commits: 0,
            crashes: 0,
        }
    }

    pub(super) fn add(&mut self, seed: u64, ended: &Ended) {
        self.seeds += 1;
        self.commits += ended.survived.commits;
        self.crashes += ended.survived.crashes;
        match &ended.outcome {
            Outcome::Completed(output) => {
                self.completed += 1;
                self.outputs.entry(output.as_str().to_owned()).or_insert(seed);
            }
            Outcome::Failed(failure) => *self.failed.entry(failure.kind.name()).or_default() += 1,
            Outcome::Cancelled { .. } => self.cancelled += 1,
        }
    }

    /// The two outputs that came first.
    fn examples(&self) -> Vec<(u64, &str)> {
        let mut outputs: Vec<(u64, &str)> =
            self.outputs.iter().map(|(output, seed)| (*seed, output.as_str())).collect();
        outputs.sort_unstable();
        outputs.truncate(2);
        outputs
    }

    /// In words. `verdict` is the last of them, when there is one.
    pub(super) fn print(&self, verdict: Option<&str>) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        let Self { workflow, first, seeds, commits, crashes, .. } = self;
        writeln!(out, "{seeds} seeds of `{workflow}`, from {first}: {commits} commits, {crashes} crashes")?;
        if let Some(outcomes) = self.outcomes() {
            writeln!(out, "{outcomes}")?;
        }
        if self.outputs.len() > 1 {
            let count = self.outputs.len();
            writeln!(out, "{count} different outputs: what comes out depends on timing, or on which attempts fail")?;
            for (seed, output) in self.examples() {
                writeln!(out, "  seed {seed}: {}", shortened(output))?;
            }
        }
        if let Some(verdict) = verdict {
            writeln!(out, "{verdict}")?;
        }
        Ok(())
    }

    fn outcomes(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.completed > 0 {
            parts.push(format!("completed {}", self.completed));
        }
        if !self.failed.is_empty() {
            let total: u64 = self.failed.values().sum();
            let kinds: Vec<String> = self.failed.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
            parts.push(format!("failed {total} ({})", kinds.join(", ")));
        }
        if self.cancelled > 0 {
            parts.push(format!("cancelled {}", self.cancelled));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// As one line of JSON.
    pub(super) fn print_json(&self, violation: Option<(u64, &Violation, &str)>) -> anyhow::Result<()> {
        let example = |(seed, output): (u64, &str)| {
            let output: serde_json::Value = serde_json::from_str(output).unwrap_or_default();
            json!({ "seed": seed, "output": output })
        };
        let violation = violation.map(|(seed, Violation { what, history }, replay)| {
            json!({ "seed": seed, "what": what, "history": history.to_string(), "replay": replay })
        });
        let report = json!({
            "workflow": self.workflow,
            "first": self.first,
            "seeds": self.seeds,
            "completed": self.completed,
            "failed": self.failed,
            "cancelled": self.cancelled,
            "outputs": self.outputs.len(),
            "examples": self.examples().into_iter().map(example).collect::<Vec<_>>(),
            "commits": self.commits,
            "crashes": self.crashes,
            "violation": violation,
        });
        Ok(writeln!(std::io::stdout().lock(), "{report}")?)
    }
}

fn shortened(output: &str) -> String {
    match output.char_indices().nth(OUTPUT_CHARS_MAX) {
        None => output.to_owned(),
        Some((end, _)) => format!("{}…", &output[..end]),
    }
}

/// What to type to see one seed again.
pub(super) fn replay(arguments: &Arguments, seed: u64) -> String {
    let Arguments { file, workflow, input, signals, .. } = arguments;
    let mut line = format!("steadfast simulate {} --seeds 1 --first {seed}", quoted(&file.display().to_string()));
    if let Some(workflow) = workflow {
        line += &format!(" --workflow {}", quoted(workflow));
    }
    if input != "{}" {
        line += &format!(" --input {}", quoted(input));
    }
    for signal in signals {
        line += &format!(" --signal {}", quoted(signal));
    }
    line
}

/// As a shell takes it.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./@=:,+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_replayed_by_a_line_that_a_shell_takes() {
        let arguments = Arguments {
            file: "my flow.yaml".into(),
            seeds: 100,
            first: 0,
            workflow: Some("main".to_owned()),
            input: r#"{"who":"O'Hara"}"#.to_owned(),
            signals: vec!["go={}".to_owned()],
            json: false,
        };
        let expected = r#"steadfast simulate 'my flow.yaml' --seeds 1 --first 7 --workflow main --input '{"who":"O'\''Hara"}' --signal 'go={}'"#;
        assert_eq!(replay(&arguments, 7), expected);
    }
}
