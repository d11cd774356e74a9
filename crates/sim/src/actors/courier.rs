//! Couriers: send numbered messages to each other, and check that each arrives once and in order.
//!
//! A violation is not an error (which would be retried) but a mark in the storage, which the simulator looks for.

use serde::{Deserialize, Serialize};
use steadfast_core::ids::ActorId;
use steadfast_core::turn::{Actor, Input, Kind, Sender, Storage, Turn, TurnError};

/// The name of the kind.
pub const KIND: &str = "courier";

/// The key under which a courier notes what went wrong.
pub const VIOLATION: &str = "violation";

/// What is asked of a courier.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Deliver {
    /// To whom.
    pub to: ActorId,
    /// How many messages.
    pub count: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Parcel {
    number: u64,
}

/// The kind.
pub struct Courier;

struct OnTour;

impl Kind for Courier {
    fn load(&self, _id: &ActorId, _storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        Ok(Box::new(OnTour))
    }
}

impl Actor for OnTour {
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError> {
        match input {
            Input::Request(request) => {
                let Deliver { to, count } = request.body.decode()?;
                let key = sent_key(&to);
                let sent: u64 = turn.get(&key)?.unwrap_or(0);
                for number in sent + 1..=sent + count {
                    turn.send(&to, &Parcel { number })?;
                }
                turn.put(&key, &(sent + count))?;
                turn.reply(&request.id, &(sent + count))
            }
            Input::Message(message) => {
                let Sender::Actor(from) = &message.from else {
                    return Err(TurnError::failed("a courier takes parcels of couriers only"));
                };
                let Parcel { number } = message.body.decode()?;
                let key = received_key(from);
                let received: u64 = turn.get(&key)?.unwrap_or(0);
                if number != received + 1 {
                    turn.put(VIOLATION, &format!("parcel {number} of {from} came after {received}"))?;
                }
                turn.put(&key, &number)
            }
            Input::Alarm { .. } | Input::TaskResult(_) | Input::DeadLetter(_) => {
                Err(TurnError::failed("a courier takes requests and messages only"))
            }
        }
    }
}

/// Where a courier notes how many parcels it has sent to another.
#[must_use]
pub fn sent_key(to: &ActorId) -> String {
    format!("sent/{to}")
}

/// Where a courier notes how many parcels it has received of another.
#[must_use]
pub fn received_key(from: &ActorId) -> String {
    format!("received/{from}")
}
