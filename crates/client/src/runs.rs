//! Runs: started, listed, read, told.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use steadfast_api::v1::Value;
use steadfast_api::v1::runs::{
    CANCEL, CHILDREN, Control as Told, Controlled, IDEMPOTENCY_KEY, ListParameters, PAUSE, PageParameters, RESUME, RUN,
    RUNS, Run, Runs, SIGNAL, StartRun, TOKENS, Tokens, WORKFLOW_RUNS,
};

use crate::connection::{Call, Client, JSON, Repeat, with_query};
use crate::error::Error;

/// What a start came to.
#[derive(Debug, Clone)]
pub struct Started {
    /// The run.
    pub run: Run,
    /// Whether this start began it; otherwise it was there already.
    pub is_new: bool,
}

/// What a run can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// To end.
    Cancel,
    /// To begin nothing new.
    Pause,
    /// To go on.
    Resume,
}

impl Client {
    /// Starts a run of `workflow`, which is `name` or `name@3`. `waits` is how long `start.wait` lets the server take. With an id the start is repeated when
    /// the connection breaks.
    pub async fn start(&self, workflow: &str, start: &StartRun, waits: Duration) -> Result<Started, Error> {
        let url = self.path(WORKFLOW_RUNS, &[workflow])?;
        let repeat = if start.id.is_some() { Repeat::Harmless } else { Repeat::Refused };
        let (status, bytes) = self.answer(Call { wait: waits, ..Call::post(url, start, repeat)? }).await?;
        Ok(Started { run: self.decoded(&bytes)?, is_new: status == StatusCode::CREATED })
    }

    /// A run.
    pub async fn run(&self, id: &str) -> Result<Run, Error> {
        self.ask(Call::get(self.path(RUN, &[id])?)).await
    }

    /// A part of the list of runs.
    pub async fn runs(&self, wanted: &ListParameters) -> Result<Runs, Error> {
        self.ask(Call::get(with_query(self.path(RUNS, &[])?, wanted)?)).await
    }

    /// A part of the tokens of a run.
    pub async fn tokens(&self, id: &str, page: &PageParameters) -> Result<Tokens, Error> {
        self.ask(Call::get(with_query(self.path(TOKENS, &[id])?, page)?)).await
    }

    /// A part of the runs that a run has started.
    pub async fn children(&self, id: &str, page: &PageParameters) -> Result<Runs, Error> {
        self.ask(Call::get(with_query(self.path(CHILDREN, &[id])?, page)?)).await
    }

    /// Tells a run something. The same once more does no more.
    pub async fn control(&self, id: &str, control: Control, reason: Option<String>) -> Result<Controlled, Error> {
        let path = match control {
            Control::Cancel => CANCEL,
            Control::Pause => PAUSE,
            Control::Resume => RESUME,
        };
        self.ask(Call::post(self.path(path, &[id])?, &Told { reason }, Repeat::Harmless)?).await
    }

    /// Sends a signal. Under a `key` of the caller's it is sent once, and repeated when the connection breaks.
    pub async fn signal(
        &self,
        id: &str,
        name: &str,
        payload: &Value,
        key: Option<String>,
    ) -> Result<Controlled, Error> {
        let url = self.path(SIGNAL, &[id, name])?;
        let repeat = if key.is_some() { Repeat::Harmless } else { Repeat::Refused };
        let header = key.map(|key| (IDEMPOTENCY_KEY, key));
        let body = Some((JSON, payload.get().to_owned()));
        self.ask(Call { method: Method::POST, body, header, repeat, ..Call::get(url) }).await
    }
}
