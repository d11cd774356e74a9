//! The socket and what is connected to it.
//!
//! Owns listening, the number and the patience of connections, and the end of all of them. Never looks into a request. Start reading at
//! [`Server::run`].

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use steadfast::graph::Graphs;
use steadfast::{Engine, Workers};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::app::{App, Phase};
use crate::guard::Access;
use crate::idle::{Idle, Presence};
use crate::limits::{self, Limits};
use crate::patient::Patient;
use crate::router::{openapi, router};
use crate::traffic::Counted;

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    access: Access,
    limits: Limits,
    openapi: String,
}

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Everybody could use it.
    #[error(
        "`{0}` is no loopback address: others could reach it, and there are no keys; give `--api-key-file FILE`, or `--insecure` if that is wanted"
    )]
    Exposed(SocketAddr),
    /// Somebody else listens there.
    #[error("`{0}` is in use: another server listens there; stop it, or choose another address with `--listen`")]
    InUse(SocketAddr),
    /// The system does not let us.
    #[error("`{address}` cannot be listened on: {reason}; choose another address with `--listen`")]
    Refused {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        reason: io::Error,
    },
    /// The description of the API cannot be written. A fault of ours.
    #[error("the description of the API cannot be written: {0}")]
    Description(#[from] serde_json::Error),
}

impl Server {
    /// Begins to listen. Requests wait until [`Server::run`], so that a store need not be opened in vain.
    pub async fn bind(address: SocketAddr, access: Access) -> Result<Self, BindError> {
        if access == Access::Loopback && !address.ip().is_loopback() {
            return Err(BindError::Exposed(address));
        }
        let bound = TcpListener::bind(address).await;
        let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = bound.map_err(|reason| match reason.kind() == io::ErrorKind::AddrInUse {
            true => BindError::InUse(address),
            false => BindError::Refused { address, reason },
        })?;
        Ok(Self { listener, address, access, limits: Limits::default(), openapi: openapi()? })
    }

    /// Uses these limits instead of the defaults.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Where it listens; with the port that the system chose, if it was asked to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves `engine`, which has been built with graphs, until `stop`. Then nothing more is accepted, streams end, and requests under way have a while to be answered.
    pub async fn run(self, engine: &Engine, stop: impl Future<Output = ()>) {
        let Self { listener, access, limits: set, openapi, .. } = self;
        let (phase, receiver) = watch::channel(Phase::Serving);
        let app = App {
            engine: engine.clone(),
            graphs: Graphs::of(engine),
            workers: Workers::of(engine),
            access: Arc::new(access),
            limits: set,
            traffic: Arc::default(),
            openapi: openapi.into(),
            phase: receiver,
            reads: Arc::new(Semaphore::new(limits::READS_MAX)),
        };
        let router = router(app.clone());
        let slots = Arc::new(Semaphore::new(connections_max(set.connections)));
        let idle = Arc::new(Idle::default());
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = listener.accept() => accepted,
                // Those that have ended, so that they are not kept until the end.
                Some(_) = connections.join_next() => continue,
            };
            match accepted {
                Ok((stream, _)) => {
                    let slot = tokio::select! {
                        () = &mut stop => break,
                        slot = room(&slots, &idle) => slot,
                    };
                    connections.spawn(serve(stream, slot, Presence::new(&idle), router.clone(), app.clone()));
                }
                Err(error) => {
                    tracing::warn!("a connection was not accepted: {error}");
                    idle.close_longest();
                    tokio::time::sleep(limits::ACCEPT_AGAIN).await;
                }
            }
        }
        drop(listener);
        phase.send_replace(Phase::Stopping);
        let all_ended = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(set.stop_grace, all_ended).await.is_err() {
            tracing::warn!("{} connections were cut off at the end", connections.len());
        }
        connections.shutdown().await;
    }
}

/// How many connections there may be. Systems give few files to a process that does not ask for more.
fn connections_max(connections: usize) -> usize {
    let given = getrlimit(Resource::Nofile);
    let wanted = connections as u64 + limits::FILES_RESERVED;
    let Some(current) = given.current.filter(|current| *current < wanted) else { return connections };
    let raised = given.maximum.map_or(wanted, |maximum| wanted.min(maximum));
    let files = match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: given.maximum }) {
        Ok(()) => raised,
        Err(_) => current,
    };
    if files < wanted {
        tracing::warn!(
            "this process may open {files} files, so there are fewer connections; `ulimit -n {wanted}` allows all"
        );
    }
    usize::try_from(files.saturating_sub(limits::FILES_RESERVED).max(1)).unwrap_or(connections)
}

/// Room for a connection that was accepted.
async fn room(slots: &Arc<Semaphore>, idle: &Idle) -> Option<OwnedSemaphorePermit> {
    loop {
        if let Ok(slot) = slots.clone().try_acquire_owned() {
            return Some(slot);
        }
        idle.close_longest();
        // Whoever was told to leave may have begun to ask at that moment, and stays until it is answered. Then it is another's turn to leave.
        if let Ok(slot) = tokio::time::timeout(limits::ACCEPT_AGAIN, slots.clone().acquire_owned()).await {
            return slot.ok();
        }
    }
}

async fn serve(
    stream: TcpStream,
    slot: Option<OwnedSemaphorePermit>,
    presence: Arc<Presence>,
    router: Router,
    app: App,
) {
    let _counted = Counted::new(&app.traffic, |traffic| &traffic.connections);
    // Small answers and events go at once. Where that cannot be set, they go a little later.
    drop(stream.set_nodelay(true));
    let stream = Patient::new(stream, app.limits.write_timeout);
    let router = TowerToHyperService::new(router);
    let asked = presence.clone();
    let service = service_fn(move |request| {
        let (asking, answering) = (asked.asks(), router.call(request));
        async move { answering.await.map(|response| response.map(|body| asking.until_sent(body))) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(app.limits.head_timeout)
        .max_buf_size(limits::BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            () = presence.told_to_leave() => match presence.is_silent() {
                true => break Ok(()),
                // A request came at that moment. It is answered first.
                false => connection.as_mut().graceful_shutdown(),
            },
            () = app.stopping() => {
                connection.as_mut().graceful_shutdown();
                break connection.await;
            }
        }
    };
    if let Err(error) = ended {
        // Mostly a client that went away.
        tracing::debug!("a connection ended: {error}");
    }
    drop(slot);
}
