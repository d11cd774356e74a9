//! The executor `command`: a program on this machine, JSON in, JSON out.
//!
//! Owns how the program is started, what it sees, and that nothing of it is left when its task is dropped. Never asks a shell: the program is
//! named, its arguments are given as they are. Start reading at [`Command`].

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use serde_json::{Value, json};
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::json::Json;
use steadfast_core::limits;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;

use super::secrets::Used;
use super::{Call, Effect, excerpt};
use crate::tasks::NotDone;

/// Whether programs may be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Commands {
    /// No: whoever may write a definition could run anything here. Tasks that would are parked.
    #[default]
    Refused,
    /// Yes.
    Allowed,
}

/// What a program sees of our environment. The rest is ours: secrets are in it.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

/// How much is read from a program at once.
const READ_BYTES: usize = 16 * 1024;

pub(super) struct Command {
    commands: Commands,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Specification {
    program: String,
    #[serde(default)]
    args: Vec<Value>,
    stdin: Option<Value>,
    #[serde(default)]
    env: BTreeMap<String, Value>,
}

impl Command {
    pub(super) fn new(commands: Commands) -> Self {
        Self { commands }
    }
}

impl Effect for Command {
    const TIMEOUT_MS: Option<u64> = Some(limits::TASK_TIMEOUT_MS_DEFAULT);

    async fn run(&self, mut call: Call) -> Result<Json, NotDone> {
        match self.commands {
            Commands::Refused => {
                Err(NotDone::Lacking("commands are not allowed here: allow them with `--allow-command`".to_owned()))
            }
            Commands::Allowed => {
                let specification: Specification = call.specification()?;
                let stdin = match &specification.stdin {
                    Some(Value::String(text)) => text.clone(),
                    Some(value) => value.to_string(),
                    None => call.input.to_string(),
                };
                let child = start(&specification, &call)?;
                let ended = communicate(child, stdin).await?;
                Ok(result_of(&specification.program, &ended, &call.used)?)
            }
        }
    }
}

fn start(specification: &Specification, call: &Call) -> Result<Child, Failure> {
    let mut command = tokio::process::Command::new(&specification.program);
    command.args(specification.args.iter().map(text_of)).env_clear();
    command.envs(INHERITED.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs(specification.env.iter().map(|(name, value)| (name, text_of(value))));
    command.env("STEADFAST_TASK_ID", &call.key).env("STEADFAST_ATTEMPT", call.attempt.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own, so that what it starts can be ended with it.
    command.process_group(0).kill_on_drop(true);
    command.spawn().map_err(|error| {
        let message = format!("program `{}` cannot be started: {error}", specification.program);
        if error.kind() == ErrorKind::NotFound {
            Failure::last(FailureKind::NotFound, &message)
        } else if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput) {
            Failure::last(FailureKind::InvalidInput, &message)
        } else {
            // Too many processes, no memory: that may pass.
            Failure::retryable(FailureKind::TaskFailed, &message)
        }
    })
}

/// A text as it is, anything else as JSON.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// A program that has ended.
struct Ended {
    status: ExitStatus,
    stdout: Vec<u8>,
    /// Its end.
    stderr: Vec<u8>,
}

/// Kills the program and whatever it has started, unless it has ended and was waited for.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0.take() {
            // One that has just ended is no fault. Its number cannot be another's yet: nobody has waited for it.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

async fn communicate(mut child: Child, stdin: String) -> Result<Ended, Failure> {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    // Made after the child, so dropped before it: the group goes before the child is waited for.
    let mut group = Group(pid);
    let (Some(mut input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(Failure::last(FailureKind::Internal, "the program has no pipes"));
    };
    let write = async move {
        // A program that does not read its input is no fault.
        drop(input.write_all(stdin.as_bytes()).await);
    };
    let ((), stdout, stderr) = tokio::try_join!(
        async {
            write.await;
            Ok(())
        },
        whole(output),
        async { last_part(errors).await.map_err(|error| lost(&error)) },
    )?;
    let status = child.wait().await.map_err(|error| lost(&error))?;
    group.0 = None;
    Ok(Ended { status, stdout, stderr })
}

fn lost(error: &std::io::Error) -> Failure {
    Failure::retryable(FailureKind::TaskFailed, &format!("the program cannot be listened to: {error}"))
}

/// Everything a program says, up to the bound.
async fn whole(output: impl AsyncRead + Unpin) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    let most = limits::VALUE_BYTES_MAX;
    output.take(most as u64 + 1).read_to_end(&mut all).await.map_err(|error| lost(&error))?;
    if all.len() > most {
        let message = format!("the program wrote more than {most} bytes, which is the limit (`VALUE_BYTES_MAX`)");
        return Err(Failure::last(FailureKind::InvalidOutput, &message));
    }
    Ok(all)
}

/// The end of what a program says, however much it is.
async fn last_part(mut output: impl AsyncRead + Unpin) -> Result<Vec<u8>, std::io::Error> {
    let mut kept = Vec::new();
    let mut read = vec![0; READ_BYTES];
    loop {
        let count = output.read(&mut read).await?;
        if count == 0 {
            return Ok(kept);
        }
        kept.extend_from_slice(&read[..count]);
        // One more than is looked at, so that it is seen to be cut.
        let excess = kept.len().saturating_sub(excerpt::LOOKED_AT_BYTES + 1);
        kept.drain(..excess);
    }
}

fn result_of(program: &str, ended: &Ended, used: &Used) -> Result<Json, Failure> {
    if !ended.status.success() {
        return Err(failure_of(program, ended, used));
    }
    let refused = |reason: String| {
        let shown = excerpt::beginning(&ended.stdout, used);
        let message = format!("program `{program}` must write JSON, but {reason}; it wrote: {shown}");
        Failure::last(FailureKind::InvalidOutput, &message)
    };
    let text = std::str::from_utf8(&ended.stdout).map_err(|_| refused("its output is not text".to_owned()))?;
    if text.trim().is_empty() {
        return Ok(Json::null());
    }
    Json::parse(text.trim()).map_err(|error| refused(error.to_string()))
}

fn failure_of(program: &str, ended: &Ended, used: &Used) -> Failure {
    let stderr = excerpt::end(&ended.stderr, used);
    let said = stderr.trim();
    let message = match said {
        "" => format!("program `{program}` ended with {}", ended.status),
        said => format!("program `{program}` ended with {}: {said}", ended.status),
    };
    let details = Json::encode(&json!({ "status": ended.status.code(), "stderr": said })).ok();
    Failure { details, ..Failure::retryable(FailureKind::TaskFailed, &message) }
}
