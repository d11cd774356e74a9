//! Definitions: applied, listed, read.

use axum::extract::State;
use steadfast::graph::Graphs;
use steadfast_api::problem::Problem;
use steadfast_api::v1::definitions::{
    Applied, AppliedDefinition, AppliedStatus, ApplyParameters, DEFINITION, DEFINITIONS, Definition, Definitions,
    ListParameters,
};
use steadfast_core::definition::workflow::Reference;
use steadfast_core::definition::{self, DefinitionKind, Parsed, Severity, check_references};
use steadfast_core::expression::Value;

use super::Answer;
use crate::app::App;
use crate::error::Refusal;
use crate::request::{Body, Named, Parameters, checked_limit, shown, wrong_cursor};
use crate::wire;

/// How the body is called in problems.
const BODY: &str = "body";

/// Stores definitions, each as a new version if it differs from its newest; all of them or none.
#[utoipa::path(
    put, path = DEFINITIONS, params(ApplyParameters), tag = "definitions",
    request_body(content = String, content_type = "application/yaml", description = "YAML or JSON, any number of documents"),
    responses((status = 200, body = Applied), (status = 422, body = Problem, description = "every problem found"))
)]
pub(crate) async fn apply_definitions(
    State(app): State<App>,
    Parameters(parameters): Parameters<ApplyParameters>,
    body: Body,
) -> Result<Answer<Applied>, Refusal> {
    let text = body.definitions()?;
    let (definitions, problems) = app.read(move |graphs| checked(graphs, &text)).await?;
    let warnings = problems.into_iter().map(wire::problem).collect();
    let items = if parameters.dry_run {
        app.read(move |graphs| definitions.iter().map(|parsed| foreseen(graphs, parsed)).collect()).await?
    } else {
        app.graphs.apply(&definitions).await?.into_iter().map(wire::applied).collect()
    };
    Ok(Answer(Applied { items, warnings }))
}

/// The definitions of a text, if all are right, with what is to be warned of.
fn checked(graphs: &Graphs, text: &str) -> Result<(Vec<Parsed>, Vec<definition::Problem>), Refusal> {
    let mut reads = [definition::read(BODY, text)];
    let failed = std::cell::Cell::new(None);
    check_references(&mut reads, &|kind: DefinitionKind, reference: &Reference| match graphs
        .newest(kind, &reference.name)
    {
        Ok(Some(newest)) => reference.version.is_none_or(|version| (1..=newest).contains(&version)),
        Ok(None) => false,
        Err(error) => {
            failed.set(Some(error));
            true
        }
    });
    if let Some(error) = failed.take() {
        return Err(error.into());
    }
    let [read] = reads;
    if read.problems.iter().any(|problem| problem.severity == Severity::Error) {
        return Err(Refusal::invalid_definitions(read.problems.into_iter().map(wire::problem).collect()));
    }
    Ok((read.definitions, read.problems))
}

/// What applying would do.
fn foreseen(graphs: &Graphs, parsed: &Parsed) -> Result<AppliedDefinition, Refusal> {
    let stored = graphs.definition(parsed.kind, &parsed.name, None)?;
    let is_same = stored
        .as_ref()
        .and_then(|stored| stored.document.as_ref())
        .is_some_and(|document| Value::from_json(document).is_ok_and(|document| document == parsed.document));
    let newest = stored.map_or(0, |stored| stored.version);
    let (version, status) = match is_same {
        true => (newest, AppliedStatus::Unchanged),
        false => (newest.saturating_add(1), AppliedStatus::Created),
    };
    Ok(AppliedDefinition { kind: parsed.kind.name().to_owned(), name: parsed.name.clone(), version, status })
}

/// The definitions there are, each in its newest version, by kind and name.
#[utoipa::path(
    get, path = DEFINITIONS, params(ListParameters), tag = "definitions",
    responses((status = 200, body = Definitions), (status = 400, body = Problem))
)]
pub(crate) async fn list_definitions(
    State(app): State<App>,
    Parameters(parameters): Parameters<ListParameters>,
) -> Result<Answer<Definitions>, Refusal> {
    let ListParameters { kind, limit, cursor } = parameters;
    let limit = checked_limit(limit)?;
    let kind = kind.as_deref().map(kind_of).transpose()?;
    let after = cursor.map(|cursor| read_cursor(&cursor)).transpose()?;
    let read = app.read(move |graphs| {
        let after = after.as_ref().map(|(kind, name)| (*kind, &**name));
        graphs.definitions(kind, after, limit)
    });
    let found = read.await?;
    let last = found.last().filter(|_| found.len() == limit);
    let next_cursor = last.map(|last| format!("{}.{}", last.kind.name(), last.name));
    let items: Result<Vec<Definition>, Refusal> = found.iter().map(wire::definition).collect();
    Ok(Answer(Definitions { items: items?, next_cursor }))
}

/// A definition with its document: in its newest version, or as `name@3`.
#[utoipa::path(
    get, path = DEFINITION, tag = "definitions",
    params(("kind" = String, Path, description = "`workflow` or `task`"), ("name" = String, Path, description = "`name`, or `name@3`")),
    responses((status = 200, body = Definition), (status = 404, body = Problem))
)]
pub(crate) async fn read_definition(
    State(app): State<App>,
    Named((kind, named)): Named<(String, String)>,
) -> Result<Answer<Definition>, Refusal> {
    let missing = || {
        let detail = format!("there is no {kind} `{}`; `GET /v1/definitions` lists those there are", shown(&named));
        Refusal::definition_not_found(detail)
    };
    let kind = kind_of(&kind)?;
    let (name, version) = match named.split_once('@') {
        Some((name, version)) => (name.to_owned(), Some(version.parse::<u32>().map_err(|_| missing())?)),
        None => (named.clone(), None),
    };
    // No definition has another name, and a key of the store is not to be made of one.
    if !is_name(&name) {
        return Err(missing());
    }
    let found = app.read(move |graphs| graphs.definition(kind, &name, version)).await?;
    found.as_ref().ok_or_else(missing).and_then(wire::definition).map(Answer)
}

fn kind_of(text: &str) -> Result<DefinitionKind, Refusal> {
    DefinitionKind::named(text).ok_or_else(|| {
        let shown = shown(text);
        Refusal::invalid_parameter(format!("`{shown}` is not a kind of definition: there are `workflow` and `task`"))
    })
}

fn read_cursor(text: &str) -> Result<(DefinitionKind, String), Refusal> {
    let parts = text.split_once('.').and_then(|(kind, name)| Some((DefinitionKind::named(kind)?, name)));
    let (kind, name) = parts.filter(|(_, name)| is_name(name)).ok_or_else(|| wrong_cursor("cursor", text))?;
    Ok((kind, name.to_owned()))
}

fn is_name(text: &str) -> bool {
    let is_short = (1..=steadfast_core::limits::NAME_BYTES_MAX).contains(&text.len());
    is_short && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}
