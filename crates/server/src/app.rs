//! What every route has at hand: the engine, and whether the server stops.
//!
//! Owns the way from async routes to reads that block. Never answers a request.

use std::sync::Arc;

use steadfast::graph::Graphs;
use steadfast::{Engine, Workers};
use tokio::sync::{Semaphore, watch};

use crate::error::Refusal;
use crate::guard::Access;
use crate::limits::Bounds;

/// Shared by all requests. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) graphs: Graphs,
    pub(crate) workers: Workers,
    pub(crate) access: Arc<Access>,
    /// The document at `/openapi.json`.
    pub(crate) openapi: Arc<str>,
    pub(crate) bounds: Bounds,
    pub(crate) phase: watch::Receiver<Phase>,
    /// Permission to be one of those who read.
    pub(crate) reads: Arc<Semaphore>,
}

/// How far the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Serving,
    Stopping,
}

impl App {
    /// Reads from the store, on a thread that may wait for the disk.
    pub(crate) async fn read<T, E>(
        &self,
        read: impl FnOnce(&Graphs) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Refusal>
    where
        T: Send + 'static,
        E: Into<Refusal> + Send + 'static,
    {
        let permit = self.reads.clone().acquire_owned().await.map_err(|closed| Refusal::internal(&closed))?;
        let graphs = self.graphs.clone();
        // Held by the read itself: it goes on when its client has left.
        let reading = move || {
            let _permit = permit;
            read(&graphs)
        };
        match tokio::task::spawn_blocking(reading).await {
            Ok(read) => read.map_err(Into::into),
            Err(fault) => Err(Refusal::internal(&fault)),
        }
    }

    /// Whether the server stops.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.phase.borrow() == Phase::Stopping
    }

    /// Waits until the server stops.
    pub(crate) async fn stopping(&self) {
        // Nobody is left to say so: it has stopped.
        drop(self.phase.clone().wait_for(|phase| *phase == Phase::Stopping).await);
    }
}
