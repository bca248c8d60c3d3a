//! YAML as a small tree with places. JSON is YAML too.
//!
//! Built from parser events rather than through serde, because every finding needs its line and
//! column and one mistake must not hide the next. Anchors and aliases are refused, so a text can
//! not unfold into more than it is.

use crate::At;
use crate::diagnostic::Findings;
use granit_parser::{Event, Options, Parser, ScalarStyle, Span};

/// How deep maps and lists may nest; a policy needs five.
const MAX_DEPTH: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) at: At,
    pub(super) kind: NodeKind,
}

#[derive(Clone, Debug)]
pub(super) enum NodeKind {
    Scalar { text: String, plain: bool },
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl Node {
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.kind, NodeKind::Scalar { text, plain: true }
            if ["", "~", "null"].contains(&text.as_str()))
    }

    pub(super) fn describe(&self) -> &'static str {
        match self.kind {
            NodeKind::Scalar { .. } => "a single value",
            NodeKind::List(_) => "a list",
            NodeKind::Map(_) => "a map",
        }
    }
}

/// The tree of the only document in `text`; `None` after a finding.
pub(super) fn tree(text: &str, findings: &mut Findings) -> Option<Node> {
    let mut options = Options::default();
    options.flow_nesting_limit = MAX_DEPTH;
    options.block_nesting_limit = MAX_DEPTH;
    options.disallow_directives = true;
    let mut builder = Builder { open: Vec::new(), root: None };
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = match next {
            Ok(next) => next,
            Err(error) => {
                let marker = error.marker();
                let at = At { line: number(marker.line()), column: number(marker.col() + 1) };
                let message = error.to_string();
                // The place is told beside the message, not in it.
                let message = message.split(" at char ").next().unwrap_or(&message);
                findings.error("yaml-syntax", at, "policy", message);
                return None;
            }
        };
        if let Err((at, message)) = builder.take(event, span) {
            findings.error("yaml-syntax", at, "policy", message);
            return None;
        }
    }
    if builder.root.is_none() {
        findings.error("missing-header", At { line: 1, column: 1 }, "policy", "the text is empty");
    }
    builder.root
}

/// Collections that are not closed yet; in a map, a key waits for its value.
enum Open {
    List(At, Vec<Node>),
    Map(At, Vec<(Node, Node)>, Option<Node>),
}

struct Builder {
    open: Vec<Open>,
    root: Option<Node>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), (At, &'static str)> {
        let mut at = place(span);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                refuse(at, anchor, tag.is_some())?;
                let plain = style == ScalarStyle::Plain;
                match style {
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => at.column += 1,
                    // The text of a block begins on the line after its mark.
                    ScalarStyle::Literal | ScalarStyle::Folded => at.line += 1,
                    ScalarStyle::Plain => {}
                }
                self.put(Node { at, kind: NodeKind::Scalar { text: text.into_owned(), plain } })
            }
            Event::SequenceStart(_, anchor, tag) => {
                refuse(at, anchor, tag.is_some())?;
                self.push(Open::List(at, Vec::new()), at)
            }
            Event::MappingStart(_, anchor, tag) => {
                refuse(at, anchor, tag.is_some())?;
                self.push(Open::Map(at, Vec::new(), None), at)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(at, items)) => self.put(Node { at, kind: NodeKind::List(items) }),
                Some(Open::Map(at, pairs, None)) => {
                    self.put(Node { at, kind: NodeKind::Map(pairs) })
                }
                _ => Err((at, "a key has no value")),
            },
            Event::Alias(_) => Err((at, "aliases are not allowed; write the value again")),
            _ => Ok(()),
        }
    }

    fn push(&mut self, open: Open, at: At) -> Result<(), (At, &'static str)> {
        if self.open.len() == MAX_DEPTH {
            return Err((at, "nested too deep"));
        }
        self.open.push(open);
        Ok(())
    }

    fn put(&mut self, node: Node) -> Result<(), (At, &'static str)> {
        match self.open.last_mut() {
            None if self.root.is_some() => Err((node.at, "one policy per text is allowed")),
            None => {
                self.root = Some(node);
                Ok(())
            }
            Some(Open::List(_, items)) => {
                items.push(node);
                Ok(())
            }
            Some(Open::Map(_, pairs, waiting)) => {
                match waiting.take() {
                    None => *waiting = Some(node),
                    Some(key) => pairs.push((key, node)),
                }
                Ok(())
            }
        }
    }
}

fn refuse(at: At, anchor: usize, tagged: bool) -> Result<(), (At, &'static str)> {
    match (anchor, tagged) {
        (0, false) => Ok(()),
        (0, true) => Err((at, "tags are not allowed")),
        _ => Err((at, "anchors are not allowed; write the value where it is needed")),
    }
}

fn place(span: Span) -> At {
    At { line: number(span.start.line()), column: number(span.start.col().saturating_add(1)) }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
