//! What a run is made of: tokens, context, artifacts, children.

use axum::extract::State;
use steadfast_api::problem::Problem;
use steadfast_api::v1::runs::{
    ARTIFACTS, Artifact, Artifacts, CHILDREN, CONTEXT, Context, PageParameters, Runs, TOKENS, Token, Tokens,
};
use steadfast_core::graph::view::TokenPlace;
use steadfast_store::rows::RunFilter;

use super::runs::{Page, runs};
use super::{Answer, existing};
use crate::app::App;
use crate::error::Refusal;
use crate::request::{Named, Parameters, checked_limit, checked_run_id, wrong_cursor};
use crate::wire;

/// The tokens of a run, in the order in which they were made; those that are or were at joins behind all others.
///
/// A token whose task runs in the server, or is lent to a worker, is `executing`.
#[utoipa::path(
    get, path = TOKENS, tag = "runs", params(("id" = String, Path), PageParameters),
    responses((status = 200, body = Tokens), (status = 404, body = Problem))
)]
pub(crate) async fn list_tokens(
    State(app): State<App>,
    Named(id): Named<String>,
    Parameters(PageParameters { limit, cursor }): Parameters<PageParameters>,
) -> Result<Answer<Tokens>, Refusal> {
    checked_run_id(&id)?;
    let limit = checked_limit(limit)?;
    let read = |text: &String| text.parse::<TokenPlace>().map_err(|()| wrong_cursor("cursor", text));
    let from = cursor.as_ref().map(read).transpose()?.unwrap_or_default();
    let read = app.read(move |graphs| existing(graphs, &id).and_then(|run| graphs.tokens_page(&run.id, from, limit)));
    let (tokens, next) = read.await?;
    let items: Result<Vec<Token>, Refusal> = tokens.into_iter().map(wire::token).collect();
    let (items, next_cursor) = (items?, next.map(|next| next.to_string()));
    Ok(Answer(Tokens { items, next_cursor }))
}

/// The state and the output of a run, outside of all branches.
#[utoipa::path(
    get, path = CONTEXT, tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = Context), (status = 404, body = Problem))
)]
pub(crate) async fn read_context(State(app): State<App>, Named(id): Named<String>) -> Result<Answer<Context>, Refusal> {
    checked_run_id(&id)?;
    let context = app.read(move |graphs| existing(graphs, &id).and_then(|run| graphs.context(&run.id))).await?;
    let fields = context.into_iter().map(|(name, json)| Ok((name, wire::value(&json)?)));
    Ok(Answer(Context(fields.collect::<Result<_, Refusal>>()?)))
}

/// The artifacts of a run.
#[utoipa::path(
    get, path = ARTIFACTS, tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = Artifacts), (status = 404, body = Problem))
)]
pub(crate) async fn list_artifacts(
    State(app): State<App>,
    Named(id): Named<String>,
) -> Result<Answer<Artifacts>, Refusal> {
    checked_run_id(&id)?;
    let artifacts = app.read(move |graphs| existing(graphs, &id).and_then(|run| graphs.artifacts(&run.id))).await?;
    let items: Result<Vec<Artifact>, Refusal> = artifacts.into_iter().map(wire::artifact).collect();
    Ok(Answer(Artifacts { items: items?, next_cursor: None }))
}

/// The runs that a run has started, the newest first.
#[utoipa::path(
    get, path = CHILDREN, tag = "runs", params(("id" = String, Path), PageParameters),
    responses((status = 200, body = Runs), (status = 404, body = Problem))
)]
pub(crate) async fn list_children(
    State(app): State<App>,
    Named(id): Named<String>,
    Parameters(PageParameters { limit, cursor }): Parameters<PageParameters>,
) -> Result<Answer<Runs>, Refusal> {
    checked_run_id(&id)?;
    let page = Page::new(limit, cursor.as_deref())?;
    let read = app.read(move |graphs| {
        let run = existing(graphs, &id)?;
        let filter = RunFilter { parent: Some(&run.id), ..RunFilter::default() };
        graphs.list(filter, page.before, page.limit)
    });
    read.await.map(runs).map(Answer)
}
