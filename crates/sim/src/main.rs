//! `make sim`: many seeds, one after the other. The first that fails prints itself and how to replay it.

use std::process::ExitCode;
use std::time::Instant;

use steadfast_sim::plan::Plan;
use steadfast_sim::{Mutation, hide_intended_panics, simulate};

const USAGE: &str =
    "usage: steadfast-sim [SEEDS [FIRST]]   simulates SEEDS seeds (default 1000), from FIRST (default 0)";

fn main() -> ExitCode {
    let Some((seeds, first)) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    hide_intended_panics();
    let begin = Instant::now();
    let mut lines = 0;
    let mut commits = 0;
    for seed in first..first.saturating_add(seeds) {
        match simulate(seed, Plan::of_seed(seed), Mutation::None) {
            Ok(survived) => {
                lines += survived.history.count();
                commits += survived.commits;
            }
            Err(violation) => {
                println!("seed {seed} breaks a promise: {violation}");
                println!("replay it with: make sim SEEDS=1 FIRST={seed}");
                return ExitCode::FAILURE;
            }
        }
        if (seed - first + 1).is_multiple_of(1_000) {
            println!("{} seeds, {commits} commits, {lines} lines of history, no violation", seed - first + 1);
        }
    }
    println!(
        "{seeds} seeds from {first}: {commits} commits, {lines} lines of history, no violation, {:.1?}",
        begin.elapsed()
    );
    ExitCode::SUCCESS
}

fn arguments() -> Option<(u64, u64)> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| arguments.get(index).map_or(Some(default), |text| text.parse().ok());
    if arguments.len() > 2 { None } else { Some((number(0, 1_000)?, number(1, 0)?)) }
}
