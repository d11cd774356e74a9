//! `steadfast runs`: the runs of a server, looked at and told what to do.
//!
//! Owns the command line of these commands. Each is in a module of its own: [`list`], [`show`], [`events`], [`control`], [`recover`].

mod control;
pub(crate) mod event_line;
mod events;
mod list;
mod recover;
mod show;
mod tree;

use clap::{Args, Subcommand};
use steadfast_api::v1::runs::RunStatus;
use steadfast_client::Control;

/// The options of `runs`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List runs, the newest first
    List(list::Arguments),
    /// Show a run: its facts, and how far it is as a tree
    Show(show::Arguments),
    /// Print the history of a run, also while it happens
    Events(events::Arguments),
    /// End runs
    Cancel(control::CancelArguments),
    /// Let what runs finish, and begin nothing new
    Pause(control::Arguments),
    /// Go on after a pause
    Resume(control::Arguments),
    /// Take up again what is stuck
    Recover(recover::RecoverArguments),
}

const EXAMPLES: &str = "\
Examples:
  steadfast runs list --status failed
  steadfast runs show order-42
  steadfast runs events order-42 --follow
  steadfast runs cancel order-42 --reason 'wrong address'";

/// Does what was asked.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.command {
        Command::List(arguments) => list::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Events(arguments) => events::run(arguments),
        Command::Cancel(arguments) => control::cancel(arguments),
        Command::Pause(arguments) => control::run(arguments, Control::Pause),
        Command::Resume(arguments) => control::run(arguments, Control::Resume),
        Command::Recover(arguments) => recover::run(arguments),
    }
}

/// The word for a status.
pub(crate) fn word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "running",
        RunStatus::Paused => "paused",
        RunStatus::Completed => "completed",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "cancelled",
    }
}
