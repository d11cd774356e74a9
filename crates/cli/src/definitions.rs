//! Files of definitions: which are meant, what is in them, and how their problems are told.
//!
//! Owns the way from arguments to checked definitions, for every command that takes files. Never applies one.
//! Start reading at [`Files::read`].

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use steadfast_core::definition::workflow::Reference;
use steadfast_core::definition::{self, DefinitionKind, Parsed, Problem, Read, Severity, check_references};

use crate::usage::WrongUsage;

/// The argument that means stdin.
pub(crate) const STDIN: &str = "-";

/// How stdin is called in problems.
const STDIN_NAME: &str = "stdin";

/// What a file of definitions is called. Others in a folder are left alone.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Files that were read, each with what is in it.
pub(crate) struct Files {
    names: Vec<String>,
    reads: Vec<Read>,
    references: References,
}

/// Whether what is named was looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum References {
    Unchecked,
    Checked,
}

/// How many problems there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
}

/// One definition, as `--json` names it.
#[derive(Serialize)]
pub(crate) struct Listed<'a> {
    kind: &'static str,
    name: &'a str,
    file: &'a str,
}

impl Files {
    /// Reads files, folders (the definitions directly in them, by name) and stdin (`-`), each file once.
    pub(crate) fn read(arguments: &[PathBuf]) -> anyhow::Result<Self> {
        let mut files = Self { names: Vec::new(), reads: Vec::new(), references: References::Unchecked };
        let mut seen = BTreeSet::new();
        for argument in arguments {
            if argument == Path::new(STDIN) {
                if seen.insert(argument.clone()) {
                    let text = io::read_to_string(io::stdin()).map_err(|error| unreadable(argument, &error))?;
                    files.add(STDIN_NAME.to_owned(), &text);
                }
                continue;
            }
            for path in files_of(argument)? {
                // Given by its name and by its folder it is still one file, whose definitions are not there twice.
                if seen.insert(fs::canonicalize(&path).unwrap_or_else(|_| path.clone())) {
                    files.add(path.display().to_string(), &text_of(&path)?);
                }
            }
        }
        Ok(files)
    }

    fn add(&mut self, name: String, text: &str) {
        self.reads.push(definition::read(&name, text));
        self.names.push(name);
    }

    /// Finds what is named and not there, if that was not done before.
    pub(crate) fn check_references(&mut self, is_known: &dyn Fn(DefinitionKind, &Reference) -> bool) {
        if self.references == References::Unchecked {
            check_references(&mut self.reads, is_known);
            self.references = References::Checked;
        }
    }

    /// The definitions that are right.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Parsed> {
        self.reads.iter().flat_map(|read| &read.definitions)
    }

    /// The same, without the files.
    pub(crate) fn into_definitions(self) -> Vec<Parsed> {
        self.reads.into_iter().flat_map(|read| read.definitions).collect()
    }

    /// The definitions of files without errors. One that is right, beside others that are not, may not be meant yet.
    pub(crate) fn into_good_definitions(self) -> Vec<Parsed> {
        let is_good = |read: &Read| read.problems.iter().all(|problem| problem.severity != Severity::Error);
        self.reads.into_iter().filter(is_good).flat_map(|read| read.definitions).collect()
    }

    /// The definitions that are right, with their files.
    pub(crate) fn listed<'a>(&'a self) -> Vec<Listed<'a>> {
        let pairs = self.names.iter().zip(&self.reads);
        let of_file = |(file, read): (&'a String, &'a Read)| {
            let listed = |parsed: &'a Parsed| Listed { kind: parsed.kind.name(), name: &parsed.name, file };
            read.definitions.iter().map(listed).collect::<Vec<_>>()
        };
        pairs.flat_map(of_file).collect()
    }

    /// Everything that is wrong, in the order of the files.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.reads.iter().flat_map(|read| &read.problems)
    }

    /// How much is wrong.
    pub(crate) fn counts(&self) -> Counts {
        let of = |severity| self.problems().filter(|problem| problem.severity == severity).count();
        Counts { errors: of(Severity::Error), warnings: of(Severity::Warning) }
    }

    /// Tells every problem, and in the last line how it looks as a whole.
    pub(crate) fn tell(&self, out: &mut dyn Write) -> io::Result<()> {
        for problem in self.problems() {
            writeln!(out, "{problem}\n")?;
        }
        writeln!(out, "{}", self.summary())
    }

    fn summary(&self) -> String {
        let files = counted(self.names.len(), "file");
        let definitions = counted(self.definitions().count(), "definition");
        let problems = match self.counts() {
            Counts { errors: 0, warnings: 0 } => "no problems".to_owned(),
            Counts { errors, warnings: 0 } => counted(errors, "error"),
            Counts { errors: 0, warnings } => counted(warnings, "warning"),
            Counts { errors, warnings } => format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")),
        };
        // Definitions with errors are no definitions: their number would say nothing.
        match self.counts().errors {
            0 => format!("{files}, {definitions}: {problems}"),
            _ => format!("{files}: {problems}"),
        }
    }
}

/// `1 file`, `2 files`.
pub(crate) fn counted<N: std::fmt::Display + PartialEq + From<u8>>(count: N, thing: &str) -> String {
    if count == N::from(1) { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// A file itself, or the definitions directly in a folder.
pub(crate) fn files_of(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| unreadable(path, &error))? {
        let file = entry.map_err(|error| unreadable(path, &error))?.path();
        let is_hidden = file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let is_one = file.extension().is_some_and(|found| EXTENSIONS.iter().any(|extension| found == *extension));
        if is_one && !is_hidden && file.is_file() {
            found.push(file);
        }
    }
    found.sort();
    if found.is_empty() {
        let path = path.display();
        return Err(WrongUsage(format!("there is no `*.yaml`, `*.yml` or `*.json` in the folder `{path}`")).into());
    }
    Ok(found)
}

fn text_of(path: &Path) -> Result<String, WrongUsage> {
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text));
    read.map(|_| text).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &io::Error) -> WrongUsage {
    let path = path.display();
    let kind = error.kind();
    WrongUsage(if kind == io::ErrorKind::NotFound {
        format!("there is no file `{path}`")
    } else if kind == io::ErrorKind::InvalidData {
        format!("`{path}` cannot be read: it is not UTF-8 text")
    } else {
        format!("`{path}` cannot be read: {error}")
    })
}
