//! Workflows under simulation, and the proof that the simulation can fail.

use steadfast_sim::Survived;
use steadfast_sim::graphs::{Afterwards, Fault, Mode, generate, simulate};
use steadfast_sim::plan::{CrashPoint, Plan};

#[track_caller]
fn survives(seed: u64, plan: Plan) -> Survived {
    simulate(seed, plan, Fault::None).unwrap_or_else(|violation| panic!("seed {seed}: {violation}"))
}

#[test]
fn hundreds_of_random_workflows_keep_every_promise() {
    for seed in 0..300 {
        survives(seed, Plan::of_workflow(seed));
    }
}

#[test]
fn a_seed_run_twice_gives_the_same_history() {
    for seed in 0..30 {
        assert_eq!(survives(seed, Plan::of_workflow(seed)), survives(seed, Plan::of_workflow(seed)), "seed {seed}");
    }
}

/// The first seeds whose workflow ends in the same way whatever happens.
fn confluent(count: usize) -> impl Iterator<Item = u64> {
    (0..).filter(|seed| generate(*seed).mode == Mode::Confluent).take(count)
}

/// `simulate` compares each outcome with that of the undisturbed run.
#[test]
fn a_crash_at_every_point_of_every_commit_changes_nothing() {
    let mut crashes = 0;
    for seed in confluent(12) {
        for commit in 0..survives(seed, Plan::without_faults()).commits {
            for point in [CrashPoint::BeforeCommit, CrashPoint::AfterCommit, CrashPoint::DuringRelease] {
                crashes += survives(seed, Plan::one_crash(commit, point)).crashes;
            }
        }
    }
    assert!(crashes > 200, "enough commits to crash at: {crashes}");
}

/// Runs with others below them; of some, the id is used again.
#[test]
fn a_crash_at_every_point_of_a_purge_leaves_nothing_behind() {
    let is_purged = |seed: &u64| Afterwards::of_seed(*seed) != Afterwards::Stays;
    let has_children = |seed: &u64| generate(*seed).text.contains("\"workflow\":");
    let seeds: Vec<u64> = (0..200).filter(is_purged).filter(has_children).take(12).collect();
    assert_eq!(seeds.len(), 12);
    for seed in seeds {
        for commit in 0..survives(seed, Plan::without_faults()).commits {
            for point in [CrashPoint::BeforeCommit, CrashPoint::AfterCommit, CrashPoint::DuringRelease] {
                survives(seed, Plan::one_crash(commit, point));
            }
        }
    }
}

#[test]
fn a_run_made_anew_from_disk_after_every_turn_ends_in_the_same_way() {
    for seed in confluent(60) {
        survives(seed, Plan::without_faults().always_evicting());
        survives(seed, Plan::of_workflow(seed).always_evicting());
    }
}

/// Some seed in 200 must find it, or the simulator proves nothing about it.
#[track_caller]
fn is_found(fault: Fault) {
    let found = (0..200).find(|seed| simulate(*seed, Plan::of_workflow(*seed), fault).is_err());
    assert!(found.is_some(), "no seed in 200 finds runs with {fault:?}");
}

#[test]
fn a_group_that_is_not_written_again_is_found() {
    is_found(Fault::GroupUnwritten);
}

#[test]
fn what_a_branch_leaves_behind_is_found() {
    is_found(Fault::OverlayKept);
}

#[test]
fn a_timer_without_an_alarm_is_found() {
    is_found(Fault::AlarmUnset);
}

#[test]
fn an_end_that_the_parent_never_hears_of_is_found() {
    is_found(Fault::EndUntold);
}

#[test]
fn a_child_that_nobody_calls_off_is_found() {
    is_found(Fault::ChildForgotten);
}

#[test]
fn a_retry_that_never_begins_is_found() {
    is_found(Fault::RetryUndispatched);
}

#[test]
fn a_token_that_outlives_its_end_is_found() {
    is_found(Fault::TokenKept);
}

#[test]
fn a_result_that_counts_for_two_tokens_is_found() {
    is_found(Fault::ResultTwice);
}

#[test]
fn a_merge_in_another_order_than_that_of_branches_is_found() {
    is_found(Fault::ArrivalsRenumbered);
}

#[test]
fn runs_that_stay_when_the_one_above_them_is_purged_are_found() {
    is_found(Fault::BelowForgotten);
}

#[test]
fn a_purge_that_does_not_go_on_after_a_crash_is_found() {
    is_found(Fault::RemovalForgotten);
}
