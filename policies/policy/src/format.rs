//! Documents back to text, in either notation.
//!
//! What is written reads back as the same document. Defaults are written out, so that the text
//! means the same when a rule is moved.

mod dsl;
mod yaml;

use crate::read::Syntax;
use crate::{Document, Expr, ExprKind};

/// Writes a document.
pub fn format(document: &Document, syntax: Syntax) -> String {
    match syntax {
        Syntax::Dsl => dsl::document(document),
        Syntax::Yaml => yaml::document(document),
    }
}

/// Writes an expression with no more brackets than it needs.
impl std::fmt::Display for Expr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let side = |f: &mut std::fmt::Formatter<'_>, expr: &Expr, least: u8| match &expr.kind {
            ExprKind::Binary(op, ..) if op.rank() < least => write!(f, "({expr})"),
            _ => write!(f, "{expr}"),
        };
        match &self.kind {
            ExprKind::Bool(value) => write!(f, "{value}"),
            ExprKind::Number(value) => write!(f, "{value}"),
            ExprKind::Text(value) => f.write_str(&crate::expr::quoted(value)),
            ExprKind::Attribute(path) => write!(f, "{path}"),
            ExprKind::Parameter(name) if crate::expr::is_identifier(name) => {
                write!(f, "param.{name}")
            }
            ExprKind::Parameter(name) => write!(f, "param[{}]", crate::expr::quoted(name)),
            ExprKind::Not(inner) => {
                f.write_str("!")?;
                side(f, inner, u8::MAX)
            }
            ExprKind::Negate(inner) => {
                f.write_str("-")?;
                side(f, inner, u8::MAX)
            }
            ExprKind::Binary(op, left, right) => {
                side(f, left, op.rank())?;
                write!(f, " {} ", op.symbol())?;
                side(f, right, op.rank().saturating_add(1))
            }
        }
    }
}
