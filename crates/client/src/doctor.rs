//! A checkup.

use steadfast_api::v1::doctor::{Checkup, DOCTOR};
use steadfast_api::v1::runs::PageParameters;

use crate::connection::{Call, Client, with_query};
use crate::error::Error;

impl Client {
    /// Looks at a part of the runs that are not over for what nothing will wake.
    pub async fn check_runs(&self, page: &PageParameters) -> Result<Checkup, Error> {
        self.ask(Call::get(with_query(self.path(DOCTOR, &[])?, page)?)).await
    }
}
