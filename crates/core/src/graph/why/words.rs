//! The sentences.

use std::fmt;

use super::{Cause, GroupWait, LastAsked, Standing, TaskStanding, TokenWait, Wait, Why};
use crate::definition::workflow::WaitFor;
use crate::time::Timestamp;

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run `{}` of `{}` {}", self.run, self.workflow, self.standing)
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("is running"),
            Self::Paused => f.write_str("is paused: nothing new is begun until it is resumed"),
            Self::Ending(status) => write!(f, "is about to be {}: what was active is called off", status.name()),
            Self::Ended { status, at, error, reason } => {
                write!(f, "is {} since {}", status.name(), at.rfc3339())?;
                match (error, reason) {
                    (Some(error), _) => write!(f, ": {}: {}", error.kind.name(), error.message),
                    (None, Some(reason)) => write!(f, ": {reason}"),
                    (None, None) => Ok(()),
                }
            }
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.branch() {
            write!(f, "branch {}: ", place.index)?;
        }
        match self {
            Self::Token(wait) => wait.fmt(f),
            Self::Group(wait) => wait.fmt(f),
        }
    }
}

impl fmt::Display for TokenWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, attempt, cause, .. } = self;
        write!(f, "node `{node}`: ")?;
        match cause {
            Cause::Turn => f.write_str("its work has not begun"),
            Cause::Task(standing) => write!(f, "{standing}, attempt {attempt}"),
            Cause::Signal { name, until } => {
                write!(f, "waits for signal `{name}`, which nobody has sent{}", Until(*until))
            }
            Cause::Sleep { until } => write!(f, "sleeps{}", Until(*until)),
            Cause::Retry { due } => {
                write!(f, "attempt {attempt} has failed, attempt {} is due", attempt + 1)?;
                due.map_or(Ok(()), |due| write!(f, " at {}", due.rfc3339()))
            }
            Cause::Run { run, until, why } => {
                write!(f, "waits for run `{}`{}", run.name(), Until(*until))?;
                match why {
                    Some(why) => write!(f, ", which {}", why.standing),
                    None => Ok(()),
                }
            }
        }
    }
}

impl fmt::Display for TaskStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dispatched => f.write_str("task handed over"),
            Self::Running => f.write_str("task running"),
            Self::Queued => f.write_str("task waiting for a place among those that run at once"),
            Self::Leased { queue, worker, until } => {
                write!(f, "task of queue `{queue}` leased to worker `{worker}` until {}", until.rfc3339())
            }
            Self::Unleased { queue, asked } => {
                write!(f, "task waiting in queue `{queue}`, ")?;
                match asked {
                    LastAsked::Now => f.write_str("for which a worker asks just now"),
                    LastAsked::At(at) => write!(f, "for which nobody has asked since {}", at.rfc3339()),
                    LastAsked::NotSince(at) => {
                        write!(f, "for which nobody has asked since this server started at {}", at.rfc3339())
                    }
                }
            }
            Self::Parked { lacking } => write!(f, "task parked: {lacking}; then start the server again"),
            Self::Settled => f.write_str("task done, which the run takes notice of just now"),
        }
    }
}

impl fmt::Display for GroupWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, total, arrived, ended, wait_for, until, .. } = self;
        match name {
            Some(name) => write!(f, "group `{name}`: ")?,
            None => f.write_str("branches: ")?,
        }
        match wait_for {
            None => write!(f, "{ended} of {total} branches are over")?,
            Some(wait_for) => {
                write!(f, "{arrived} of {total} branches have arrived")?;
                if *ended > 0 {
                    write!(f, ", {ended} ended without")?;
                }
                match wait_for {
                    WaitFor::All => f.write_str(", join `all`")?,
                    WaitFor::Any => f.write_str(", join `any`")?,
                    WaitFor::Count(count) => write!(f, ", join {count}")?,
                }
            }
        }
        write!(f, "{}", Until(*until))
    }
}

struct Until(Option<Timestamp>);

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |until| write!(f, ", until {}", until.rfc3339()))
    }
}
