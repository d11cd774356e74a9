//! HTTP by hand, over a connection that is kept: fast, and it hides nothing.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// A connection.
pub(crate) struct Connection {
    address: String,
    stream: BufReader<TcpStream>,
}

/// So that a server that says nothing fails a test instead of holding it up.
const PATIENCE: Duration = Duration::from_secs(120);

impl Connection {
    pub(crate) fn open(url: &str) -> Result<Self> {
        let address = url.trim_start_matches("http://").to_owned();
        let stream = TcpStream::connect(&address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { address, stream: BufReader::new(stream) })
    }

    /// The status and the body of the answer. An error when the connection is cut before all of it has come.
    pub(crate) fn ask(&mut self, line: &str, body: &str) -> Result<(u16, String)> {
        let (address, length) = (&self.address, body.len());
        let head = format!(
            "{line} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        self.stream.get_mut().write_all((head + body).as_bytes())?;
        let cut = || Error::from(ErrorKind::UnexpectedEof);
        let status = self.line()?.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(cut)?;
        let mut length = 0;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(':') {
                Some(("content-length", value)) => length = value.trim().parse().map_err(Error::other)?,
                Some(_) => {}
                None if line == "\r\n" => break,
                None => return Err(cut()),
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, String::from_utf8(body).map_err(Error::other)?))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        Ok(line)
    }

    /// A document that must be there.
    #[track_caller]
    pub(crate) fn get(&mut self, path: &str) -> Value {
        let (status, body) = self.ask(&format!("GET {path}"), "").unwrap();
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }
}
