//! The scenario of the small actors: the promises of the runtime itself.

use steadfast::Kinds;
use steadfast::commit::TaskStart;
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::ids::stable_hash;
use steadfast_core::json::Json;
use steadfast_store::Reader;

use super::wishes::What;
use super::{chain, counter, courier, errand, fragile, invariants, ticker};
use crate::clients::Operation;
use crate::random::Random;
use crate::scenario::{Scenario, Seen};

/// So many clients, who want random things.
pub(crate) struct Actors {
    pub(crate) operations_max: usize,
}

impl Scenario for Actors {
    type Wish = What;

    fn kinds(&self) -> Kinds {
        let mut kinds = Kinds::default();
        kinds.insert(counter::KIND, counter::Counter);
        kinds.insert(chain::KIND, chain::Chain);
        kinds.insert(ticker::KIND, ticker::Ticker);
        kinds.insert(errand::KIND, errand::Errand);
        kinds.insert(courier::KIND, courier::Courier);
        kinds.insert(fragile::KIND, fragile::Fragile);
        kinds
    }

    fn wish(&mut self, seen: &Seen<'_, What>, random: &mut Random) -> Result<Option<Operation<What>>, String> {
        let may_be = seen.operations.len() < self.operations_max;
        Ok(may_be.then(|| What::random(seen.operations, random, seen.now)))
    }

    /// The same for every attempt. One in four fails.
    fn outcome(&self, task: &TaskStart, _reader: &dyn Reader) -> Result<Result<Json, Failure>, String> {
        Ok(if stable_hash(task.task.as_str().as_bytes()).is_multiple_of(4) {
            Err(Failure::last(FailureKind::TaskFailed, "simulated"))
        } else {
            Ok(Json::null())
        })
    }

    /// Never: ticks and late results go on.
    fn is_over(&self, _operations: &[Operation<What>]) -> bool {
        false
    }

    fn after_a_crash(&self, seen: &Seen<'_, What>) -> Result<(), String> {
        invariants::after_a_crash(seen)
    }

    fn at_the_end(&self, seen: &Seen<'_, What>) -> Result<(), String> {
        invariants::at_the_end(seen)
    }
}
