//! Server-sent events, taken apart.
//!
//! Owns the form of a stream: lines, fields, the blank line behind an event. Holds one event at most, of a bounded size. Never reads a connection.

/// An event as it was sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

/// A line or an event is longer than any of ours.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Bytes of a stream, as far as they make no event yet.
#[derive(Default)]
pub(crate) struct Lines {
    /// The beginning of a line.
    line: Vec<u8>,
    /// The beginning of an event.
    event: Sent,
}

/// The data of an event. A value of a user has at most 8 MiB; this is one with all that stands around it.
pub(crate) const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;

impl Lines {
    /// Takes bytes, and gives the events that are whole now.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<Vec<Sent>, TooLong> {
        let mut events = Vec::new();
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            if self.line.len() + self.event.data.len() + piece.len() > EVENT_BYTES_MAX {
                return Err(TooLong);
            }
            self.line.extend_from_slice(piece);
            if pieces.peek().is_some() {
                events.extend(self.end_line());
            }
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<Sent> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = line.strip_suffix('\r').unwrap_or(&line);
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return (!event.data.is_empty()).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.event.id = Some(value.to_owned()),
            "data" if self.event.data.is_empty() => self.event.data.push_str(value),
            "data" => {
                self.event.data.push('\n');
                self.event.data.push_str(value);
            }
            // A comment, or a field that says nothing new.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(id: &str, data: &str) -> Sent {
        Sent { id: Some(id.to_owned()), data: data.to_owned() }
    }

    #[test]
    fn events_are_the_same_however_the_bytes_come() {
        let text = ": hello\n\nid: 1\nevent: a\ndata: {\"ä\":1}\n\nid:2\r\ndata: x\r\ndata: y\r\n\r\nid: 3\ndata: half";
        for size in 1..text.len() {
            let mut lines = Lines::default();
            let pieces = text.as_bytes().chunks(size).map(|piece| lines.take(piece));
            let events: Vec<Sent> = pieces.flat_map(|events| events.expect("it is short")).collect();
            assert_eq!(events, [sent("1", "{\"ä\":1}"), sent("2", "x\ny")], "pieces of {size}");
        }
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_is_held() {
        let mut lines = Lines::default();
        assert_eq!(lines.take(&vec![b'x'; EVENT_BYTES_MAX]), Ok(Vec::new()));
        assert_eq!(lines.take(b"x"), Err(TooLong));
        let mut lines = Lines::default();
        let half = format!("data: {}\n", "x".repeat(EVENT_BYTES_MAX / 2));
        assert_eq!(lines.take(half.as_bytes()), Ok(Vec::new()));
        assert_eq!(lines.take(half.as_bytes()), Err(TooLong));
    }
}
