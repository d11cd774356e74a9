//! Dead letters: listed, tried again, thrown away.

use reqwest::Method;
use steadfast_api::v1::dead_letters::{DEAD_LETTER, DEAD_LETTERS, DeadLetter, DeadLetters, ListParameters, REDRIVE};

use crate::connection::{Call, Client, Repeat, with_query};
use crate::error::Error;

impl Client {
    /// A part of the list of dead letters.
    pub async fn dead_letters(&self, wanted: &ListParameters) -> Result<DeadLetters, Error> {
        self.ask(Call::get(with_query(self.path(DEAD_LETTERS, &[])?, wanted)?)).await
    }

    /// A dead letter.
    pub async fn dead_letter(&self, id: &str) -> Result<DeadLetter, Error> {
        self.ask(Call::get(self.path(DEAD_LETTER, &[id])?)).await
    }

    /// Gives a dead letter's input to its actor once more.
    pub async fn redrive_dead_letter(&self, id: &str) -> Result<(), Error> {
        self.tell_dead_letter(Method::POST, REDRIVE, id).await
    }

    /// Throws a dead letter away.
    pub async fn delete_dead_letter(&self, id: &str) -> Result<(), Error> {
        self.tell_dead_letter(Method::DELETE, DEAD_LETTER, id).await
    }

    /// Not repeated: what the first try has done, the second would not find any more.
    async fn tell_dead_letter(&self, method: Method, path: &str, id: &str) -> Result<(), Error> {
        let url = self.path(path, &[id])?;
        self.answer(Call { method, repeat: Repeat::Refused, ..Call::get(url) }).await.map(drop)
    }
}
