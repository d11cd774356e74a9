//! What somebody sees who sits at a terminal while a run goes.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tempfile::tempdir;

use crate::command::steadfast;
use crate::served::Served;

/// Long enough to be drawn several times; the names are too long for the terminal.
const FLOW: &str = r#"
kind: workflow
name: flow
nodes:
  begin:
  a-name-that-is-longer-than-the-terminal-is-wide:
    run: { mock: { delay: "${300 + 300 * branch.index}" } }
  end:
transitions:
  - { from: begin, to: a-name-that-is-longer-than-the-terminal-is-wide, spawn: 2, group: g }
  - { from: a-name-that-is-longer-than-the-terminal-is-wide, to: end, join: { group: g } }
"#;

const COLUMNS: u16 = 40;

/// A terminal: the end that a person has, and the one that a program has.
fn terminal() -> (OwnedFd, OwnedFd) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let program = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    tcsetwinsize(&program, Winsize { ws_row: 24, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    (person, program.into())
}

/// What is written to the terminal, when only stderr is one, and what to stdout.
fn seen(folder: &Path, line: &str) -> (String, String) {
    let (person, program) = terminal();
    let mut command = steadfast(folder, line);
    command.env("TERM", "xterm").env_remove("NO_COLOR").stdout(Stdio::piped()).stderr(program);
    let child = command.spawn().unwrap();
    // With it goes the last handle of ours on the program's end, without which the person's end never ends.
    drop(command);
    let mut bytes = Vec::new();
    // The end of a terminal is an error on Linux.
    drop(File::from(person).read_to_end(&mut bytes));
    let output = child.wait_with_output().unwrap();
    (String::from_utf8(bytes).unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// Without escape sequences.
fn plain(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |all, piece| {
        all + piece.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, rest)| rest)
    })
}

#[test]
fn progress_is_drawn_over_itself_and_a_summary_stays() {
    let folder = tempdir().unwrap();
    std::fs::write(folder.path().join("flow.yaml"), FLOW).unwrap();
    let (terminal, stdout) = seen(folder.path(), "run flow.yaml");
    assert_eq!(stdout, "{}\n");
    let (blocks, summary) = terminal.rsplit_once("\x1b[J").unwrap();
    assert!(plain(summary).starts_with("✓ flow completed in ") && plain(summary).ends_with(" s, 6 tokens\r\n"));
    // Three lines, drawn over themselves.
    assert!(blocks.contains("\x1b[3A\r"), "{blocks:?}");
    assert!(plain(blocks).contains(" s  3 tokens, 2 active"), "{blocks:?}");
    for line in plain(blocks).lines() {
        assert!(line.trim_start_matches('\r').chars().count() < usize::from(COLUMNS), "{line:?}");
    }
}

#[test]
fn programs_are_shown_no_progress() {
    let folder = tempdir().unwrap();
    std::fs::write(folder.path().join("flow.yaml"), FLOW).unwrap();
    for option in ["--json", "--events"] {
        let (terminal, _) = seen(folder.path(), &format!("run flow.yaml {option}"));
        assert!(plain(&terminal).starts_with("✓ flow completed in "), "{terminal:?}");
        assert_eq!(terminal.lines().count(), 1, "{terminal:?}");
    }
}

#[test]
fn progress_of_a_run_on_a_server_is_drawn_too() {
    let served = Served::with(&[FLOW]);
    let (terminal, stdout) = seen(served.path(), &format!("start flow --id f --wait --url {}", served.url));
    assert_eq!(stdout, "{}\n");
    let (blocks, summary) = terminal.rsplit_once("\x1b[J").unwrap();
    assert!(plain(summary).starts_with("✓ flow completed in ") && plain(summary).ends_with(", 6 tokens, run f\r\n"));
    assert!(blocks.contains("\x1b[3A\r") && plain(blocks).contains(" s  3 tokens, 2 active"), "{blocks:?}");
}
