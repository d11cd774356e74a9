//! The runtime's promises under simulation, and the proof that the simulation can fail.

use steadfast_sim::plan::{CrashPoint, Plan};
use steadfast_sim::{Mutation, Survived, hide_intended_panics, simulate};

#[track_caller]
fn survives(seed: u64, plan: Plan) -> Survived {
    hide_intended_panics();
    simulate(seed, plan, Mutation::None).unwrap_or_else(|violation| panic!("seed {seed}: {violation}"))
}

#[test]
fn hundreds_of_seeds_keep_every_promise() {
    for seed in 0..500 {
        survives(seed, Plan::of_seed(seed));
    }
}

#[test]
fn a_seed_run_twice_gives_the_same_history() {
    for seed in 0..50 {
        let first = survives(seed, Plan::of_seed(seed));
        assert!(first.history.count() > 100, "a history worth comparing");
        assert_eq!(first, survives(seed, Plan::of_seed(seed)), "seed {seed}");
    }
}

#[test]
fn different_seeds_give_different_histories() {
    assert_ne!(survives(1, Plan::without_faults()).history, survives(2, Plan::without_faults()).history);
}

#[test]
fn a_crash_at_every_point_of_every_commit_loses_nothing() {
    for seed in 0..3 {
        let commits = survives(seed, Plan::without_faults()).commits;
        assert!(commits > 50, "enough commits to crash at");
        for commit in 0..commits {
            for point in [CrashPoint::BeforeCommit, CrashPoint::AfterCommit, CrashPoint::DuringRelease] {
                survives(seed, Plan::one_crash(commit, point));
            }
        }
    }
}

/// Some seed in 200 must find it, or the simulator proves nothing about it.
#[track_caller]
fn is_found(mutation: Mutation) {
    hide_intended_panics();
    let found = (0..200).find(|seed| simulate(*seed, Plan::of_seed(*seed), mutation).is_err());
    assert!(found.is_some(), "no seed in 200 finds an engine with {mutation:?}");
}

#[test]
fn answers_that_leave_before_they_are_on_disk_are_found() {
    is_found(Mutation::GateOpen);
}

#[test]
fn a_consumed_message_that_stays_on_disk_is_found() {
    is_found(Mutation::MessageKept);
}

#[test]
fn a_forgotten_request_id_is_found() {
    is_found(Mutation::RequestForgotten);
}

#[test]
fn an_unwritten_alarm_is_found() {
    is_found(Mutation::AlarmUnwritten);
}

#[test]
fn a_result_accepted_twice_is_found() {
    is_found(Mutation::SettledTwice);
}

#[test]
fn a_cancelled_task_that_stays_on_disk_is_found() {
    is_found(Mutation::CancelledKept);
}

#[test]
fn a_cancel_that_the_waiting_tasks_never_hear_of_is_found() {
    is_found(Mutation::CancelUnheard);
}

#[test]
fn actors_kept_in_memory_after_a_failed_commit_are_found() {
    is_found(Mutation::RollbackSkipped);
}

#[test]
fn an_early_alarm_is_found() {
    is_found(Mutation::AlarmEarly);
}
