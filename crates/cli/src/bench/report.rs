//! Printing: tables for people, JSON lines for programs, progress for who waits.
//!
//! Owns the form of the output. Results go to stdout; progress goes to stderr, and only to a terminal. Never measures.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::machine::Machine;
use super::place::Place;

/// For whom.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Tables,
    JsonLines,
}

/// Where a benchmark's results go.
pub(crate) struct Report {
    form: Form,
    machine: Machine,
}

/// A line of figures with the facts that they need.
#[derive(Serialize)]
struct Line<'a, T> {
    bench: &'a str,
    #[serde(flatten)]
    figures: &'a T,
    #[serde(flatten)]
    machine: &'a Machine,
}

impl Report {
    pub(crate) fn new(form: Form, machine: Machine) -> Self {
        Self { form, machine }
    }

    /// Says where this is measured.
    pub(crate) fn begin(&self, place: &Place) -> io::Result<()> {
        let Machine { version, date, cores, kernel, file_system, fsync_is_real, fsync_us } = &self.machine;
        let files = place.kept().map_or("a temporary folder".to_owned(), |file| format!("`{}`", file.display()));
        let mut text = format!(
            "steadfast {version}, {date}, {cores} cores, {kernel}, {file_system}, fsync {fsync_us:.0} µs, files in {files}"
        );
        if !fsync_is_real {
            text.push_str(
                "\nnote: this file system is in memory, so an fsync here is none and the figures say nothing about a disk; \
                 choose another place with `--store`",
            );
        }
        match self.form {
            Form::Tables => writeln!(io::stdout(), "{text}"),
            Form::JsonLines => Ok(()),
        }
    }

    /// One measurement, as soon as it is there. People get it later, in the table.
    pub(crate) fn line(&self, bench: &str, figures: &impl Serialize) -> anyhow::Result<()> {
        match self.form {
            Form::Tables => {}
            Form::JsonLines => {
                let line = serde_json::to_string(&Line { bench, figures, machine: &self.machine })?;
                writeln!(io::stdout(), "{line}")?;
            }
        }
        Ok(())
    }

    /// All measurements of one benchmark.
    pub(crate) fn table(&self, table: &Table) -> io::Result<()> {
        match self.form {
            Form::Tables => write!(io::stdout(), "\n{}", table.text()),
            Form::JsonLines => Ok(()),
        }
    }
}

/// Figures under headings, with a title above and notes below.
pub(crate) struct Table {
    title: &'static str,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl Table {
    pub(crate) fn new<const N: usize>(title: &'static str, headings: [&str; N]) -> Self {
        Self { title, rows: vec![headings.map(str::to_owned).into()], notes: Vec::new() }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = format!("{}\n", self.title);
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("  {cell:>width$}"));
            text.extend(cells);
            text.push('\n');
        }
        for note in &self.notes {
            text.push_str(&format!("  {note}\n"));
        }
        text
    }
}

/// A number as people read it: three digits that count, and commas between thousands.
pub(crate) fn number(figure: f64) -> String {
    if figure.abs() >= 100.0 {
        return thousands(&format!("{figure:.0}"));
    }
    if figure.abs() >= 10.0 { format!("{figure:.1}") } else { format!("{figure:.2}") }
}

/// A count, with commas between thousands.
pub(crate) fn count(figure: u64) -> String {
    thousands(&figure.to_string())
}

/// Memory or a file's size.
pub(crate) fn mib(bytes: u64) -> String {
    number(bytes as f64 / (1024.0 * 1024.0))
}

fn thousands(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// To three places, so that a line can be read; more is noise.
pub(crate) fn rounded(figure: f64) -> f64 {
    (figure * 1000.0).round() / 1000.0
}

/// Tells a person who waits how far it is.
pub(crate) struct Progress {
    what: String,
    shown: Instant,
    is_terminal: bool,
}

const SHOW_EVERY: Duration = Duration::from_millis(200);

impl Progress {
    pub(crate) fn of(what: impl Into<String>) -> Self {
        let progress = Self { what: what.into(), shown: Instant::now(), is_terminal: io::stderr().is_terminal() };
        progress.show("");
        progress
    }

    /// So many of so many are done.
    pub(crate) fn at(&mut self, done: u64, of: u64) {
        if self.is_terminal && self.shown.elapsed() >= SHOW_EVERY {
            self.shown = Instant::now();
            self.show(&format!(" {} of {}", count(done), count(of)));
        }
    }

    fn show(&self, how_far: &str) {
        if self.is_terminal {
            // Progress that cannot be shown is no reason to stop.
            drop(write!(io::stderr(), "\r\x1b[K{}{how_far} …", self.what));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_terminal {
            drop(write!(io::stderr(), "\r\x1b[K"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas_and_no_needless_digits() {
        assert_eq!(number(1_234_567.8), "1,234,568");
        assert_eq!(number(123.4), "123");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(0.987), "0.99");
        assert_eq!(count(100), "100");
        assert_eq!(count(1_000), "1,000");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new("title", ["a", "µs"]);
        table.row(["1,000".to_owned(), "2".to_owned()]);
        table.note("note");
        assert_eq!(table.text(), "title\n      a  µs\n  1,000   2\n  note\n");
    }
}
