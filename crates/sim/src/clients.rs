//! Clients: what is asked of the engine, and what each of them may rely on.
//!
//! Owns what is known of an operation from outside: asked, answered, or cut off. A client that gave an id asks again until
//! it is answered; one that gave none asks once. Knows nothing of what is inside the engine, nor of what is wanted.

use steadfast::RequestError;
use steadfast::commit::{Answer, Waiter};
use steadfast::runner::Delivery;
use steadfast_core::ids::{ActorId, RequestId};
use steadfast_core::json::Json;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use crate::scenario::Wish;

/// One thing a client wants.
pub(crate) struct Operation<W> {
    pub(crate) wish: W,
    /// `None` for a client that gives no id.
    pub(crate) id: Option<RequestId>,
    waiting: Vec<oneshot::Receiver<Answer>>,
    pub(crate) answer: Option<Json>,
    pub(crate) asked: u64,
}

impl<W: Wish> Operation<W> {
    /// Of a client that gives an id; `number` was given to no other.
    pub(crate) fn new(wish: W, number: usize) -> Self {
        let id = RequestId::given(&format!("op-{number}")).expect("letters, a dash and digits");
        Self { id: Some(id), ..Self::anonymous(wish) }
    }

    /// Of a client that gives none.
    pub(crate) fn anonymous(wish: W) -> Self {
        Self { wish, id: None, waiting: Vec::new(), answer: None, asked: 0 }
    }

    pub(crate) fn actor(&self) -> &ActorId {
        self.wish.actor()
    }

    /// Whether its client would ask now.
    pub(crate) fn wants_to_ask(&self) -> bool {
        self.answer.is_none() && self.waiting.is_empty() && (self.id.is_some() || self.asked == 0)
    }

    /// Whether its client has nothing more to do or to hope for.
    pub(crate) fn is_over(&self) -> bool {
        self.waiting.is_empty() && !self.wants_to_ask()
    }

    /// Asks. `anonymous` is an id for a client that gives none.
    pub(crate) fn ask(&mut self, anonymous: RequestId) -> Delivery {
        self.asked += 1;
        let (waiter, answer) = Waiter::new(None);
        self.waiting.push(answer);
        let id = self.id.clone().unwrap_or(anonymous);
        self.wish.delivery(id, waiter)
    }

    /// Looks whether an answer has come. A line for the history when something has, an error when it must not be.
    pub(crate) fn look(&mut self) -> Result<Option<String>, String> {
        let mut news = None;
        let mut still_waiting = Vec::new();
        for mut waiting in std::mem::take(&mut self.waiting) {
            match waiting.try_recv() {
                Err(TryRecvError::Empty) => still_waiting.push(waiting),
                Err(TryRecvError::Closed) => news = Some("is cut off".to_owned()),
                Ok(Err(RequestError::Unavailable(_) | RequestError::Stopped)) => {
                    news = Some("is called off".to_owned())
                }
                Ok(Err(error)) => return Err(format!("{:?} was refused: {error}", self.wish)),
                Ok(Ok(answer)) => {
                    news = Some(format!("is answered {answer}"));
                    match &self.answer {
                        Some(before) if !self.wish.agree(before, &answer) => {
                            return Err(format!("{:?} was answered {before}, and then {answer}", self.wish));
                        }
                        Some(_) | None => self.answer = Some(answer),
                    }
                }
            }
        }
        self.waiting = still_waiting;
        Ok(news)
    }
}
