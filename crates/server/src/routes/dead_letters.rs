//! Dead letters: listed, tried again, thrown away.

use axum::extract::State;
use axum::http::StatusCode;
use steadfast::{DeadLetterId, NotADeadLetterId, RequestError};
use steadfast_api::problem::Problem;
use steadfast_api::v1::dead_letters::{DEAD_LETTER, DEAD_LETTERS, DeadLetter, DeadLetters, REDRIVE};
use steadfast_api::v1::runs::PageParameters;

use super::Answer;
use crate::app::App;
use crate::error::Refusal;
use crate::request::{Named, Parameters, checked_limit, shown, wrong_cursor};
use crate::wire;

/// Inputs that were given up and are kept.
#[utoipa::path(
    get, path = DEAD_LETTERS, tag = "dead letters", params(PageParameters),
    responses((status = 200, body = DeadLetters), (status = 400, body = Problem))
)]
pub(crate) async fn list_dead_letters(
    State(app): State<App>,
    Parameters(PageParameters { limit, cursor }): Parameters<PageParameters>,
) -> Result<Answer<DeadLetters>, Refusal> {
    let limit = checked_limit(limit)?;
    let read = |text: &String| text.parse::<DeadLetterId>().map_err(|_| wrong_cursor("cursor", text));
    let after = cursor.as_ref().map(read).transpose()?;
    let engine = app.engine.clone();
    let found = app.read(move |_| engine.dead_letters(after, limit)).await?;
    let next_cursor = found.last().filter(|_| found.len() == limit).map(|last| last.id.to_string());
    let items: Result<Vec<DeadLetter>, Refusal> = found.into_iter().map(wire::dead_letter).collect();
    Ok(Answer(DeadLetters { items: items?, next_cursor }))
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
        Err(RequestError::Refused(_)) if !exists(app, letter).await? => {
            Err(Refusal::dead_letter_not_found(&letter.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

async fn exists(app: &App, letter: DeadLetterId) -> Result<bool, Refusal> {
    let engine = app.engine.clone();
    app.read(move |_| {
        // Pages until the letter's place: ids are ordered as the list is.
        let mut after = None;
        loop {
            let page = engine.dead_letters(after, crate::limits::PAGE_ROWS_MAX)?;
            if page.iter().any(|found| found.id == letter) {
                return Ok::<_, steadfast::store::StoreError>(true);
            }
            match page.last().filter(|last| last.id < letter) {
                Some(last) => after = Some(last.id),
                None => return Ok(false),
            }
        }
    })
    .await
}
