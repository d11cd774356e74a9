//! Synchronization: whether a join fires, waits, or can no longer be met.

use crate::definition::workflow::{Join, WaitFor};
use crate::failure::{Failure, FailureKind};
use crate::graph::decision::Decision;
use crate::graph::token::GroupId;

/// How a group instance stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Which instance.
    pub group: GroupId,
    /// How many branches it has.
    pub total: u64,
    /// How many have arrived at the join.
    pub arrived: u64,
    /// How many ended without arriving.
    pub ended: u64,
}

/// What follows when a branch was settled, or when there are none.
#[must_use]
pub fn decide(join: Option<&Join>, standing: &Standing) -> Option<Decision> {
    let &Standing { group, total, arrived, ended } = standing;
    let going = total.saturating_sub(arrived + ended);
    let fire = Decision::ActivateFanInToken { group, arrived };
    let Some(join) = join else {
        return (going == 0).then_some(Decision::CloseGroup { group });
    };
    if total == 0 {
        return Some(fire);
    }
    let wanted = match join.wait_for {
        WaitFor::All => return (going == 0).then_some(fire),
        WaitFor::Any => 1,
        WaitFor::Count(wanted) => wanted,
    };
    if arrived >= wanted {
        Some(fire)
    } else if arrived + going < wanted {
        Some(Decision::FailRun { failure: impossible(join, wanted, standing) })
    } else {
        None
    }
}

/// What follows when the join's time is up.
#[must_use]
pub fn on_timeout(join: &Join, standing: &Standing) -> Decision {
    use crate::definition::workflow::OnTimeout;
    let &Standing { group, total, arrived, .. } = standing;
    match join.on_timeout {
        OnTimeout::Proceed => Decision::ActivateFanInToken { group, arrived },
        OnTimeout::Fail => {
            let message =
                format!("the join of group `{}` timed out: {arrived} of {total} branches had arrived", join.group);
            Decision::FailRun { failure: Failure::last(FailureKind::Timeout, &message) }
        }
    }
}

fn impossible(join: &Join, wanted: u64, standing: &Standing) -> Failure {
    let &Standing { total, arrived, ended, .. } = standing;
    let message = format!(
        "the join of group `{}` waits for {wanted} of {total} branches, but {arrived} have arrived and {ended} ended without arriving",
        join.group
    );
    Failure::last(FailureKind::JoinImpossible, &message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::workflow::{OnFailure, OnTimeout};

    fn join(wait_for: WaitFor) -> Join {
        Join {
            group: "g".into(),
            wait_for,
            timeout_ms: None,
            on_timeout: OnTimeout::Fail,
            on_failure: OnFailure::Continue,
            merges: Vec::new(),
        }
    }

    #[track_caller]
    fn check(wait_for: WaitFor, total: u64, arrived: u64, ended: u64, expected: &str) {
        let standing = Standing { group: GroupId(1), total, arrived, ended };
        let decided = match decide(Some(&join(wait_for)), &standing) {
            None => "waits",
            Some(Decision::ActivateFanInToken { .. }) => "fires",
            Some(Decision::FailRun { failure }) if failure.kind == FailureKind::JoinImpossible => "impossible",
            Some(other) => panic!("{other:?}"),
        };
        assert_eq!(decided, expected);
    }

    #[test]
    fn all_fires_when_every_branch_is_settled() {
        check(WaitFor::All, 3, 2, 0, "waits");
        check(WaitFor::All, 3, 3, 0, "fires");
        check(WaitFor::All, 3, 1, 2, "fires");
        check(WaitFor::All, 3, 0, 3, "fires");
    }

    #[test]
    fn any_fires_with_the_first_arrival() {
        check(WaitFor::Any, 3, 0, 2, "waits");
        check(WaitFor::Any, 3, 1, 0, "fires");
        check(WaitFor::Any, 3, 0, 3, "impossible");
    }

    #[test]
    fn a_number_fires_when_so_many_have_arrived() {
        check(WaitFor::Count(2), 3, 1, 0, "waits");
        check(WaitFor::Count(2), 3, 2, 0, "fires");
    }

    #[test]
    fn too_few_branches_left_is_impossible_at_once() {
        check(WaitFor::Count(2), 3, 0, 2, "impossible");
        check(WaitFor::Count(2), 1, 0, 0, "impossible");
    }

    #[test]
    fn no_branches_fire_at_once() {
        check(WaitFor::All, 0, 0, 0, "fires");
        check(WaitFor::Any, 0, 0, 0, "fires");
        check(WaitFor::Count(5), 0, 0, 0, "fires");
    }

    #[test]
    fn a_group_that_nobody_joins_is_closed_when_its_branches_are_over() {
        let standing = Standing { group: GroupId(1), total: 2, arrived: 0, ended: 1 };
        assert_eq!(decide(None, &standing), None);
        assert_eq!(decide(None, &Standing { ended: 2, ..standing }), Some(Decision::CloseGroup { group: GroupId(1) }));
    }
}
