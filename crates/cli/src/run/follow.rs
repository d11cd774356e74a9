//! What is watched while a run goes: its events, its end, and the health of the store.
//!
//! Owns the waiting. Events are read from what is committed, so nobody sees one that a crash could take back. Never decides when
//! the run ends. Start reading at [`Follower::until_the_end`].

use std::io::Write;
use std::time::{Duration, Instant};

use steadfast::graph::{Graphs, RunError};
use steadfast::{Engine, Health, RequestError};
use steadfast_core::graph::protocol::Outcome;
use steadfast_core::graph::view::{EventView, RunView};
use steadfast_core::limits;
use tokio::time::MissedTickBehavior;

use super::waits::Waits;
use crate::screen::Screen;
use crate::usage::note;

/// What is done with events.
pub(super) struct Watch {
    /// Print them.
    pub(super) lines: bool,
    /// Show how far the run is.
    pub(super) screen: Option<Screen>,
    /// Say what signals are waited for.
    pub(super) waits: Option<Waits>,
}

impl Watch {
    fn wants_events(&self) -> bool {
        self.lines || self.screen.is_some() || self.waits.is_some()
    }
}

/// How often new events are looked for. People and programs take this for at once.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How often the store's health is looked at.
const HEALTH_EVERY: Duration = Duration::from_millis(500);

/// Pages of events read before anything else is looked at.
const PAGES_AT_ONCE: usize = 10;

/// After how long a question is asked again that was not answered because the store does not take writes.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// Follows one run.
pub(super) struct Follower {
    engine: Engine,
    graphs: Graphs,
    run: RunView,
    watch: Watch,
    /// The last event that was seen.
    seen: u64,
    health: Health,
    health_at: Instant,
}

/// Whether there may be more events.
#[derive(PartialEq, Eq)]
enum Events {
    All,
    More,
}

impl Follower {
    pub(super) fn new(engine: &Engine, run: RunView, watch: Watch) -> Self {
        Self {
            engine: engine.clone(),
            graphs: Graphs::of(engine),
            run,
            watch,
            seen: 0,
            health: Health::Well,
            health_at: Instant::now(),
        }
    }

    /// Waits for the end of the run; by then every event was seen.
    pub(super) async fn until_the_end(mut self) -> anyhow::Result<(RunView, Outcome)> {
        let every = if self.watch.wants_events() { LOOK_EVERY } else { HEALTH_EVERY };
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (graphs, id) = (self.graphs.clone(), self.run.id.clone());
        let mut ended = std::pin::pin!(outcome_of(&graphs, &id));
        let outcome = loop {
            tokio::select! {
                outcome = &mut ended => break outcome?,
                _ = ticks.tick() => {
                    self.look()?;
                    self.look_at_health();
                }
            }
        };
        while self.look()? == Events::More {}
        let run = self.graphs.run(&id)?.ok_or(RunError::NotFound { run: id.clone() })?;
        Ok((run, outcome))
    }

    /// Takes some of the events that are new.
    fn look(&mut self) -> anyhow::Result<Events> {
        let mut events = Events::All;
        if self.watch.wants_events() {
            for _ in 0..PAGES_AT_ONCE {
                let page = self.graphs.events(&self.run, self.seen, limits::PAGE_ROWS_MAX)?;
                self.take(&page)?;
                events = if page.len() < limits::PAGE_ROWS_MAX { Events::All } else { Events::More };
                if events == Events::All {
                    break;
                }
            }
        }
        if events == Events::All {
            self.tell_waits()?;
        }
        if let Some(screen) = &mut self.watch.screen {
            screen.draw_if_due();
        }
        Ok(events)
    }

    fn take(&mut self, page: &[EventView]) -> anyhow::Result<()> {
        let Some(last) = page.last() else { return Ok(()) };
        self.seen = last.sequence;
        if self.watch.lines {
            let mut lines = Vec::new();
            for event in page {
                serde_json::to_writer(&mut lines, event)?;
                lines.push(b'\n');
            }
            // A page at once: stdout would make a system call of each line.
            let mut out = std::io::stdout().lock();
            out.write_all(&lines)?;
            out.flush()?;
        }
        if let Some(screen) = &mut self.watch.screen {
            for event in page {
                screen.take(&event.event_type, event.data.as_str());
            }
        }
        if let Some(waits) = &mut self.watch.waits {
            for event in page {
                waits.take(&event.event_type, event.data.as_str());
            }
        }
        Ok(())
    }

    /// Says what the run waits for now, since nobody else can see it.
    fn tell_waits(&mut self) -> anyhow::Result<()> {
        let Some(waits) = &mut self.watch.waits else { return Ok(()) };
        for text in waits.news(&self.engine)? {
            if let Some(screen) = &mut self.watch.screen {
                screen.clear();
            }
            note(&text);
        }
        Ok(())
    }

    fn look_at_health(&mut self) {
        if self.health_at.elapsed() < HEALTH_EVERY {
            return;
        }
        self.health_at = Instant::now();
        let health = self.engine.health();
        if health == self.health {
            return;
        }
        if let Some(screen) = &mut self.watch.screen {
            screen.clear();
        }
        match &health {
            Health::Well => note("the store takes writes again; the run goes on"),
            Health::Unwell(reason) => note(reason),
        }
        self.health = health;
    }
}

/// How a run ends. Asked again while the store does not take writes: the question itself is one.
async fn outcome_of(graphs: &Graphs, id: &str) -> Result<Outcome, RunError> {
    loop {
        match graphs.wait(id).await {
            Err(RunError::Request(RequestError::Unavailable(_) | RequestError::Busy(_))) => {
                tokio::time::sleep(ASK_AGAIN).await;
            }
            outcome => return outcome,
        }
    }
}
