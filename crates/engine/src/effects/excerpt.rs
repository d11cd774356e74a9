//! A bounded part of a text, for messages.

use steadfast_core::limits::EXCERPT_BYTES_MAX;

/// The beginning, cut between characters. Bytes that are no text become �.
pub(super) fn beginning(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(EXCERPT_BYTES_MAX)];
    let text = String::from_utf8_lossy(cut);
    if cut.len() < bytes.len() { format!("{}…", text.trim_end_matches('\u{fffd}')) } else { text.into_owned() }
}

/// The end, cut between characters. Bytes that are no text become �.
pub(super) fn end(bytes: &[u8]) -> String {
    let cut = &bytes[bytes.len().saturating_sub(EXCERPT_BYTES_MAX)..];
    let text = String::from_utf8_lossy(cut);
    if cut.len() < bytes.len() { format!("…{}", text.trim_start_matches('\u{fffd}')) } else { text.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = "ä".repeat(EXCERPT_BYTES_MAX);
        assert_eq!(beginning(&text.as_bytes()[1..]).trim_start_matches('\u{fffd}').chars().next(), Some('ä'));
        assert!(beginning(text.as_bytes()).ends_with("ä…"));
        assert!(end(text.as_bytes()).starts_with("…ä"));
        assert_eq!(beginning(b"short"), "short");
        assert_eq!(end(b"short"), "short");
    }
}
