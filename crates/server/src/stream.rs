//! A history as it happens: server-sent events.
//!
//! Owns the form of a stream and its end. Everything sent is read from the store, in pieces and only as fast as the client takes it; the engine only says
//! that there is more. A stream that was cut off goes on behind the last id the client has seen. Start reading at [`Stream::next`].

use std::convert::Infallible;
use std::fmt::Write;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use steadfast::Watching;
use steadfast_api::v1::events::{Event, STREAM};

use crate::app::App;
use crate::error::Refusal;
use crate::history::{History, Piece, Rest};
use crate::limits;
use crate::traffic::Counted;

/// A stream to one client.
pub(crate) struct Stream {
    app: App,
    /// Taken while it is read.
    history: Option<History>,
    watching: Watching,
    _counted: Counted,
}

/// What a look into the store gave.
enum Looked {
    /// Something to send.
    Events(Vec<Event>),
    /// Nothing now.
    Nothing,
    /// Nothing, and never again.
    Over,
}

impl Stream {
    /// Begins to watch, before anything is read: what is added in between is told.
    pub(crate) fn new(app: App, history: History) -> Result<Self, Refusal> {
        let watching = app.engine.watch(history.watched()?);
        let counted = Counted::new(&app.traffic, |traffic| &traffic.streams);
        Ok(Self { app, history: Some(history), watching, _counted: counted })
    }

    /// The answer that sends it.
    pub(crate) fn into_response(self) -> Response {
        let parts = stream::unfold(self, |mut stream| async move {
            let part = stream.next().await?;
            Some((Ok::<_, Infallible>(part), stream))
        });
        let headers = [(CONTENT_TYPE, STREAM), (CACHE_CONTROL, "no-store")];
        (headers, Body::from_stream(parts)).into_response()
    }

    /// The next part, as soon as there is one; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        // Also between two parts of a long history: a stop does not wait for its end.
        while !self.app.is_stopping() {
            let looked = match self.look().await {
                Ok(looked) => looked,
                // Told in the log already. The client comes again, with the last id it has seen.
                Err(_) => return None,
            };
            match looked {
                Looked::Events(events) => return written(&events),
                Looked::Over => return None,
                Looked::Nothing => {}
            }
            let app = self.app.clone();
            tokio::select! {
                has_grown = self.watching.has_grown() => if !has_grown { return None },
                () = app.stopping() => return None,
                () = tokio::time::sleep(limits::KEEP_ALIVE) => return Some(Bytes::from_static(b": still here\n\n")),
            }
        }
        None
    }

    async fn look(&mut self) -> Result<Looked, Refusal> {
        let Some(mut history) = self.history.take() else { return Ok(Looked::Over) };
        let read = self.app.read(move |graphs| {
            loop {
                let Piece { mut events, mut rest } = history.next(graphs, limits::STREAM_ROWS, |_| true)?;
                let mut is_over = false;
                if events.is_empty() && rest == Rest::Nothing {
                    // Then read once more: between the reading and the asking its last events may have come.
                    is_over = history.is_over(graphs)?;
                    if is_over {
                        Piece { events, rest } = history.next(graphs, limits::STREAM_ROWS, |_| true)?;
                    }
                }
                let looked = match (events.is_empty(), rest) {
                    (false, _) => Looked::Events(events),
                    (true, Rest::Perhaps) => continue,
                    (true, Rest::Nothing) if is_over => Looked::Over,
                    (true, Rest::Nothing) => Looked::Nothing,
                };
                return Ok::<_, Refusal>((history, looked));
            }
        });
        let (history, looked) = read.await?;
        self.history = Some(history);
        Ok(looked)
    }
}

/// Events as a stream has them.
fn written(events: &[Event]) -> Option<Bytes> {
    let mut text = String::new();
    for event in events {
        let id = event.place.clone().unwrap_or_else(|| event.sequence.to_string());
        // Line ends in JSON are outside of its texts, where they mean as much as spaces. In a stream they would end the field.
        let data = serde_json::to_string(event).ok()?.replace(['\r', '\n'], " ");
        write!(text, "id: {id}\nevent: {}\ndata: {data}\n\n", event.event_type).ok()?;
    }
    Some(text.into())
}
