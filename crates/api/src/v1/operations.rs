//! What those who run a server ask it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET`: whether the process answers.
pub const HEALTH: &str = "/healthz";
/// `GET`: whether it can take work.
pub const READY: &str = "/readyz";
/// `GET`: counts, as Prometheus reads them.
pub const METRICS: &str = "/metrics";
/// `GET`: this API.
pub const OPENAPI: &str = "/openapi.json";

/// That all is well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Well {
    /// `ok`.
    pub status: String,
}
