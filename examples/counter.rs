//! A durable counter: run it twice, and it goes on where it was.
//!
//! `cargo run -p steadfast --example counter`, or with a file of your own: `… --example counter -- my.db`.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use steadfast::Engine;
use steadfast::core::ids::ActorId;
use steadfast::core::turn::{Actor, Input, Kind, Storage, Turn, TurnError};

/// A kind of actor: how one is read from its storage.
struct Counter;

/// An actor in memory. It may be dropped between any two turns, so everything that matters is in its storage.
struct Count(u64);

impl Kind for Counter {
    fn load(&self, _id: &ActorId, storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        let count = storage.get("count")?.map_or(Ok(0), |stored| stored.decode())?;
        Ok(Box::new(Count(count)))
    }
}

impl Actor for Count {
    /// A turn: one input goes in, effects come out. They are on disk before the caller hears of them.
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError> {
        let Input::Request(request) = input else {
            return Err(TurnError::failed("a counter takes requests only"));
        };
        self.0 += request.body.decode::<u64>()?;
        turn.put("count", &self.0)?;
        turn.emit("counter.counted", &self.0)?;
        turn.reply(&request.id, &self.0)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match count_a_visit().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn count_a_visit() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "target/counter-example.db".to_owned());
    let engine = Engine::open(&file)?.kind("counter", Counter).start()?;

    let visits = ActorId::parse("counter:visits")?;
    let count: u64 = engine.request(&visits, &1).await?.decode()?;
    println!("visit number {count}, kept in {file}");
    for event in engine.events(&visits, count.saturating_sub(3), 3)? {
        println!("  event {}: {} {}", event.sequence, event.event_type, event.data);
    }

    engine.stop(Duration::from_secs(5)).await;
    Ok(())
}
