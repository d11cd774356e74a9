//! How far traces were sent: the actor `otlp:place`, in the store itself.
//!
//! Owns that row. It is in the store and not beside it because the place is one in the store's history: a copy of the store has the place that goes with it.

use serde::{Deserialize, Serialize};
use steadfast_core::ids::ActorId;
use steadfast_core::turn::{Actor, Input, Kind, Storage, Turn, TurnError};
use steadfast_store::StoreError;
use steadfast_store::rows::HistoryPlace;

use crate::commit::RequestError;
use crate::engine::Engine;

/// The kind of the actor.
pub(crate) const KIND: &str = "otlp";

const PLACE: &str = "place";

/// The version of the stored form.
const FORM: u32 = 1;

/// A place, as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    v: u32,
    part: u64,
    index: u64,
}

/// The kind `otlp`.
pub(crate) struct Places;

struct Loaded;

impl Kind for Places {
    fn load(&self, _id: &ActorId, _storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        Ok(Box::new(Loaded))
    }
}

impl Actor for Loaded {
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError> {
        match input {
            Input::Request(request) => {
                turn.put_json(PLACE, request.body.clone())?;
                turn.reply(&request.id, &())
            }
            Input::Message(_) | Input::Alarm { .. } | Input::TaskResult(_) | Input::DeadLetter(_) => {
                Err(TurnError::failed("the place of traces takes requests only"))
            }
        }
    }
}

/// The place that is kept; the beginning when there is none.
pub(super) fn kept(engine: &Engine) -> Result<HistoryPlace, StoreError> {
    let stored = engine.with_reader(|reader| reader.get(&actor(), PLACE)).and_then(|read| read)?;
    let Some(stored) = stored else { return Ok(HistoryPlace::default()) };
    match stored.decode() {
        Ok(Stored { v: FORM, part, index }) => Ok(HistoryPlace { part, index }),
        Ok(Stored { v, .. }) => Err(StoreError::Failed(format!("it is stored in form {v}, expected {FORM}"))),
        Err(error) => Err(StoreError::Failed(error.to_string())),
    }
}

/// Keeps a place, durably.
pub(super) async fn keep(engine: &Engine, place: HistoryPlace) -> Result<(), RequestError> {
    let HistoryPlace { part, index } = place;
    engine.request(&actor(), &Stored { v: FORM, part, index }).await.map(drop)
}

fn actor() -> ActorId {
    ActorId::new(KIND, PLACE).expect("the name is written in code")
}
