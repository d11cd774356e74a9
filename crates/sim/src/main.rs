//! `make sim`: many seeds, one after the other. The first that fails prints itself and how to replay it.

use std::process::ExitCode;
use std::time::Instant;

use steadfast_sim::graphs::{self, Fault};
use steadfast_sim::plan::Plan;
use steadfast_sim::{Mutation, Survived, Violation, hide_intended_panics, simulate};

const USAGE: &str = "\
usage: steadfast-sim [SEEDS [FIRST [SCENARIO]]]
simulates SEEDS seeds (default 1000), from FIRST (default 0), of SCENARIO: actors, graphs or all (default all)";

/// What can be simulated.
#[derive(Clone, Copy)]
enum Scenario {
    Actors,
    Graphs,
}

struct Arguments {
    seeds: u64,
    first: u64,
    scenarios: &'static [Scenario],
}

fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    hide_intended_panics();
    for scenario in arguments.scenarios {
        if !scenario.survives(&arguments) {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

impl Scenario {
    fn name(self) -> &'static str {
        match self {
            Self::Actors => "actors",
            Self::Graphs => "graphs",
        }
    }

    fn simulate(self, seed: u64) -> Result<Survived, Box<Violation>> {
        match self {
            Self::Actors => simulate(seed, Plan::of_seed(seed), Mutation::None),
            Self::Graphs => graphs::simulate(seed, Plan::of_workflow(seed), Fault::None),
        }
    }

    fn survives(self, arguments: &Arguments) -> bool {
        let Arguments { seeds, first, .. } = *arguments;
        let name = self.name();
        let begin = Instant::now();
        let (mut lines, mut commits, mut crashes) = (0, 0, 0);
        for seed in first..first.saturating_add(seeds) {
            match self.simulate(seed) {
                Ok(survived) => {
                    lines += survived.history.count();
                    commits += survived.commits;
                    crashes += survived.crashes;
                }
                Err(violation) => {
                    println!("{name}: seed {seed} breaks a promise: {violation}");
                    println!("replay it with: make sim SEEDS=1 FIRST={seed} SCENARIO={name}");
                    return false;
                }
            }
            if (seed - first + 1).is_multiple_of(1_000) {
                println!("{name}: {} seeds, {commits} commits, {crashes} crashes, no violation", seed - first + 1);
            }
        }
        println!(
            "{name}: {seeds} seeds from {first}: {commits} commits, {crashes} crashes, {lines} lines of history, no violation, {:.1?}",
            begin.elapsed()
        );
        true
    }
}

fn arguments() -> Option<Arguments> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| arguments.get(index).map_or(Some(default), |text| text.parse().ok());
    let scenarios: &[Scenario] = match arguments.get(2).map(String::as_str) {
        Some("actors") => &[Scenario::Actors],
        Some("graphs") => &[Scenario::Graphs],
        Some("all") | None => &[Scenario::Actors, Scenario::Graphs],
        Some(_) => return None,
    };
    if arguments.len() > 3 {
        return None;
    }
    Some(Arguments { seeds: number(0, 1_000)?, first: number(1, 0)?, scenarios })
}
