//! What the documents say is true: their commands run, the tests they name exist.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// The lines of all blocks marked `sh`, without their comments.
fn shell_lines(document: &str) -> Vec<String> {
    let blocks = document.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines = blocks.flat_map(str::lines).map(|line| line.split(" #").next().unwrap().trim().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

/// Writes the blocks that begin with the name of a file, as `# hello.yaml`.
fn write_files(document: &str, folder: &Path) {
    let blocks = document.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    for block in blocks {
        let name = block.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap();
        fs::write(folder.join(name), block).unwrap();
    }
}

#[test]
fn every_steadfast_command_in_the_readme_runs() {
    let folder = tempfile::tempdir().unwrap();
    let readme = read("README.md");
    write_files(&readme, folder.path());
    let lines = shell_lines(&readme);
    let commands: Vec<&str> =
        lines.iter().filter_map(|line| line.strip_prefix("./target/release/steadfast ")).collect();
    assert!(commands.len() >= 3, "{lines:?}");
    check_commands(&commands, folder.path());
}

#[test]
fn every_command_in_the_guide_to_the_command_line_runs() {
    let folder = tempfile::tempdir().unwrap();
    let guide = read("docs/command-line.md");
    write_files(&guide, folder.path());
    let lines = shell_lines(&guide);
    let commands: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("steadfast ")).collect();
    assert!(commands.len() >= 10 && commands.len() == lines.len(), "{lines:?}");
    check_commands(&commands, folder.path());
}

/// Runs the commands one after the other; those that talk to a server talk to the one that `dev` began.
fn check_commands(commands: &[&str], folder: &Path) {
    let mut served = None;
    for line in commands {
        if line.split_whitespace().next() == Some("dev") {
            served = Some(Served::begin(line, folder));
            continue;
        }
        let command = format!("'{}' {line}", env!("CARGO_BIN_EXE_steadfast"));
        let mut command = shell(&command, folder);
        if let Some(Served { url, .. }) = &served {
            command.env("STEADFAST_URL", url);
        }
        let ended = command.output().unwrap();
        assert!(ended.status.success(), "{line}: {}", String::from_utf8_lossy(&ended.stderr));
    }
}

fn shell(line: &str, folder: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder).env_remove("STEADFAST_URL").env_remove("STEADFAST_KEY");
    command
}

/// What `dev` serves, on a port that is free.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn begin(line: &str, folder: &Path) -> Self {
        // The shell makes way for the command, so that it is the command that is ended.
        let command = format!("exec '{}' {line} --listen 127.0.0.1:0 --json", env!("CARGO_BIN_EXE_steadfast"));
        let mut child = shell(&command, folder).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let place = lines.find_map(|line| line.unwrap().strip_prefix(r#"{"listening":""#).map(str::to_owned));
        let url = place.unwrap().split('"').next().unwrap().to_owned();
        Self { child, url }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The blocks of a document that are marked with `language`.
fn blocks<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    document.split(&fence as &str).skip(1).map(|rest| rest.split("```").next().unwrap()).collect::<Vec<_>>()
}

#[test]
fn every_command_in_the_guide_prints_what_the_guide_says() {
    let folder = tempfile::tempdir().unwrap();
    let guide = read("docs/graphs.md");
    for block in blocks(&guide, "yaml") {
        if let Some(name) = block.lines().next().and_then(|line| line.strip_prefix("# file: ")) {
            fs::write(folder.path().join(name), block).unwrap();
        }
    }
    let sessions = blocks(&guide, "console");
    assert!(sessions.len() >= 15, "{} commands", sessions.len());
    for session in sessions {
        let (line, expected) = session.split_once('\n').unwrap();
        let line = line.strip_prefix("$ steadfast ").unwrap_or_else(|| panic!("{line}"));
        let command = format!("'{}' {line}", env!("CARGO_BIN_EXE_steadfast"));
        let ended = Command::new("sh").args(["-c", &command]).current_dir(&folder).output().unwrap();
        let (printed, said) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        assert_eq!(printed.trim_end(), expected.trim_end(), "{line}: {said}");
    }
}

#[test]
fn every_definition_in_the_reference_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    for (number, block) in blocks(&read("docs/definitions.md"), "yaml").into_iter().enumerate() {
        if !block.contains("kind:") {
            continue;
        }
        let file = folder.path().join(format!("{number}.yaml"));
        fs::write(&file, block).unwrap();
        let ended = Command::new(env!("CARGO_BIN_EXE_steadfast")).arg("validate").arg(&file).output().unwrap();
        assert!(ended.status.success(), "{block}\n{}", String::from_utf8_lossy(&ended.stdout));
    }
}

#[test]
fn every_make_command_in_the_documents_is_a_target() {
    let makefile = read("Makefile");
    for name in ["README.md", "CONTRIBUTING.md"] {
        for line in shell_lines(&read(name)) {
            if let Some(target) = line.strip_prefix("make ") {
                let target = target.split_whitespace().next().unwrap();
                assert!(makefile.contains(&format!("\n{target}:")), "{name}: `{line}`");
            }
        }
    }
}

#[test]
fn every_test_that_semantics_names_exists() {
    let sources = sources_below(&root().join("crates"));
    let semantics = read("SEMANTICS.md");
    let named = semantics.split('`').skip(1).step_by(2).filter(|name| {
        // Names of tests are sentences; settings are shorter.
        name.matches('_').count() >= 3 && name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
    });
    let mut count = 0;
    for name in named {
        assert!(sources.contains(&format!("fn {name}(")), "SEMANTICS.md names `{name}`, which is no test");
        count += 1;
    }
    assert!(count > 20, "{count} tests are named");
}

fn sources_below(folder: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all += &sources_below(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all += &fs::read_to_string(&path).unwrap();
        }
    }
    all
}
