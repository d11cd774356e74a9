//! What goes in and out: requests by route and answer, connections and streams.
//!
//! Owns the counts. As many as there are routes and kinds of answers, whatever is asked.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;

/// Counts of a running server.
#[derive(Default)]
pub(crate) struct Traffic {
    /// By route, as it is in `/openapi.json`, and the first digit of the status.
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    pub(crate) connections: AtomicU64,
    pub(crate) streams: AtomicU64,
}

/// The route of what has none.
const NO_ROUTE: &str = "none";

impl Traffic {
    pub(crate) fn answered(&self, route: Option<&str>, status: StatusCode) {
        let key = (route.unwrap_or(NO_ROUTE).to_owned(), status.as_u16() / 100);
        // Nothing panics half way in here.
        *self.requests.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default() += 1;
    }

    pub(crate) fn requests(&self) -> BTreeMap<(String, u16), u64> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One more, for as long as this is kept.
pub(crate) struct Counted {
    traffic: Arc<Traffic>,
    gauge: fn(&Traffic) -> &AtomicU64,
}

impl Counted {
    pub(crate) fn new(traffic: &Arc<Traffic>, gauge: fn(&Traffic) -> &AtomicU64) -> Self {
        gauge(traffic).fetch_add(1, Relaxed);
        Self { traffic: traffic.clone(), gauge }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.gauge)(&self.traffic).fetch_sub(1, Relaxed);
    }
}
