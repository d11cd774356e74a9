//! A server of a few lines: answers every request by a function, one connection each, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// `answer` is given the request as text, and gives the answer as text.
    pub(crate) async fn start(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answer, remembered) = (Arc::new(answer), asked.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, remembered) = (answer.clone(), remembered.clone());
                tokio::spawn(async move {
                    let (request, mut stream) = request(stream).await;
                    let text = answer(&request);
                    remembered.lock().unwrap().push(request);
                    drop(stream.write_all(text.as_bytes()).await);
                });
            }
        });
        Self { port, asked }
    }

    /// Always the same.
    pub(crate) async fn always(answer: impl Into<String>) -> Self {
        let answer = answer.into();
        Self::start(move |_| answer.clone()).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Everything it was asked, header names in small letters.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// An answer.
pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

async fn request(mut stream: TcpStream) -> (String, TcpStream) {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .to_lowercase()
                .split("content-length: ")
                .nth(1)
                .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse().unwrap());
            if body.len() >= length {
                return (text, stream);
            }
        }
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the client left in the middle of a request");
        read.extend_from_slice(&buffer[..count]);
    }
}
