//! Files of many hosts or VMs: checked as a whole, then sent in pieces.

use crate::client::{Ask, Client, Connection};
use crate::input;
use crate::output::{Format, Paint, print};
use crate::progress::Progress;
use anyhow::bail;
use cluster::{Dimensions, Name};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use wire::{BulkAnswer, CapacityView, Limits};

/// Documents in one request: a few commits' worth, so that the bar moves.
const PIECE: usize = 1_000;
/// Bytes in one request, far below what the service takes.
const PIECE_BYTES: usize = 4 << 20;
const FAULTS_SHOWN: usize = 20;

/// Sends every document of `file` to `route`. Nothing is sent from a file with a wrong document.
pub(crate) fn load<T: wire::Read>(
    connection: &Connection,
    route: &str,
    noun: &'static str,
    file: &Path,
    dry_run: bool,
) -> anyhow::Result<ExitCode> {
    let documents = input::documents(file)?;
    let client = connection.open();
    check::<T>(&documents, &Limits::single(Arc::new(dimensions(&client)?)))?;
    let mut sum = BulkAnswer { accepted: 0, failed: 0, failures: Vec::new(), revision: 0 };
    let mut progress = Progress::new(noun, documents.len() as u64);
    let mut sent = 0;
    for piece in pieces(&documents) {
        let ask = Ask::post(&["v1", route]).dry_run(dry_run).lines(piece.join("\n").into_bytes());
        let mut answer: BulkAnswer = client.send(&ask)?.read()?;
        answer.failures.iter_mut().for_each(|failure| failure.item += sent);
        sum.accepted += answer.accepted;
        sum.failed += answer.failed;
        sum.failures.extend(answer.failures);
        sum.revision = sum.revision.max(answer.revision);
        sent += piece.len() as u64;
        progress.add(piece.len() as u64);
    }
    drop(progress);
    match connection.output {
        Format::Json => print(serde_json::to_string(&sum)?)?,
        Format::Table => show(&sum, noun, dry_run)?,
    }
    Ok(if sum.failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn show(sum: &BulkAnswer, noun: &str, dry_run: bool) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let would = if dry_run { "would be " } else { "" };
    print(format!("{} {noun} {would}{}", sum.accepted, paint.good("accepted")))?;
    if sum.failed > 0 {
        print(format!("{} {noun} {would}{}", sum.failed, paint.bad("refused")))?;
    }
    for failure in &sum.failures {
        print(format!(
            "  [{}] {}: {} ({})",
            failure.item, failure.id, failure.message, failure.code
        ))?;
    }
    let untold = sum.failed.saturating_sub(sum.failures.len() as u64);
    if untold > 0 {
        print(format!("  and {untold} more"))?;
    }
    Ok(())
}

/// Every fault of every document, by its number from 0.
fn check<T: wire::Read>(documents: &[String], limits: &Limits) -> anyhow::Result<()> {
    let mut faults = Vec::new();
    for (number, document) in documents.iter().enumerate() {
        if let Err(found) = wire::read::<T>(document.as_bytes(), limits) {
            faults.extend(found.into_iter().map(|fault| format!("[{number}] {fault}")));
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    let untold = faults.len().saturating_sub(FAULTS_SHOWN);
    let mut text = format!("nothing was sent, {} faults in the file (invalid_body)", faults.len());
    for fault in faults.iter().take(FAULTS_SHOWN) {
        text.push_str("\n  ");
        text.push_str(fault);
    }
    if untold > 0 {
        text.push_str(&format!("\n  and {untold} more"));
    }
    bail!(text)
}

/// The dimensions that the service knows, by what it says of its capacity.
fn dimensions(client: &Client) -> anyhow::Result<Dimensions> {
    let view: CapacityView = client.send(&Ask::get(&["v1", "cluster", "capacity"]))?.read()?;
    let known = Dimensions::default();
    let names = view.capacity.0.iter().map(|(name, _)| name);
    let extra = names.filter(|name| known.find(name).is_none()).map(|name| Name::new(name));
    Ok(Dimensions::with_extra(extra.collect::<Result<_, _>>()?)?)
}

/// Cuts the documents where one request has enough of them.
fn pieces(documents: &[String]) -> impl Iterator<Item = &[String]> {
    let mut rest = documents;
    std::iter::from_fn(move || {
        let mut bytes = 0usize;
        let fits = |document: &&String| {
            bytes += document.len();
            bytes <= PIECE_BYTES
        };
        let count = rest.iter().take(PIECE).take_while(fits).count().max(1);
        let (piece, after) = rest.split_at_checked(count)?;
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_pieces(lengths: &[usize], expected: &[usize]) {
        let documents: Vec<String> = lengths.iter().map(|bytes| "x".repeat(*bytes)).collect();
        let found: Vec<usize> = pieces(&documents).map(<[String]>::len).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn pieces_hold_everything_once_however_large_it_is() {
        check_pieces(&[], &[]);
        check_pieces(&[1; 2_500], &[1_000, 1_000, 500]);
        check_pieces(&[PIECE_BYTES + 1, 1, PIECE_BYTES - 1, 1], &[1, 2, 1]);
    }
}
