//! The routes, one file for each noun, as `steadfast_api::v1` has them. What a run is made of is in [`parts`], what it is told in [`controls`].
//!
//! Each reads what was asked, asks the engine, and writes the answer. None decides anything.

pub(crate) mod controls;
pub(crate) mod dead_letters;
pub(crate) mod definitions;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod operations;
pub(crate) mod parts;
pub(crate) mod purge;
pub(crate) mod recover;
pub(crate) mod runs;
pub(crate) mod tasks;
pub(crate) mod why;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use steadfast::graph::{Graphs, RunError};
use steadfast_core::graph::view::RunView;

use crate::error::Refusal;

/// An answer in JSON.
pub(crate) struct Answer<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(text) => ([(CONTENT_TYPE, "application/json")], Body::from(text)).into_response(),
            Err(error) => Refusal::internal(&error).into_response(),
        }
    }
}

/// A run that must be there.
fn existing(graphs: &Graphs, run: &str) -> Result<RunView, RunError> {
    graphs.run(run)?.ok_or_else(|| RunError::NotFound { run: run.to_owned() })
}
