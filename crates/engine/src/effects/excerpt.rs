//! A bounded part of a text, for messages.
//!
//! Owns the cut. A secret that the cut goes through could not be recognised any more, so secrets are taken out first.

use steadfast_core::limits::EXCERPT_BYTES_MAX;

use super::secrets::Used;

/// How much of a text is looked at: more than is shown, so that a secret at the cut is there as a whole. What is left of a longer
/// one is dropped.
pub(super) const LOOKED_AT_BYTES: usize = 4 * EXCERPT_BYTES_MAX;

/// The beginning, cut between characters. Bytes that are no text become �.
pub(super) fn beginning(bytes: &[u8], used: &Used) -> String {
    let seen = &bytes[..bytes.len().min(LOOKED_AT_BYTES)];
    let text = String::from_utf8_lossy(seen);
    let is_whole = seen.len() == bytes.len();
    let clean = if is_whole { used.clean(&text) } else { used.clean_beginning(text.trim_end_matches('\u{fffd}')) };
    if is_whole && clean.len() <= EXCERPT_BYTES_MAX {
        return clean;
    }
    format!("{}…", &clean[..clean.floor_char_boundary(EXCERPT_BYTES_MAX)])
}

/// The end, cut between characters. Bytes that are no text become �.
pub(super) fn end(bytes: &[u8], used: &Used) -> String {
    let seen = &bytes[bytes.len().saturating_sub(LOOKED_AT_BYTES)..];
    let text = String::from_utf8_lossy(seen);
    let is_whole = seen.len() == bytes.len();
    let clean = if is_whole { used.clean(&text) } else { used.clean_end(text.trim_start_matches('\u{fffd}')) };
    if is_whole && clean.len() <= EXCERPT_BYTES_MAX {
        return clean;
    }
    format!("…{}", &clean[clean.ceil_char_boundary(clean.len().saturating_sub(EXCERPT_BYTES_MAX))..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let nothing = &Used::default();
        for length in [EXCERPT_BYTES_MAX, LOOKED_AT_BYTES] {
            let text = "ä".repeat(length);
            assert_eq!(
                beginning(&text.as_bytes()[1..], nothing).trim_start_matches('\u{fffd}').chars().next(),
                Some('ä')
            );
            assert!(beginning(text.as_bytes(), nothing).ends_with("ä…"));
            assert!(end(text.as_bytes(), nothing).starts_with("…ä"));
            assert!(end(&text.as_bytes()[..length + 1], nothing).len() <= EXCERPT_BYTES_MAX + '…'.len_utf8());
        }
        assert_eq!(beginning(b"short", nothing), "short");
        assert_eq!(end(b"short", nothing), "short");
    }

    #[test]
    fn no_part_of_a_secret_is_left_wherever_the_cut_goes_through_it() {
        let secret = "0123456789äbcdefghijklmnopqrstuvwxyz";
        let used = Used::one("KEY", secret);
        let is_shown = |text: &str| text.contains(['0', '5', 'ä', 'b', 'h', 'z']);
        for bound in [EXCERPT_BYTES_MAX, LOOKED_AT_BYTES] {
            for before in bound - secret.len() - 2..bound + 2 {
                let text = format!("{}{secret}{}", "-".repeat(before), "-".repeat(2 * LOOKED_AT_BYTES));
                assert!(!is_shown(&beginning(text.as_bytes(), &used)), "{before}");
                let text = format!("{}{secret}{}", "-".repeat(2 * LOOKED_AT_BYTES), "-".repeat(before));
                assert!(!is_shown(&end(text.as_bytes(), &used)), "{before}");
            }
        }
    }

    #[test]
    fn a_secret_longer_than_what_is_looked_at_is_not_shown() {
        let secret = "k".repeat(3 * LOOKED_AT_BYTES);
        let used = Used::one("KEY", &secret);
        assert_eq!(beginning(format!("begin {secret} end").as_bytes(), &used), "begin …");
        assert_eq!(end(format!("begin {secret} end").as_bytes(), &used), "… end");
    }
}
