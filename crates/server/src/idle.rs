//! Connections on which nothing is asked, in the order in which they fell silent.
//!
//! Owns who goes when there is no room: whoever has been silent for longest, among those who never asked anything or among those who did, whichever are
//! more. So a crowd of strangers does not push out clients that come back. A request whose head has not arrived counts as silence, an answer that is
//! still being sent does not. Start reading at [`Idle::close_longest`].

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;

/// All silent connections.
#[derive(Default)]
pub(crate) struct Idle(Mutex<Silent>);

#[derive(Default)]
struct Silent {
    /// Those who never asked, by when they came.
    strangers: BTreeMap<u64, Arc<Notify>>,
    /// Those who did, by when they fell silent.
    known: BTreeMap<u64, Arc<Notify>>,
    next: u64,
}

#[derive(Clone, Copy)]
enum Acquaintance {
    Stranger,
    Known,
}

/// One connection, from its beginning to its end.
pub(crate) struct Presence {
    idle: Arc<Idle>,
    leave: Arc<Notify>,
    activity: Mutex<Activity>,
}

#[derive(Clone, Copy)]
enum Activity {
    Silent { line: Acquaintance, since: u64 },
    Asking,
}

/// While a request is under way, up to the last byte of its answer.
pub(crate) struct Asking(Arc<Presence>);

/// The body of an answer.
pub(crate) struct Answering {
    body: Body,
    _asking: Asking,
}

impl Idle {
    /// Tells the connection to leave that has been silent for longest, if there is one.
    pub(crate) fn close_longest(&self) {
        let mut silent = self.lock();
        let line =
            if silent.strangers.len() >= silent.known.len() { Acquaintance::Stranger } else { Acquaintance::Known };
        if let Some((_, leave)) = silent.line(line).pop_first() {
            leave.notify_one();
        }
    }

    fn enter(&self, line: Acquaintance, leave: &Arc<Notify>) -> Activity {
        let mut silent = self.lock();
        let since = silent.next;
        silent.next += 1;
        silent.line(line).insert(since, leave.clone());
        Activity::Silent { line, since }
    }

    fn lock(&self) -> MutexGuard<'_, Silent> {
        // Nothing panics half way in here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Silent {
    fn line(&mut self, line: Acquaintance) -> &mut BTreeMap<u64, Arc<Notify>> {
        match line {
            Acquaintance::Stranger => &mut self.strangers,
            Acquaintance::Known => &mut self.known,
        }
    }
}

impl Presence {
    pub(crate) fn new(idle: &Arc<Idle>) -> Arc<Self> {
        let leave = Arc::new(Notify::new());
        let activity = Mutex::new(idle.enter(Acquaintance::Stranger, &leave));
        Arc::new(Self { idle: idle.clone(), leave, activity })
    }

    /// A request has come.
    pub(crate) fn asks(self: &Arc<Self>) -> Asking {
        self.change(Activity::Asking);
        Asking(self.clone())
    }

    /// Waits until it has to leave.
    pub(crate) async fn told_to_leave(&self) {
        self.leave.notified().await;
    }

    pub(crate) fn is_silent(&self) -> bool {
        matches!(*self.activity(), Activity::Silent { .. })
    }

    fn change(&self, now: Activity) {
        let before = std::mem::replace(&mut *self.activity(), now);
        self.leave_line(before);
    }

    fn leave_line(&self, before: Activity) {
        if let Activity::Silent { line, since } = before {
            self.idle.lock().line(line).remove(&since);
        }
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let before = *self.activity();
        self.leave_line(before);
    }
}

impl Asking {
    /// Goes on until this body was sent.
    pub(crate) fn until_sent(self, body: Body) -> Answering {
        Answering { body, _asking: self }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let Self(presence) = self;
        presence.change(presence.idle.enter(Acquaintance::Known, &presence.leave));
    }
}

impl HttpBody for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
