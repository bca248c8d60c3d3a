//! `novaplace policy check`: everything that is wrong or doubtful in policy files, and where.

use super::excerpt::excerpt;
use crate::input;
use crate::output::{Format, Paint, print};
use ::policy::{
    ActiveSet, Configuration, Conflict, Diagnostic, Program, Severity, Steps, Syntax, load,
};
use anyhow::Context;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(super) struct Check {
    /// Policies in NovaCron's language, or as YAML if their names say so; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Doubts are mistakes, too
    #[arg(long)]
    pub(super) deny_warnings: bool,
}

/// What is to be said of the files.
#[derive(Debug, Serialize)]
struct Report {
    valid: bool,
    files: Vec<Checked>,
    /// Between the good ones, if all of them were active with their defaults.
    conflicts: Vec<Conflict>,
    /// Why they could not all be active.
    #[serde(skip_serializing_if = "Option::is_none")]
    together: Option<String>,
}

#[derive(Debug, Serialize)]
struct Checked {
    file: String,
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Steps>,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    program: Option<Arc<Program>>,
}

impl Check {
    pub(super) fn run(self, output: Format) -> anyhow::Result<ExitCode> {
        let texts = self.files.iter().map(|path| {
            let bytes = input::read(path)?;
            let text = String::from_utf8(bytes)
                .with_context(|| format!("{} is not UTF-8", path.display()))?;
            Ok((path.to_string_lossy().into_owned(), text))
        });
        let texts = texts.collect::<anyhow::Result<Vec<_>>>()?;
        self.of(texts, output)
    }

    /// Checks texts that were read already, under their names.
    pub(super) fn of(
        self,
        texts: Vec<(String, String)>,
        output: Format,
    ) -> anyhow::Result<ExitCode> {
        let report = Report::of(texts, self.deny_warnings);
        match output {
            Format::Json => print(serde_json::to_string(&report)?)?,
            Format::Table => report.show()?,
        }
        Ok(ExitCode::from(u8::from(!report.valid)))
    }
}

impl Report {
    fn of(texts: Vec<(String, String)>, deny_warnings: bool) -> Self {
        let files: Vec<Checked> =
            texts.into_iter().map(|(file, text)| Checked::of(file, text)).collect();
        let programs = files.iter().filter_map(|file| file.program.clone());
        // Parameters without a default need a value that nobody has given; such policies are left
        // out here and refused when they are activated without.
        let complete = programs.filter(|it| {
            it.document().parameters.iter().all(|parameter| parameter.default.is_some())
        });
        let set = ActiveSet::new(complete.map(|it| (it, Configuration::default())).collect());
        let (conflicts, together) = match &set {
            Ok(set) => (set.conflicts(), None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let doubtful = files.iter().any(|it| !it.warnings.is_empty()) || !conflicts.is_empty();
        let valid =
            files.iter().all(|it| it.valid) && together.is_none() && !(deny_warnings && doubtful);
        Self { valid, files, conflicts, together }
    }

    fn show(&self) -> anyhow::Result<()> {
        let paint = Paint::for_stdout();
        for file in &self.files {
            for found in file.errors.iter().chain(&file.warnings) {
                print(format!("{}\n", excerpt(&file.file, &file.text, found, paint)))?;
            }
        }
        for file in &self.files {
            print(file.summary(paint))?;
        }
        for conflict in &self.conflicts {
            let word = paint.bold(if conflict.certain { "conflict" } else { "possible conflict" });
            print(format!("{word} of {}: {}", conflict.policies.join(" and "), conflict.message))?;
        }
        if let Some(problem) = &self.together {
            print(format!("{}: {problem}", paint.bad("not all together")))?;
        }
        Ok(())
    }
}

impl Checked {
    fn of(file: String, text: String) -> Self {
        let syntax = if file == "-" { Syntax::of_text(&text) } else { Syntax::of_file(&file) };
        let (program, found) = match load(&text, syntax) {
            Ok((program, warnings)) => (Some(Arc::new(program)), warnings),
            Err(found) => (None, found),
        };
        let (errors, mut warnings): (Vec<_>, Vec<_>) =
            found.into_iter().partition(Diagnostic::is_error);
        if program.is_some() && syntax == Syntax::Yaml && !text.ends_with("\n...\n") {
            warnings.push(no_end(&text));
        }
        Self {
            valid: program.is_some(),
            id: program.as_ref().map(|program| program.id().to_owned()),
            cost: program.as_ref().map(|program| program.cost()),
            file,
            errors,
            warnings,
            text,
            program,
        }
    }

    fn summary(&self, paint: Paint) -> String {
        let Checked { file, errors, warnings, .. } = self;
        let doubts = match warnings.len() {
            0 => String::new(),
            1 => ", 1 warning".into(),
            many => format!(", {many} warnings"),
        };
        let Some(program) = &self.program else {
            let count = errors.len();
            let word = if count == 1 { "error" } else { "errors" };
            return format!("{} {file}: {count} {word}{doubts}", paint.bad("bad "));
        };
        let document = program.document();
        format!(
            "{} {file}: {} {}, {} rules, {} steps a host{doubts}",
            paint.good("good"),
            document.kind.name(),
            program.id(),
            document.rules.len(),
            program.cost().per_host,
        )
    }
}

fn no_end(text: &str) -> Diagnostic {
    Diagnostic {
        severity: Severity::Warning,
        code: "no-end-marker",
        line: u32::try_from(text.lines().count()).unwrap_or(u32::MAX),
        column: 1,
        field: "file".into(),
        message: "the last line is not `...`; a directory that is watched does not take it".into(),
        hint: Some("end the document with a line of three dots and a line break".into()),
    }
}
