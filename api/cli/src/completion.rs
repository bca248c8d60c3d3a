//! `novaplace completion`: a script that completes verbs and flags in a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::Write;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct Completion {
    shell: Shell,
}

impl Completion {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut command = crate::Arguments::command();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "novaplace", &mut script);
        std::io::stdout().lock().write_all(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
