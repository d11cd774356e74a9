//! Traces for a collector: a tree of runs is a trace; its runs, the attempts of their tasks and their calls of other workflows are spans.
//!
//! Owns the course: read the history from where it has got to, send, keep how far that is. So nothing is sent before it is on disk, a collector that is down or slow holds up only this, and
//! after a crash some spans are sent once more, as the same spans. What becomes a span is in `reading.rs`, its form in `span.rs`. Start reading at [`export`].

mod collector;
mod place;
mod reading;
mod span;

pub use collector::{Collector, InvalidUrl};

pub(crate) use place::{KIND, Places};

use std::time::Duration;

use steadfast_store::StoreError;

use crate::engine::Engine;
use crate::watch::Watched;
use collector::{NotSent, Sent};
use reading::{Reading, Rest};
use span::Span;

/// Spans that go in one request: with long errors less than a MiB, and collectors take four.
const SPANS_AT_ONCE: usize = 512;

/// How long to wait for more, once something has happened: a request for each commit would be no use to anybody.
const GATHERED_FOR: Duration = Duration::from_millis(200);

/// The pause after something that failed; doubled each time, up to the second.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Sends traces of everything that has happened since the last time, and then of everything that happens, for as long as it is polled. The first time, it begins with the oldest event in
/// the store. The engine is one that was built with [`crate::Builder::graphs`].
pub async fn export(engine: &Engine, collector: &Collector) {
    // First, so that nothing is missed between the reading and the waiting.
    let mut watching = engine.watch(Watched::Everything);
    let mut trouble = Trouble::default();
    let mut kept = loop {
        match off_threads(engine, place::kept).await {
            Ok(kept) => break kept,
            Err(error) => trouble.pause("how far traces were sent cannot be read", &error).await,
        }
    };
    let mut reading = Reading::after(kept);
    loop {
        let (back, read) = read_off(engine, reading).await;
        reading = back;
        let rest = match read {
            Ok(rest) => rest,
            Err(error) => {
                trouble.pause("the history cannot be read for traces", &error).await;
                Rest::Perhaps
            }
        };
        while !reading.spans.is_empty() {
            let count = reading.spans.len().min(SPANS_AT_ONCE);
            deliver(collector, &reading.spans[..count], &mut trouble).await;
            reading.spans.drain(..count);
        }
        if reading.place != kept {
            match place::keep(engine, reading.place).await {
                Ok(()) => kept = reading.place,
                // Kept with the next ones; until then a restart would send these again.
                Err(error) => tracing::debug!(%error, "how far traces were sent cannot be kept now"),
            }
        }
        if rest == Rest::Nothing {
            if !watching.has_grown().await {
                return;
            }
            tokio::time::sleep(GATHERED_FOR).await;
        }
    }
}

/// Reads on, off the async threads.
async fn read_off(engine: &Engine, mut reading: Reading) -> (Reading, Result<Rest, StoreError>) {
    let place = reading.place;
    let read = off_threads(engine, move |engine| {
        let read = engine.with_reader(|reader| reading.advance(reader)).and_then(|read| read);
        Ok((reading, read))
    });
    // What is open is found again in the history.
    read.await.unwrap_or_else(|fault| (Reading::after(place), Err(fault)))
}

async fn off_threads<T: Send + 'static>(
    engine: &Engine,
    read: impl FnOnce(&Engine) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let engine = engine.clone();
    let read = tokio::task::spawn_blocking(move || read(&engine)).await;
    read.unwrap_or_else(|fault| Err(StoreError::Failed(fault.to_string())))
}

/// Sends spans, as often as it takes.
async fn deliver(collector: &Collector, spans: &[Span], trouble: &mut Trouble) {
    loop {
        match collector.send(spans).await {
            Ok(Sent::All) => return trouble.is_over(),
            Ok(Sent::Without { count, reason }) => {
                tracing::warn!(%collector, count, reason, "the collector does not take these spans; they are left out");
                return trouble.is_over();
            }
            Err(NotSent(error)) => {
                trouble
                    .pause(&format!("traces cannot be sent to {collector}; tried again until it works"), &error)
                    .await;
            }
        }
    }
}

/// How long something has failed.
#[derive(Default)]
struct Trouble {
    pause: Option<Duration>,
}

impl Trouble {
    async fn pause(&mut self, what: &str, error: &impl std::fmt::Display) {
        let pause = match self.pause {
            None => {
                tracing::warn!(%error, "{what}");
                PAUSE_FIRST
            }
            // Said once, or the log would be of nothing else.
            Some(last) => {
                tracing::debug!(%error, "{what}");
                (last * 2).min(PAUSE_MAX)
            }
        };
        self.pause = Some(pause);
        tokio::time::sleep(pause).await;
    }

    fn is_over(&mut self) {
        if self.pause.take().is_some() {
            tracing::info!("traces are sent again");
        }
    }
}
