//! Events: in pages, or as they happen.
//!
//! Owns the going on of a stream that was cut off: behind the last event that was seen, each event once and in order. Start reading at [`Events::next`].

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::{Response, StatusCode};
use steadfast_api::v1::events::{Event, Events as Page, LAST_EVENT_ID, RUN_EVENTS, RunEventsParameters, STREAM};
use tokio::time::Instant;

use crate::connection::{Call, Client, Repeat, with_query};
use crate::error::Error;
use crate::lines::{EVENT_BYTES_MAX, Lines, Sent};

/// Whose events are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Those of the run.
    Run,
    /// Those of all runs of the tree it is part of.
    Tree,
}

/// A history as it happens.
pub struct Events {
    client: Client,
    run: String,
    reading: Reading,
    /// The place of the last event that was given out or is about to be.
    seen: String,
    connection: Option<Connection>,
    /// Events that have come and were not given out.
    ready: VecDeque<Event>,
    has_connected: bool,
    /// When something came last.
    heard_at: Instant,
    /// Before the next try.
    pause: Duration,
}

struct Connection {
    response: Response,
    lines: Lines,
}

/// A server is not silent for longer: it shows that it is alive every fifteen seconds.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// How long a server that was there may be away before it is given up: it may be starting again.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// Between tries to reach it: at first, which comes after one at once, and at most.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

impl Client {
    /// A part of the history of a run, or of its tree.
    pub async fn events(&self, run: &str, wanted: &RunEventsParameters) -> Result<Page, Error> {
        self.ask(Call::get(with_query(self.path(RUN_EVENTS, &[run])?, wanted)?)).await
    }

    /// The history of a run after a place, or from its beginning; then what is added to it.
    #[must_use]
    pub fn follow(&self, run: &str, reading: Reading, after: Option<String>) -> Events {
        let beginning = match reading {
            Reading::Run => "0",
            Reading::Tree => "0.0",
        };
        Events {
            client: self.clone(),
            run: run.to_owned(),
            reading,
            seen: after.unwrap_or_else(|| beginning.to_owned()),
            connection: None,
            ready: VecDeque::new(),
            has_connected: false,
            heard_at: Instant::now(),
            pause: Duration::ZERO,
        }
    }
}

impl Events {
    /// The next event, as soon as there is one; `None` when there will be none. Nothing is lost when the call is dropped.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let gone_on = match &mut self.connection {
                None => self.connect().await,
                Some(_) => self.read().await,
            };
            match gone_on {
                Ok(GoneOn::Yes) => {}
                Ok(GoneOn::Over) => return Ok(None),
                Err(error) => self.pause_or_give_up(error).await?,
            }
        }
    }

    async fn connect(&mut self) -> Result<GoneOn, Error> {
        let parameters = RunEventsParameters { tree: self.reading == Reading::Tree, ..RunEventsParameters::default() };
        let url = with_query(self.client.path(RUN_EVENTS, &[&self.run])?, &parameters)?;
        let call = Call { header: Some((LAST_EVENT_ID, self.seen.clone())), ..Call::get(url) };
        let response = self.client.begin(&call, STREAM).await?;
        self.has_connected = true;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(GoneOn::Over);
        }
        self.connection = Some(Connection { response, lines: Lines::default() });
        Ok(GoneOn::Yes)
    }

    async fn read(&mut self) -> Result<GoneOn, Error> {
        let Some(Connection { response, lines }) = &mut self.connection else { return Ok(GoneOn::Yes) };
        let lost = |reason: &str| self.client.lost_because(reason.to_owned(), Repeat::Harmless);
        let part = match tokio::time::timeout(SILENCE_MAX, response.chunk()).await {
            Ok(Ok(Some(part))) => part,
            // At the end of the history, or because the server stops. Asked again, it says which.
            Ok(Ok(None)) => return Err(lost("the stream has ended")),
            Ok(Err(error)) => return Err(self.client.lost(&error, Repeat::Harmless)),
            Err(_) => return Err(lost("nothing came for a while")),
        };
        let Ok(events) = lines.take(&part) else { return Err(Error::TooLarge { bytes_max: EVENT_BYTES_MAX }) };
        (self.heard_at, self.pause) = (Instant::now(), Duration::ZERO);
        for Sent { id, data } in events {
            self.ready.push_back(self.client.decoded(data.as_bytes())?);
            self.seen = id.unwrap_or_else(|| self.seen.clone());
        }
        Ok(GoneOn::Yes)
    }

    /// Waits a while before the next try, if there is to be one.
    async fn pause_or_give_up(&mut self, error: Error) -> Result<(), Error> {
        self.connection = None;
        if !self.has_connected || !error.may_pass() || self.heard_at.elapsed() > AWAY_MAX {
            return Err(error);
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).clamp(PAUSE_FIRST, PAUSE_MAX);
        Ok(())
    }
}

/// What came of a step.
enum GoneOn {
    Yes,
    Over,
}
