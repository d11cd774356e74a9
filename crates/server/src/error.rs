//! How an error looks from outside: the one place with status codes.
//!
//! Owns which occasion is which problem. What is no concern of a client's is logged here, once, and not told. Start reading at [`Refusal`].

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use steadfast::RequestError;
use steadfast::graph::RunError;
use steadfast::store::StoreError;
use steadfast::tasks::DeskError;
use steadfast_api::problem::{self, DefinitionProblem, Kind, Problem, Violation};

use crate::request::shown;

/// Why a request was not done.
#[derive(Debug)]
pub(crate) struct Refusal(Box<Problem>);

impl Refusal {
    fn new(status: StatusCode, kind: Kind, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem {
            problem_type: kind.problem_type.to_owned(),
            title: kind.title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            problems: Vec::new(),
            violations: Vec::new(),
        }))
    }

    /// What the client is told.
    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, problem::BAD_REQUEST, detail)
    }

    pub(crate) fn invalid_body(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, problem::INVALID_BODY, detail)
    }

    pub(crate) fn invalid_parameter(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, problem::INVALID_PARAMETER, detail)
    }

    pub(crate) fn invalid_id(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, problem::INVALID_ID, detail)
    }

    pub(crate) fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, problem::UNAUTHORIZED, detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, problem::FORBIDDEN, detail)
    }

    pub(crate) fn path_not_found(path: &str) -> Self {
        let detail = format!("there is nothing at `{}`; `/openapi.json` lists every path", shown(path));
        Self::new(StatusCode::NOT_FOUND, problem::PATH_NOT_FOUND, detail)
    }

    pub(crate) fn run_not_found(run: &str) -> Self {
        let detail = format!("there is no run `{run}`; `GET /v1/runs` lists those there are");
        Self::new(StatusCode::NOT_FOUND, problem::RUN_NOT_FOUND, detail)
    }

    pub(crate) fn definition_not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, problem::DEFINITION_NOT_FOUND, detail)
    }

    pub(crate) fn dead_letter_not_found(id: &str) -> Self {
        let detail = format!("there is no dead letter `{id}`; it may have been redriven or deleted already");
        Self::new(StatusCode::NOT_FOUND, problem::DEAD_LETTER_NOT_FOUND, detail)
    }

    pub(crate) fn method_not_allowed(method: &str, path: &str) -> Self {
        let detail = format!("`{path}` does not have the method {}; `/openapi.json` lists those it has", shown(method));
        Self::new(StatusCode::METHOD_NOT_ALLOWED, problem::METHOD_NOT_ALLOWED, detail)
    }

    pub(crate) fn timeout(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, problem::TIMEOUT, detail)
    }

    pub(crate) fn run_ended(run: &str, status: &str) -> Self {
        let detail = format!("run `{run}` is {status}: nothing happens to it any more; start another one");
        Self::new(StatusCode::CONFLICT, problem::RUN_ENDED, detail)
    }

    pub(crate) fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, problem::TOO_LARGE, detail)
    }

    pub(crate) fn unsupported_media_type(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, problem::UNSUPPORTED_MEDIA_TYPE, detail)
    }

    pub(crate) fn invalid_definitions(problems: Vec<DefinitionProblem>) -> Self {
        let detail = "nothing was applied; mend every problem whose severity is `error`";
        let refusal = Self::new(StatusCode::UNPROCESSABLE_ENTITY, problem::INVALID_DEFINITIONS, detail);
        Self(Box::new(Problem { problems, ..*refusal.0 }))
    }

    pub(crate) fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, problem::UNAVAILABLE, detail)
    }

    /// A fault of ours. The client learns only that there is one.
    pub(crate) fn internal(fault: &dyn std::fmt::Display) -> Self {
        tracing::error!("a request was answered with 500: {fault}");
        let detail = "this is no fault of the request; the server's log says more";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, problem::INTERNAL, detail)
    }
}

impl From<RunError> for Refusal {
    fn from(error: RunError) -> Self {
        let told = error.to_string();
        match error {
            RunError::UnknownWorkflow { .. } => Self::new(StatusCode::NOT_FOUND, problem::WORKFLOW_NOT_FOUND, told),
            RunError::UnknownReference { .. } => {
                let detail = format!("{told}; apply it with `PUT /v1/definitions`");
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, problem::MISSING_DEFINITION, detail)
            }
            RunError::NotFound { run } => Self::run_not_found(&run),
            RunError::InvalidInput { violations, .. } => {
                let refusal = Self::new(StatusCode::UNPROCESSABLE_ENTITY, problem::INVALID_INPUT, told);
                let wire = |found: steadfast_core::schema::Violation| Violation {
                    pointer: found.pointer,
                    message: found.message,
                };
                Self(Box::new(Problem { violations: violations.into_iter().map(wire).collect(), ..*refusal.0 }))
            }
            RunError::Conflict { .. } => Self::new(StatusCode::CONFLICT, problem::RUN_EXISTS, told),
            RunError::NotOver { .. } | RunError::NotATop { .. } => {
                Self::new(StatusCode::CONFLICT, problem::RUN_NOT_OVER, told)
            }
            RunError::InvalidId { .. } => Self::invalid_id(told),
            RunError::Request(error) => error.into(),
            RunError::Store(error) => error.into(),
            RunError::Unreadable { message } => Self::internal(&message),
        }
    }
}

impl From<DeskError> for Refusal {
    fn from(error: DeskError) -> Self {
        let told = error.to_string();
        match error {
            DeskError::LeaseLost(_) => Self::new(StatusCode::CONFLICT, problem::LEASE_LOST, told),
            DeskError::Request(error) => error.into(),
            DeskError::Store(error) => error.into(),
        }
    }
}

impl From<RequestError> for Refusal {
    fn from(error: RequestError) -> Self {
        let told = error.to_string();
        match error {
            RequestError::UnknownKind(_) => Self::internal(&told),
            RequestError::Refused(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, problem::REFUSED, told),
            RequestError::Unavailable(_) | RequestError::Busy(_) | RequestError::Stopped => Self::unavailable(told),
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        tracing::warn!("a request was answered with 503: {error}");
        Self::unavailable("the store does not answer now; ask again later, and see the server's log")
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&*self.0).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(problem::MEDIA_TYPE));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
