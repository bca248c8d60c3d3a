//! What happened, in words, for the one run in a million that somebody has to read.

use std::collections::VecDeque;

/// Lines that are kept: about three cycles.
const LINES: usize = 60;

/// Written only when a run is told again; otherwise nothing is formatted at all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story {
    lines: Option<VecDeque<String>>,
}

impl Story {
    pub(crate) fn told() -> Story {
        Story { lines: Some(VecDeque::new()) }
    }

    pub(crate) fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            if lines.len() == LINES {
                lines.pop_front();
            }
            lines.push_back(line());
        }
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default().into()
    }
}
