//! A connection that sends the same request again and again, and looks at little of each answer.
//!
//! Owns just enough of HTTP/1.1 for a benchmark: the program that measures shares the cores with the server, and what it spends is missing there.
//! Never measures.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection that is kept open from request to request.
pub(super) struct Connection {
    stream: TcpStream,
    /// The answer, as far as it has arrived.
    received: Vec<u8>,
}

const RECEIVED_BYTES: usize = 4 * 1024;
const HEAD_END: &[u8] = b"\r\n\r\n";

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("the server cannot be reached")?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::with_capacity(RECEIVED_BYTES) })
    }

    /// Sends a whole request, and waits for the body of its answer, which must have this status.
    pub(super) async fn ask(&mut self, request: &[u8], status: u16) -> anyhow::Result<&[u8]> {
        self.stream.write_all(request).await?;
        self.received.clear();
        let head = loop {
            if let Some(end) = self.received.windows(HEAD_END.len()).position(|bytes| bytes == HEAD_END) {
                break end;
            }
            self.receive().await?;
        };
        let body = head + HEAD_END.len();
        let (found, length) = read_head(std::str::from_utf8(&self.received[..head])?)?;
        while self.received.len() < body + length {
            self.receive().await?;
        }
        let body = &self.received[body..];
        if found != status {
            bail!("the server answered {found}, expected {status}: {}", String::from_utf8_lossy(body));
        }
        Ok(body)
    }

    async fn receive(&mut self) -> anyhow::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => bail!("the server closed the connection"),
            _ => Ok(()),
        }
    }
}

/// A request, as it is sent.
pub(super) fn request(address: SocketAddr, line: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("{line} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}");
    format!("{head}\r\n\r\n{body}").into_bytes()
}

/// The status, and how long the body is.
fn read_head(head: &str) -> anyhow::Result<(u16, usize)> {
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    status.zip(length).with_context(|| format!("not an answer with a length: {head}"))
}
