//! Dead letters: listed, tried again, thrown away.

use axum::extract::State;
use axum::http::StatusCode;
use steadfast::{DeadLetterId, NotADeadLetterId, RequestError, StoredDeadLetter};
use steadfast_api::problem::Problem;
use steadfast_api::v1::dead_letters::{DEAD_LETTER, DEAD_LETTERS, DeadLetter, DeadLetters, ListParameters, REDRIVE};
use steadfast_core::graph::KIND;
use steadfast_core::ids::ActorId;

use super::Answer;
use crate::app::App;
use crate::error::Refusal;
use crate::request::{Named, Parameters, checked_limit, shown, wrong_cursor};
use crate::wire;

/// Inputs that were given up and are kept; with `source` those of one actor or run, for which letters of the same shard are looked through.
#[utoipa::path(
    get, path = DEAD_LETTERS, tag = "dead letters", params(ListParameters),
    responses((status = 200, body = DeadLetters), (status = 400, body = Problem))
)]
pub(crate) async fn list_dead_letters(
    State(app): State<App>,
    Parameters(ListParameters { source, limit, cursor }): Parameters<ListParameters>,
) -> Result<Answer<DeadLetters>, Refusal> {
    let limit = checked_limit(limit)?;
    let read = |text: &String| text.parse::<DeadLetterId>().map_err(|_| wrong_cursor("cursor", text));
    let after = cursor.as_ref().map(read).transpose()?;
    let source = source.as_deref().map(actor).transpose()?;
    let engine = app.engine.clone();
    let read = app.read(move |_| match source {
        Some(actor) => engine.dead_letters_of(&actor, after, limit),
        None => engine.dead_letters(after, limit).map(|found| {
            let next = found.last().filter(|_| found.len() == limit).map(|last| last.id);
            (found, next)
        }),
    });
    let (found, next) = read.await?;
    let items: Result<Vec<DeadLetter>, Refusal> = found.into_iter().map(wire::dead_letter).collect();
    Ok(Answer(DeadLetters { items: items?, next_cursor: next.map(|next| next.to_string()) }))
}

/// The actor that is named, or the run of this id.
fn actor(source: &str) -> Result<ActorId, Refusal> {
    let named = if source.contains(':') { ActorId::parse(source) } else { ActorId::new(KIND, source) };
    named.map_err(|error| Refusal::invalid_parameter(format!("`source` names no actor and no run: {error}")))
}

/// One of them.
#[utoipa::path(
    get, path = DEAD_LETTER, tag = "dead letters", params(("id" = String, Path)),
    responses((status = 200, body = DeadLetter), (status = 404, body = Problem))
)]
pub(crate) async fn read_dead_letter(
    State(app): State<App>,
    Named(id): Named<String>,
) -> Result<Answer<DeadLetter>, Refusal> {
    let letter = letter(&id)?;
    let found = stored(&app, letter).await?.ok_or_else(|| Refusal::dead_letter_not_found(&letter.to_string()))?;
    wire::dead_letter(found).map(Answer)
}

/// Gives a dead letter's input to its actor once more.
#[utoipa::path(
    post, path = REDRIVE, tag = "dead letters", params(("id" = String, Path)),
    responses((status = 204, description = "it is under way"), (status = 404, body = Problem))
)]
pub(crate) async fn redrive_dead_letter(
    State(app): State<App>,
    Named(id): Named<String>,
) -> Result<StatusCode, Refusal> {
    let letter = letter(&id)?;
    let redriven = app.engine.redrive(letter).await;
    done(&app, letter, redriven).await
}

/// Throws a dead letter away.
#[utoipa::path(
    delete, path = DEAD_LETTER, tag = "dead letters", params(("id" = String, Path)),
    responses((status = 204, description = "it is gone"), (status = 404, body = Problem))
)]
pub(crate) async fn delete_dead_letter(
    State(app): State<App>,
    Named(id): Named<String>,
) -> Result<StatusCode, Refusal> {
    let letter = letter(&id)?;
    let discarded = app.engine.discard(letter).await;
    done(&app, letter, discarded).await
}

fn letter(id: &str) -> Result<DeadLetterId, Refusal> {
    shown(id).parse().map_err(|error: NotADeadLetterId| Refusal::invalid_id(error.to_string()))
}

async fn done(app: &App, letter: DeadLetterId, done: Result<(), RequestError>) -> Result<StatusCode, Refusal> {
    match done {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        // Refused because it is not there, or because what it holds cannot be read.
        Err(RequestError::Refused(_)) if stored(app, letter).await?.is_none() => {
            Err(Refusal::dead_letter_not_found(&letter.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

async fn stored(app: &App, letter: DeadLetterId) -> Result<Option<StoredDeadLetter>, Refusal> {
    let engine = app.engine.clone();
    app.read(move |_| engine.dead_letter(letter)).await
}
