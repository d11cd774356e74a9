//! The few lines on a terminal that show how far a run is, drawn over themselves.
//!
//! Owns the escape sequences and the pace. What the lines say is in [`crate::progress`]. Own code rather than a library: it draws what it is given a few times a
//! second, and nothing else.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::progress::{Signalling, Tally};

/// A block of lines at the bottom of the terminal. Gone when it is dropped.
pub(crate) struct Screen {
    title: String,
    tally: Tally,
    began: Instant,
    drawn_at: Option<Instant>,
    /// How many lines are there now.
    lines: usize,
    frame: usize,
}

/// How often it is drawn: often enough for a spinner to turn.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// A run of a few milliseconds shows nothing but its result.
const FIRST_AFTER: Duration = Duration::from_millis(150);

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// No more lines than these, on the tallest terminal.
const LINES_MAX: usize = 12;

/// Where the terminal does not say how large it is.
const SIZE: (usize, usize) = (80, 24);

/// Whether the terminal understands more than text.
pub(crate) fn is_capable() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term != "dumb" && !term.is_empty())
}

impl Screen {
    pub(crate) fn new(title: &str, signalling: Signalling) -> Self {
        let (began, tally) = (Instant::now(), Tally::new(signalling));
        Self { title: title.to_owned(), tally, began, drawn_at: None, lines: 0, frame: 0 }
    }

    /// Counts an event; it is seen when the block is drawn next.
    pub(crate) fn take(&mut self, event_type: &str, data: &str) {
        self.tally.take(event_type, data);
    }

    pub(crate) fn draw_if_due(&mut self) {
        let is_due = match self.drawn_at {
            Some(drawn_at) => drawn_at.elapsed() >= DRAW_EVERY,
            None => self.began.elapsed() >= FIRST_AFTER,
        };
        if is_due {
            self.drawn_at = Some(Instant::now());
            self.draw();
        }
    }

    fn draw(&mut self) {
        let (width, height) = size();
        let lines_max = LINES_MAX.min(height.saturating_sub(1)).max(1);
        self.frame = (self.frame + 1) % FRAMES.len();
        let lines = self.tally.lines(&self.title, self.began.elapsed(), FRAMES[self.frame], lines_max);
        let mut text = self.back();
        for line in lines.iter().take(lines_max) {
            // A line that breaks would be two, and the next block one too low.
            text.extend(line.chars().take(width.saturating_sub(1)));
            text.push_str("\x1b[K\n");
        }
        text.push_str("\x1b[J");
        self.lines = lines.len().min(lines_max);
        write(&text);
    }

    /// Takes the block away.
    pub(crate) fn clear(&mut self) {
        if self.lines > 0 {
            write(&format!("{}\x1b[J", self.back()));
            self.lines = 0;
        }
    }

    /// To the beginning of the block.
    fn back(&self) -> String {
        if self.lines == 0 { String::new() } else { format!("\x1b[{}A\r", self.lines) }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}

/// How a run has ended, as far as its mark goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Good,
    Bad,
}

/// The last line about a run.
pub(crate) fn print_summary(text: &str, mark: Mark) {
    let (mark, colour) = match mark {
        Mark::Good => ('✓', "32"),
        Mark::Bad => ('✗', "31"),
    };
    if is_capable() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) {
        write(&format!("\x1b[{colour}m{mark}\x1b[0m {text}\n"));
    } else {
        write(&format!("{mark} {text}\n"));
    }
}

/// A duration for people.
pub(crate) fn time(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match seconds {
        0 if elapsed.as_millis() < 100 => format!("{} ms", elapsed.as_millis()),
        0..60 => format!("{:.1} s", elapsed.as_secs_f64()),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

fn write(text: &str) {
    // A terminal that is gone is shown nothing.
    let mut terminal = std::io::stderr().lock();
    drop(terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush()));
}

/// Columns and rows.
fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (usize::from(size.ws_col), usize::from(size.ws_row)),
        Ok(_) | Err(_) => SIZE,
    }
}
