//! Series from a file: `id,v1,v2,...` a line.

use anyhow::{Context, bail};
use flate2::read::MultiGzDecoder;
use std::io::Read;
use std::path::Path;

/// A series as it stands in the file; missing samples are `NaN`.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) values: Vec<f64>,
}

/// Two gigabytes of text: a million series of a day in five-minute steps.
const MOST_BYTES: u64 = 2 << 30;

/// Reads all series, unpacking what is packed.
pub(crate) fn series(path: &Path) -> anyhow::Result<Vec<Row>> {
    let mut bytes = crate::input::read(path)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        let mut unpack = MultiGzDecoder::new(bytes.as_slice()).take(MOST_BYTES + 1);
        unpack
            .read_to_end(&mut unpacked)
            .with_context(|| format!("cannot unpack {}", path.display()))?;
        bytes = unpacked;
    }
    if bytes.len() as u64 > MOST_BYTES {
        bail!("{} holds more than {MOST_BYTES} bytes: split it", path.display());
    }
    let text = std::str::from_utf8(&bytes)
        .with_context(|| format!("{} is not UTF-8 text", path.display()))?;
    parse(text).with_context(|| format!("in {}", path.display()))
}

fn parse(text: &str) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let mut cells = line.split(',');
        let id = cells.next().unwrap_or_default().trim().trim_matches('"').to_owned();
        if id.is_empty() {
            bail!("line {}: there is no id before the first comma", number + 1);
        }
        let mut values = Vec::new();
        for (place, cell) in cells.enumerate() {
            let cell = cell.trim();
            values.push(match cell {
                "" | "NA" | "null" | "None" => f64::NAN,
                _ => cell.parse().with_context(|| {
                    format!("line {}, series {id}: value {}, {cell:?}, is not a number; leave it empty if it is missing", number + 1, place + 1)
                })?,
            });
        }
        rows.push(Row { id, values });
    }
    // Ragged tables are padded at the end by many programs; that is not a gap.
    if rows.len() > 1 {
        for row in &mut rows {
            let known = row.values.iter().rposition(|value| !value.is_nan()).map_or(0, |at| at + 1);
            row.values.truncate(known);
        }
    }
    if rows.is_empty() {
        bail!("there is no series");
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ragged_lines_and_gaps_are_read() {
        let rows = parse("a,1,2.5,,\n\n\"b\", 3 ,NA,inf\n").expect("series");
        assert_eq!(rows[0], Row { id: "a".into(), values: vec![1.0, 2.5] });
        assert_eq!(rows[1].id, "b");
        assert!(rows[1].values[1].is_nan() && rows[1].values[2].is_infinite());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let error = parse("a,1\nb,2,x7\n").expect_err("not a number").to_string();
        assert!(error.contains("line 2, series b: value 2, \"x7\""), "{error}");
        assert!(parse("\n").is_err());
        assert!(parse(",1,2").is_err());
    }
}
