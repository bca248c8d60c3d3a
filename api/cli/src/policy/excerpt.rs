//! A finding with the line it is about, and a mark under the place.

use crate::output::Paint;
use ::policy::Diagnostic;

/// Longest piece of a line that is shown.
const WIDTH: usize = 100;

/// The finding as people read it: place, message, line, mark and hint.
pub(super) fn excerpt(file: &str, text: &str, found: &Diagnostic, paint: Paint) -> String {
    let Diagnostic { code, line, column, field, message, .. } = found;
    let word = if found.is_error() {
        paint.bad(format!("error[{code}]"))
    } else {
        paint.bold(format!("warning[{code}]"))
    };
    let place = if *line == 0 { file.to_owned() } else { format!("{file}:{line}:{column}") };
    let mut told = format!("{}: {word} {field}: {message}", paint.bold(place));
    let margin = " ".repeat(line.to_string().len());
    if let Some((shown, mark)) = marked(text, *line, *column) {
        let bar = paint.faint("|");
        told.push_str(&format!("\n  {} {bar} {shown}", paint.faint(line)));
        told.push_str(&format!("\n  {margin} {bar} {mark}{}", paint.bad("^")));
    }
    if let Some(hint) = &found.hint {
        told.push_str(&format!("\n  {margin} {} {hint}", paint.faint("=")));
    }
    told
}

/// The line without anything that a terminal would act on, and what goes before the mark.
fn marked(text: &str, line: u32, column: u32) -> Option<(String, String)> {
    let row = usize::try_from(line).ok()?.checked_sub(1)?;
    let line = text.lines().nth(row)?;
    let at = usize::try_from(column).ok()?.saturating_sub(1);
    // A long line is shown around the place.
    let skip = at.saturating_sub(WIDTH * 3 / 4);
    let plain = |c: char| match c {
        '\t' => ' ',
        c if c.is_control() || is_invisible(c) => '\u{fffd}',
        c => c,
    };
    let shown: String = line.chars().skip(skip).take(WIDTH).map(plain).collect();
    let before = at.saturating_sub(skip).min(shown.chars().count());
    Some((shown.trim_end().to_owned(), " ".repeat(before)))
}

/// Marks that turn the direction of writing, or take no room: they would hide what is there.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_stands_under_the_place() {
        let (shown, mark) = marked("one\n\ttwo three\n", 2, 6).expect("a line");
        assert_eq!((shown.as_str(), mark.len()), (" two three", 5));
        assert_eq!(marked("one", 9, 1), None);
        assert_eq!(marked("one", 0, 0), None);
    }

    #[test]
    fn long_lines_are_cut_and_nothing_reaches_the_terminal_that_it_would_obey() {
        let text = format!("{}\u{1b}[31m\u{202e}!", "x".repeat(500));
        let (shown, mark) = marked(&text, 1, 502).expect("a line");
        assert!(shown.chars().count() <= WIDTH && !shown.contains(['\u{1b}', '\u{202e}']));
        assert_eq!(shown.chars().nth(mark.len()), Some('['));
    }
}
