//! `steadfast completions`: what a shell offers behind a tab.

use std::io::Write;

use clap::{Args, Command};
use clap_complete::Shell;

/// The options of `completions`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// For which shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  source <(steadfast completions bash)
  steadfast completions zsh > ~/.zfunc/_steadfast
  steadfast completions fish > ~/.config/fish/completions/steadfast.fish";

/// Prints the script of a shell for `command`.
pub(crate) fn run(arguments: &Arguments, mut command: Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(())
}
