//! What a run waits for.

use steadfast_api::v1::why::{WHY, Why};

use crate::connection::{Call, Client};
use crate::error::Error;

impl Client {
    /// What a run waits for, down the chain.
    pub async fn why(&self, id: &str) -> Result<Why, Error> {
        self.ask(Call::get(self.path(WHY, &[id])?)).await
    }
}
