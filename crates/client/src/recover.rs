//! Taking up again what is stuck of a run.

use steadfast_api::v1::recover::{RECOVER, Recover, Recovered};

use crate::connection::{Call, Client, Repeat};
use crate::error::Error;

impl Client {
    /// Takes up again what is stuck of a run. What is taken up once is not stuck any more.
    pub async fn recover(&self, id: &str, recover: &Recover) -> Result<Recovered, Error> {
        self.ask(Call::post(self.path(RECOVER, &[id])?, recover, Repeat::Harmless)?).await
    }
}
