//! What happened in a simulation, line by line.
//!
//! Owns the record: a fingerprint of all lines, by which two runs are compared, and the last lines, which a failing seed
//! prints.

use std::collections::VecDeque;
use std::fmt;

use steadfast_core::ids::stable_hash;

/// How many lines a failing seed shows.
const LINES_KEPT: usize = 60;

/// The lines of one simulation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct History {
    fingerprint: u64,
    count: u64,
    last: VecDeque<String>,
}

impl History {
    /// Adds a line.
    pub fn record(&mut self, line: String) {
        self.fingerprint = self.fingerprint.rotate_left(5) ^ stable_hash(line.as_bytes());
        self.count += 1;
        if self.last.len() == LINES_KEPT {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    /// How many lines there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} lines, fingerprint {:016x}; the last are:", self.count, self.fingerprint)?;
        for line in &self.last {
            writeln!(f, "  {line}")?;
        }
        Ok(())
    }
}
