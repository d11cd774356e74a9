//! Events: of a run, of a tree, of everything; in pages, or as they happen.

use axum::extract::State;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use steadfast_api::problem::Problem;
use steadfast_api::v1::events::{
    EVENTS, Event, Events, EventsParameters, LAST_EVENT_ID, RUN_DECISIONS, RUN_EVENTS, RunEventsParameters, STREAM,
};

use super::{Answer, existing};
use crate::app::App;
use crate::error::Refusal;
use crate::history::{History, Piece, Rest};
use crate::request::{Named, Parameters, checked_limit, checked_run_id};
use crate::stream::Stream;

/// How the types of events begin that tell a decision.
const DECISION: &str = "decision.";

/// The history of a run, or of the tree it is part of; as JSON, or live with `Accept: text/event-stream`.
///
/// A stream sends what there is, then what is added, and ends with the run. After it was cut off it goes on behind `Last-Event-ID`;
/// 204 says that there is nothing more to come.
#[utoipa::path(
    get, path = RUN_EVENTS, tag = "events",
    params(("id" = String, Path), RunEventsParameters, ("Last-Event-ID" = Option<String>, Header)),
    responses((status = 200, content((Events = "application/json"), (String = "text/event-stream"))), (status = 404, body = Problem))
)]
pub(crate) async fn list_run_events(
    State(app): State<App>,
    Named(id): Named<String>,
    Parameters(parameters): Parameters<RunEventsParameters>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    checked_run_id(&id)?;
    let RunEventsParameters { after, limit, tree } = parameters;
    let limit = checked_limit(limit)?;
    let run = app.read(move |graphs| existing(graphs, &id)).await?;
    let seen = last_seen(&headers)?;
    let after = seen.or(after);
    let history = match tree {
        true => History::of_many(Some(run.root), after.as_deref())?,
        false => History::of_run(run, after.as_deref())?,
    };
    answered(app, history, limit, &headers).await
}

/// Those events of a run that tell a decision. There are some where the run is traced.
#[utoipa::path(
    get, path = RUN_DECISIONS, tag = "events", params(("id" = String, Path), EventsParameters),
    responses((status = 200, body = Events), (status = 404, body = Problem))
)]
pub(crate) async fn list_run_decisions(
    State(app): State<App>,
    Named(id): Named<String>,
    Parameters(EventsParameters { after, limit }): Parameters<EventsParameters>,
) -> Result<Answer<Events>, Refusal> {
    checked_run_id(&id)?;
    let limit = checked_limit(limit)?;
    let run = app.read(move |graphs| existing(graphs, &id)).await?;
    let history = History::of_run(run, after.as_deref())?;
    page(&app, history, limit, |event| event.event_type.starts_with(DECISION)).await.map(Answer)
}

/// The history of everything, in the order in which it was committed; as JSON, or live with `Accept: text/event-stream`.
#[utoipa::path(
    get, path = EVENTS, tag = "events",
    params(EventsParameters, ("Last-Event-ID" = Option<String>, Header)),
    responses((status = 200, content((Events = "application/json"), (String = "text/event-stream"))), (status = 400, body = Problem))
)]
pub(crate) async fn list_events(
    State(app): State<App>,
    Parameters(EventsParameters { after, limit }): Parameters<EventsParameters>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let limit = checked_limit(limit)?;
    let after = last_seen(&headers)?.or(after);
    answered(app, History::of_many(None, after.as_deref())?, limit, &headers).await
}

async fn answered(app: App, history: History, limit: usize, headers: &HeaderMap) -> Result<Response, Refusal> {
    if !wants_stream(headers) {
        return page(&app, history, limit, |_| true).await.map(|events| Answer(events).into_response());
    }
    // A browser asks again when a stream has ended, until it is told that there is nothing more.
    if headers.contains_key(LAST_EVENT_ID) {
        let (history, is_done) = is_done(&app, history).await?;
        return match is_done {
            true => Ok(StatusCode::NO_CONTENT.into_response()),
            false => Stream::new(app, history).map(Stream::into_response),
        };
    }
    Stream::new(app, history).map(Stream::into_response)
}

async fn page(app: &App, mut history: History, limit: usize, wanted: fn(&Event) -> bool) -> Result<Events, Refusal> {
    let read = app.read(move |graphs| {
        let piece = history.next(graphs, limit, wanted)?;
        Ok::<_, Refusal>((piece, history.place()))
    });
    let (Piece { events: items, rest }, place) = read.await?;
    let next_cursor = match rest {
        Rest::Perhaps => Some(place),
        Rest::Nothing => None,
    };
    Ok(Events { items, next_cursor })
}

/// Whether all was seen, and nothing comes any more.
async fn is_done(app: &App, history: History) -> Result<(History, bool), Refusal> {
    app.read(move |graphs| {
        let is_done = history.is_over(graphs)? && history.has_nothing_more(graphs)?;
        Ok::<_, Refusal>((history, is_done))
    })
    .await
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = accepted.flat_map(|text| text.split(',')).filter_map(|part| part.split(';').next());
    types.any(|media_type| media_type.trim().eq_ignore_ascii_case(STREAM))
}

fn last_seen(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(seen) = headers.get(LAST_EVENT_ID).filter(|seen| !seen.is_empty()) else { return Ok(None) };
    let text = seen.to_str().map_err(|_| Refusal::bad_request("the header `Last-Event-ID` is not plain text"))?;
    Ok(Some(text.to_owned()))
}
