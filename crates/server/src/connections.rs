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
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use steadfast::graph::Graphs;
use steadfast::{Engine, Workers};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::app::{App, Phase};
use crate::guard::Access;
use crate::limits::{self, Limits};
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
        let slots = Arc::new(Semaphore::new(set.connections));
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = accept(&listener, &slots) => accepted,
                // Those that have ended, so that they are not kept until the end.
                Some(_) = connections.join_next() => continue,
            };
            match accepted {
                Ok((stream, slot)) => {
                    connections.spawn(serve(stream, slot, router.clone(), app.clone()));
                }
                Err(error) => {
                    tracing::warn!("a connection was not accepted: {error}");
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

/// The next connection, once there is room for it.
async fn accept(listener: &TcpListener, slots: &Arc<Semaphore>) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let slot = slots.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, slot))
}

async fn serve(stream: TcpStream, slot: OwnedSemaphorePermit, router: Router, app: App) {
    let _counted = Counted::new(&app.traffic, |traffic| &traffic.connections);
    // Small answers and events go at once. Where that cannot be set, they go a little later.
    drop(stream.set_nodelay(true));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEAD_TIMEOUT)
        .max_buf_size(limits::BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = app.stopping() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // Mostly a client that went away.
        tracing::debug!("a connection ended: {error}");
    }
    drop(slot);
}
