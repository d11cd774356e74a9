//! Every route, with its part of `/openapi.json`.
//!
//! Owns the list. A route is added together with its description, so that none is without. Start reading at [`routes`].

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware;
use utoipa::openapi::Components;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::error::Refusal;
use crate::routes::{
    controls, dead_letters, definitions, doctor, events, operations, parts, purge, recover, runs, tasks, why,
};
use crate::{description, guard};

/// The head of the description.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "steadfast",
        description = "Durable actors and graph workflows. Errors are problem documents (RFC 9457) with a stable `type`. \
                       Lists page by cursor. Times are RFC 3339.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    modifiers(&KeyScheme),
    security(("key" = []), ())
)]
struct Head;

/// How a key is shown, where the server has some.
struct KeyScheme;

impl Modify for KeyScheme {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let components = openapi.components.get_or_insert_with(Components::default);
        components.add_security_scheme("key", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    }
}

fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Head::openapi())
        .routes(routes!(definitions::apply_definitions, definitions::list_definitions))
        .routes(routes!(definitions::read_definition))
        .routes(routes!(runs::start_run))
        .routes(routes!(runs::list_runs))
        .routes(routes!(runs::read_run))
        .routes(routes!(parts::list_tokens))
        .routes(routes!(parts::read_context))
        .routes(routes!(parts::list_artifacts))
        .routes(routes!(parts::list_children))
        .routes(routes!(why::explain_run))
        .routes(routes!(controls::cancel_run))
        .routes(routes!(controls::pause_run))
        .routes(routes!(controls::resume_run))
        .routes(routes!(recover::recover_run))
        .routes(routes!(controls::signal_run))
        .routes(routes!(purge::purge_run))
        .routes(routes!(events::list_run_events))
        .routes(routes!(events::list_run_decisions))
        .routes(routes!(events::list_events))
        .routes(routes!(dead_letters::list_dead_letters))
        .routes(routes!(dead_letters::read_dead_letter, dead_letters::delete_dead_letter))
        .routes(routes!(dead_letters::redrive_dead_letter))
        .routes(routes!(tasks::lease_tasks))
        .routes(routes!(tasks::heartbeat_task))
        .routes(routes!(tasks::complete_task))
        .routes(routes!(tasks::fail_task))
        .routes(routes!(doctor::check_runs))
        .routes(routes!(operations::health))
        .routes(routes!(operations::ready))
        .routes(routes!(operations::metrics))
        .routes(routes!(operations::description))
}

/// The description of the API, as JSON.
pub fn openapi() -> Result<String, serde_json::Error> {
    let mut document = serde_json::to_value(routes().into_openapi())?;
    description::complete(&mut document);
    serde_json::to_string_pretty(&document)
}

/// Everything that is served, behind the guard.
pub(crate) fn router(app: App) -> Router {
    let (router, _) = routes().split_for_parts();
    router
        .method_not_allowed_fallback(async |request: Request| {
            Refusal::method_not_allowed(request.method().as_str(), request.uri().path())
        })
        .fallback(async |request: Request| Refusal::path_not_found(request.uri().path()))
        .layer(DefaultBodyLimit::max(app.limits.body_bytes))
        .layer(middleware::from_fn_with_state(app.clone(), guard::watch))
        .with_state(app)
}
