//! The binary `steadfast`.
//!
//! Owns the command line: what may be typed, the exit codes (0 done, 1 failed, 2 usage) and how an error looks. Never does the work
//! itself: each command has its own module. Start reading at [`Command`].

mod apply;
mod backup;
mod bench;
mod clock;
mod completions;
mod connection;
mod dead_letters;
mod definitions;
mod dev;
mod doctor;
mod json;
mod logs;
mod progress;
mod run;
mod runs;
mod screen;
mod serve;
mod signal;
mod simulate;
mod start;
mod table;
mod usage;
mod validate;
mod value;
mod why;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use bench::child::Order;

/// What runners allocate, the committer frees. The system's allocator takes a lock for that; this one made `bench nest` a quarter
/// faster and `bench turns` at 1,024 clients a third, on two cores.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Durable actors in one binary.
#[derive(Parser)]
#[command(name = "steadfast", version, after_help = EXAMPLES)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a workflow file here and now, on an embedded store
    Run(run::Arguments),
    /// Serve the definitions of a folder on this machine, and apply them whenever they change
    Dev(dev::Arguments),
    /// Serve the HTTP API on a store
    Serve(serve::Arguments),
    /// Store definitions on a server
    Apply(apply::Arguments),
    /// Start a run on a server
    Start(start::Arguments),
    /// List, show and control the runs of a server
    Runs(runs::Arguments),
    /// Say what a run of a server waits for, down the chain
    Why(why::Arguments),
    /// Send a signal to a run of a server
    Signal(signal::Arguments),
    /// List, redrive and delete inputs that a server has given up
    DeadLetters(dead_letters::Arguments),
    /// Copy a store, also while a server runs on it
    Backup(backup::Arguments),
    /// Look for runs that nothing will wake, on a server or in a store
    Doctor(doctor::Arguments),
    /// Run your workflow through random crashes, delays and repeats
    Simulate(simulate::Arguments),
    /// Check files of definitions and say everything that is wrong
    Validate(validate::Arguments),
    /// Measure this machine: durable turns, nesting, sleepers, recovery
    Bench(bench::Arguments),
    /// Print the script with which a shell completes these commands
    Completions(completions::Arguments),
    /// One part of a benchmark, in a process of its own.
    #[command(hide = true)]
    BenchChild {
        #[arg(value_parser = Order::parse)]
        order: Order,
    },
}

const EXAMPLES: &str = "\
Examples:
  steadfast run examples/graphs/hello.yaml     a workflow, here and now
  steadfast dev                                a server for the definitions in this folder
  steadfast start greet --wait                 a run on that server
  steadfast serve --store steadfast.db         the HTTP API, on 127.0.0.1:7400
  steadfast backup copy.db --store steadfast.db   a copy, also while it is served
  steadfast validate examples/graphs           what is wrong with definitions
  steadfast bench all --short                  everything, in half a minute
  steadfast bench turns --concurrency 1,1024   durable turns a second
  steadfast bench nest --depth 100000 --json   a deep chain of calls, as JSON lines

Exit codes: 0 done, 1 failed, 2 wrong usage.
Logs go to stderr; RUST_LOG=info or RUST_LOG=steadfast=debug shows more than warnings.";

fn main() -> ExitCode {
    let CommandLine { command } = CommandLine::parse();
    // `serve` is told how by its options.
    if !matches!(command, Command::Serve(_)) {
        logs::write_warnings();
    }
    let done = match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Dev(arguments) => dev::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Apply(arguments) => apply::run(&arguments),
        Command::Start(arguments) => start::run(&arguments),
        Command::Runs(arguments) => runs::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Why(arguments) => why::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Signal(arguments) => signal::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::DeadLetters(arguments) => dead_letters::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Backup(arguments) => backup::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Completions(arguments) => {
            completions::run(&arguments, CommandLine::command()).map(|()| ExitCode::SUCCESS)
        }
        Command::BenchChild { order } => bench::child::work(&order).map(|()| ExitCode::SUCCESS),
    };
    bench::place::end_if_interrupted();
    match done {
        Ok(code) => code,
        Err(error) => {
            if !usage::is_reader_gone(&error) {
                eprintln!("error: {error:#}");
            }
            usage::exit_code(&error)
        }
    }
}
