//! Columns of text, and text that fits into one.
//!
//! Owns the widths. What comes from elsewhere is made one line without control characters, so that it cannot do anything to a terminal.

/// A table that is printed in parts: a list may be longer than what is held at once.
pub(crate) struct Table<const N: usize> {
    widths: [usize; N],
    header: Option<[&'static str; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(header: [&'static str; N]) -> Self {
        Self { widths: header.map(str::len), header: Some(header) }
    }

    /// More rows, under the header if they are the first. Columns get wider when they must, and never narrower.
    pub(crate) fn part(&mut self, rows: &[[String; N]]) -> String {
        for row in rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let header = self.header.take().map(|header| header.map(str::to_owned));
        header.iter().chain(rows).map(|row| self.line(row)).collect()
    }

    fn line(&self, row: &[String; N]) -> String {
        let cells = row.iter().zip(self.widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    }
}

/// `text` on one line, of at most `chars_max` characters.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut shown: String = plain.clone().take(chars_max).collect();
    if plain.count() > chars_max {
        shown.pop();
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let mut table = Table::new(["ID", "STATUS"]);
        let row = |id: &str, status: &str| [id.to_owned(), status.to_owned()];
        assert_eq!(table.part(&[row("first", "ok"), row("b", "failed")]), "ID     STATUS\nfirst  ok\nb      failed\n");
        assert_eq!(table.part(&[row("c", "ok")]), "c      ok\n");
    }

    #[test]
    fn a_line_is_short_and_cannot_break() {
        assert_eq!(one_line("a\nb\x1b[31m", 20), "a b [31m");
        assert_eq!(one_line("abcdef", 4), "abc…");
        assert_eq!(one_line("abcd", 4), "abcd");
    }
}
