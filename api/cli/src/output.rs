//! What people see: tables, bars, numbers and colours; and JSON as it came.

use clap::ValueEnum;
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal, Write as _};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
}

/// Arguments that contradict each other; ends with the exit code of wrong usage.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Writes a line, or several, to standard output.
pub(crate) fn print(text: impl fmt::Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Writes an answer's JSON as it came.
pub(crate) fn print_json(body: &[u8]) -> io::Result<()> {
    print(String::from_utf8_lossy(body).trim_end())
}

/// Colours, on a terminal whose user has not said `NO_COLOR`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(bool);

impl Paint {
    pub(crate) fn for_stdout() -> Self {
        Self(
            io::stdout().is_terminal()
                && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty()),
        )
    }

    pub(crate) fn bold(self, text: impl fmt::Display) -> String {
        self.with("1", text)
    }

    pub(crate) fn good(self, text: impl fmt::Display) -> String {
        self.with("32", text)
    }

    pub(crate) fn bad(self, text: impl fmt::Display) -> String {
        self.with("31", text)
    }

    pub(crate) fn faint(self, text: impl fmt::Display) -> String {
        self.with("2", text)
    }

    fn with(self, code: &str, text: impl fmt::Display) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// Rows under headings. Columns of numbers are aligned at the right.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: &[&str]) -> Self {
        let headings = headings.iter().map(|heading| (*heading).to_owned()).collect();
        Self { headings, rows: Vec::new() }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn painted(&self, paint: Paint) -> String {
        let lines = std::iter::once(&self.headings).chain(&self.rows);
        let width = |column: usize| {
            let cells = lines.clone().filter_map(|cells| cells.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let numeric = |column: usize| {
            let mut cells = self.rows.iter().filter_map(|cells| cells.get(column));
            cells.all(|cell| cell.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c)))
        };
        let columns: Vec<(usize, bool)> =
            (0..self.headings.len()).map(|column| (width(column), numeric(column))).collect();
        let mut text = String::new();
        for (number, cells) in lines.clone().enumerate() {
            let mut line = String::new();
            for (cell, (width, numeric)) in cells.iter().zip(&columns) {
                let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
                let (before, after) = if *numeric { (&*padding, "") } else { ("", &*padding) };
                // Writing to a string does not fail.
                let _ = write!(line, "{before}{cell}{after}  ");
            }
            let line = line.trim_end();
            let line = if number == 0 { paint.faint(line) } else { line.to_owned() };
            text.push_str(if number == 0 { "" } else { "\n" });
            text.push_str(&line);
        }
        text
    }
}

/// A bar of `width` characters, filled as far as `part` goes in `whole`.
pub(crate) fn bar(part: u64, whole: u64, width: u32) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let steps = u128::from(width) * 8;
    let filled = steps * u128::from(part.min(whole)) / u128::from(whole.max(1));
    let (full, rest) = ((filled / 8) as usize, (filled % 8) as usize);
    format!("{}{}", "█".repeat(full), EIGHTHS[rest])
}

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: impl Into<i128>) -> String {
    let number: i128 = number.into();
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How full something is: `62.5 %`, or nothing where there is nothing to fill.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    let permille = u128::from(part) * 1000 / u128::from(whole);
    format!("{}.{} %", permille / 10, permille % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["HOST", "VMS"]);
        table.row(["a".into(), "7".into()]);
        table.row(["longer".into(), "12,000".into()]);
        assert_eq!(table.painted(Paint(false)), "HOST       VMS\na            7\nlonger  12,000");
    }

    #[test]
    fn a_bar_is_never_longer_than_its_width() {
        assert_eq!(bar(0, 10, 4), "");
        assert_eq!(bar(5, 10, 4), "██");
        assert_eq!(bar(1, 32, 4), "▏");
        assert_eq!(bar(99, 10, 4), "████");
        assert_eq!(bar(1, 0, 4), "");
        assert_eq!(bar(u64::MAX, u64::MAX, 3), "███");
    }

    #[test]
    fn digits_come_in_groups_of_three() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (-1_234_567, "-1,234,567")]
        {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn colours_are_written_only_where_they_are_wanted() {
        assert_eq!(Paint(false).bold("x"), "x");
        assert_eq!(Paint(true).bold("x"), "\x1b[1mx\x1b[0m");
    }
}
