//! How far a run is, counted from its events.
//!
//! Owns the counts and the lines that show them. An event costs the same however large the run is; of tokens only those that wait for something are
//! remembered. Never reads a store, a clock or a terminal. Start reading at [`Tally::take`].

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;

use crate::definitions::counted;
use crate::screen::time;

/// How a signal can be given to the run.
#[derive(Debug, Default)]
pub(crate) enum Signalling {
    /// By the option of `run`.
    #[default]
    Option,
    /// By a command, to this run of a server.
    Command { run: String },
}

/// The counts of a run.
#[derive(Default)]
pub(crate) struct Tally {
    signalling: Signalling,
    /// In the order in which they were first heard of.
    nodes: Vec<Node>,
    places: HashMap<String, usize>,
    /// Tokens that do not just work.
    waiting: HashMap<u64, Waiting>,
    tokens: u64,
    /// The number of the last event.
    event: u64,
}

/// The counts of a node. What has arrived at a join before it is not counted: to people it is still on its way.
#[derive(Default)]
struct Node {
    name: String,
    made: u64,
    ended: u64,
    failed: u64,
    retrying: u64,
    sleeping: u64,
    /// How many tokens wait for signals, and for which one the last of them does.
    signals: (u64, String),
    /// The same for runs of other workflows.
    children: (u64, String),
    /// The events with which its first token came and its last one ended.
    began_at: u64,
    ended_at: u64,
}

/// What a token waits for.
enum Waiting {
    Siblings,
    Retry,
    Time,
    Signal,
    Child,
}

/// The events that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Created,
    Waiting,
    Completed,
    Failed,
    Cancelled,
    Dispatched,
    RetryScheduled,
    ChildStarted,
    ChildEnded,
}

/// What is read of an event.
#[derive(Deserialize)]
pub(crate) struct Facts<'a> {
    pub(crate) token: Option<u64>,
    pub(crate) node: Option<&'a str>,
    status: Option<&'a str>,
    pub(crate) signal: Option<&'a str>,
    workflow: Option<&'a str>,
    pub(crate) run: Option<&'a str>,
}

impl Kind {
    pub(crate) fn of(event_type: &str) -> Option<Self> {
        match event_type {
            "token.created" => Some(Self::Created),
            "token.waiting" => Some(Self::Waiting),
            "token.completed" => Some(Self::Completed),
            "token.failed" | "token.timed_out" => Some(Self::Failed),
            "token.cancelled" => Some(Self::Cancelled),
            "task.dispatched" => Some(Self::Dispatched),
            "task.retry_scheduled" => Some(Self::RetryScheduled),
            "subworkflow.started" => Some(Self::ChildStarted),
            "subworkflow.completed" | "subworkflow.failed" | "subworkflow.cancelled" => Some(Self::ChildEnded),
            _ => None,
        }
    }
}

impl<'a> Facts<'a> {
    pub(crate) fn read(data: &'a str) -> Option<Self> {
        serde_json::from_str(data).ok()
    }
}

impl Signalling {
    fn advice(&self, signal: &str) -> String {
        match self {
            Self::Option => format!("--signal {signal}=JSON"),
            Self::Command { run } => format!("steadfast signal {run} {signal} JSON"),
        }
    }
}

impl Tally {
    pub(crate) fn new(signalling: Signalling) -> Self {
        Self { signalling, ..Self::default() }
    }

    /// Counts an event.
    pub(crate) fn take(&mut self, event_type: &str, data: &str) {
        let Some(kind) = Kind::of(event_type) else { return };
        let Some(Facts { token: Some(token), node: Some(name), status, signal, workflow, .. }) = Facts::read(data)
        else {
            return;
        };
        self.event += 1;
        let place = self.place_of(name);
        match kind {
            Kind::Created => {
                self.tokens += 1;
                let node = &mut self.nodes[place];
                if node.made == 0 {
                    node.began_at = self.event;
                }
                node.made += 1;
            }
            // What became of the run below, its token says too.
            Kind::ChildEnded => {}
            Kind::Dispatched => {
                self.stop_waiting(token, place);
            }
            Kind::RetryScheduled => self.wait(token, place, Waiting::Retry, ""),
            Kind::ChildStarted => self.wait(token, place, Waiting::Child, workflow.unwrap_or_default()),
            Kind::Waiting => match status {
                Some("waiting_for_siblings") => self.wait(token, place, Waiting::Siblings, ""),
                Some("waiting_for_signal") => self.wait(token, place, Waiting::Signal, signal.unwrap_or_default()),
                Some("sleeping") => self.wait(token, place, Waiting::Time, ""),
                Some(_) | None => {}
            },
            Kind::Completed | Kind::Failed | Kind::Cancelled => {
                let was = self.stop_waiting(token, place);
                let node = &mut self.nodes[place];
                match was {
                    // It was not counted as made any more.
                    Some(Waiting::Siblings) => {}
                    Some(Waiting::Retry | Waiting::Time | Waiting::Signal | Waiting::Child) | None => {
                        node.ended += 1;
                        node.failed += u64::from(kind == Kind::Failed);
                        node.ended_at = self.event;
                    }
                }
            }
        }
    }

    fn place_of(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.places.insert(name.to_owned(), self.nodes.len());
        self.nodes.push(Node { name: name.to_owned(), ..Node::default() });
        self.nodes.len() - 1
    }

    fn wait(&mut self, token: u64, place: usize, what: Waiting, name: &str) {
        self.stop_waiting(token, place);
        let node = &mut self.nodes[place];
        match &what {
            Waiting::Siblings => node.made = node.made.saturating_sub(1),
            Waiting::Retry => node.retrying += 1,
            Waiting::Time => node.sleeping += 1,
            Waiting::Signal => node.signals = (node.signals.0 + 1, name.to_owned()),
            Waiting::Child => node.children = (node.children.0 + 1, name.to_owned()),
        }
        self.waiting.insert(token, what);
    }

    fn stop_waiting(&mut self, token: u64, place: usize) -> Option<Waiting> {
        let was = self.waiting.remove(&token)?;
        let node = &mut self.nodes[place];
        let count = match was {
            Waiting::Siblings => return Some(was),
            Waiting::Retry => &mut node.retrying,
            Waiting::Time => &mut node.sleeping,
            Waiting::Signal => &mut node.signals.0,
            Waiting::Child => &mut node.children.0,
        };
        *count = count.saturating_sub(1);
        Some(was)
    }

    /// The counts as lines, at most `lines_max`, the first of them about the whole run.
    pub(crate) fn lines(&self, title: &str, elapsed: Duration, frame: char, lines_max: usize) -> Vec<String> {
        let shown = self.shown(lines_max.saturating_sub(2));
        let active: u64 = self.nodes.iter().map(Node::active).sum();
        let (tokens, time) = (counted(self.tokens, "token"), time(elapsed));
        let mut lines = vec![format!("{frame} {title}  {time}  {tokens}, {active} active")];
        let width = shown.iter().map(|node| node.name.len()).max().unwrap_or(0).min(NAME_WIDTH_MAX);
        lines.extend(shown.iter().map(|node| node.line(frame, width, &self.signalling)));
        let hidden = self.nodes.iter().filter(|node| node.made > 0).count() - shown.len();
        if hidden > 0 {
            lines.push(format!("  … and {hidden} more"));
        }
        lines
    }

    /// The nodes worth a line: those where something happens, then those where it ended last; in the order of the run.
    fn shown(&self, max: usize) -> Vec<&Node> {
        let mut shown: Vec<&Node> = self.nodes.iter().filter(|node| node.made > 0).collect();
        shown.sort_by_key(|node| (node.active() == 0, std::cmp::Reverse(node.ended_at), node.began_at));
        shown.truncate(max);
        shown.sort_by_key(|node| node.began_at);
        shown
    }
}

/// A name gets so much room; what stands after a longer one is further to the right.
const NAME_WIDTH_MAX: usize = 24;

/// How long a bar is.
const BAR_WIDTH: u64 = 16;

impl Node {
    fn active(&self) -> u64 {
        self.made.saturating_sub(self.ended)
    }

    fn line(&self, frame: char, width: usize, signalling: &Signalling) -> String {
        let mark = match (self.active(), self.failed) {
            (0, 0) => '✓',
            (0, _) => '✗',
            _ => frame,
        };
        let mut parts = Vec::new();
        if self.made > 1 {
            let filled = (self.ended * BAR_WIDTH / self.made).min(BAR_WIDTH);
            let bar: String = (0..BAR_WIDTH).map(|part| if part < filled { '█' } else { '░' }).collect();
            parts.push(format!("{bar} {}/{}", self.ended, self.made));
        }
        let counts = [(self.failed, "failed"), (self.retrying, "retrying"), (self.sleeping, "sleeping")];
        parts.extend(counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")));
        if self.children.0 > 0 {
            parts.push(format!("{} in `{}`", self.children.0, self.children.1));
        }
        if self.signals.0 > 0 {
            let signal = &self.signals.1;
            parts.push(format!("waits for signal `{signal}`: give it with {}", signalling.advice(signal)));
        }
        format!("  {mark} {:width$}  {}", self.name, parts.join("  ")).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(events: &[(&str, &str)], lines_max: usize, expected: &[&str]) {
        let mut tally = Tally::default();
        for (event_type, data) in events {
            tally.take(event_type, data);
        }
        assert_eq!(tally.lines("research", Duration::from_millis(1_234), '*', lines_max), expected);
    }

    #[test]
    fn a_fan_out_has_a_bar_and_says_what_waits() {
        check(
            &[
                ("workflow.started", r#"{"input":{}}"#),
                ("token.created", r#"{"token":1,"node":"plan"}"#),
                ("token.completed", r#"{"token":1,"node":"plan"}"#),
                ("token.created", r#"{"token":2,"node":"answer","branch":[1,0,2]}"#),
                ("token.created", r#"{"token":3,"node":"answer","branch":[1,1,2]}"#),
                ("task.dispatched", r#"{"token":2,"node":"answer","attempt":1}"#),
                ("task.retry_scheduled", r#"{"token":3,"node":"answer","attempt":1}"#),
                ("token.completed", r#"{"token":2,"node":"answer"}"#),
                // The branch's arrival at the join.
                ("token.created", r#"{"token":4,"node":"report"}"#),
                ("token.waiting", r#"{"token":4,"node":"report","status":"waiting_for_siblings"}"#),
            ],
            10,
            &["* research  1.2 s  4 tokens, 1 active", "  ✓ plan", "  * answer  ████████░░░░░░░░ 1/2  1 retrying"],
        );
    }

    #[test]
    fn what_ends_while_it_waits_waits_no_longer() {
        let wait = ("token.waiting", r#"{"token":1,"node":"a","status":"waiting_for_signal","signal":"go"}"#);
        let created = ("token.created", r#"{"token":1,"node":"a"}"#);
        check(
            &[created, wait],
            10,
            &["* research  1.2 s  1 token, 1 active", "  * a  waits for signal `go`: give it with --signal go=JSON"],
        );
        let timed_out = ("token.timed_out", r#"{"token":1,"node":"a"}"#);
        check(&[created, wait, timed_out], 10, &["* research  1.2 s  1 token, 0 active", "  ✗ a  1 failed"]);
    }

    #[test]
    fn there_are_never_more_lines_than_asked_for() {
        let events: Vec<(&str, String)> = (1..=50)
            .map(|token| ("token.created", format!(r#"{{"token":{token},"node":"n{token}"}}"#)))
            .chain([("token.completed", r#"{"token":1,"node":"n1"}"#.to_owned())])
            .collect();
        let events: Vec<(&str, &str)> = events.iter().map(|(event_type, data)| (*event_type, &**data)).collect();
        check(&events, 4, &["* research  1.2 s  50 tokens, 49 active", "  * n2", "  * n3", "  … and 48 more"]);
    }
}
