//! Tables of values with commas between them and names in the first line, packed by gzip or not.

use flate2::read::MultiGzDecoder;
use std::io::{self, Read};

/// The largest text that is unpacked: a file that grows without end is somebody's joke.
const LARGEST: u64 = 1 << 30;

/// What is wrong with a file, by line and column.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("not readable: {0}")]
    Unreadable(#[from] io::Error),
    #[error("no column {0:?} in the first line")]
    NoColumn(&'static str),
    #[error("line {line}: {found} values where the first line has {expected}")]
    Ragged { line: usize, found: usize, expected: usize },
    #[error("line {line}, {column}: {value:?} is not {wanted}")]
    Value { line: usize, column: &'static str, value: String, wanted: &'static str },
    #[error("{0}")]
    Meaning(String),
}

/// The text of a file, unpacked if it begins as gzip does.
pub fn text(bytes: &[u8]) -> Result<String, TableError> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return String::from_utf8(bytes.to_vec()).map_err(|error| io::Error::other(error).into());
    }
    let mut text = String::new();
    MultiGzDecoder::new(bytes).take(LARGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// The lines after the first, with columns by name.
#[derive(Debug)]
pub struct Table<'a> {
    names: Vec<&'a str>,
    rows: Vec<Vec<&'a str>>,
}

impl<'a> Table<'a> {
    /// Reads all lines; empty ones are left out.
    pub fn read(text: &'a str) -> Result<Self, TableError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let names: Vec<&str> =
            lines.next().map_or_else(Vec::new, |(_, line)| line.trim().split(',').collect());
        let mut rows = Vec::new();
        for (line, values) in lines {
            let values: Vec<&str> = values.trim().split(',').collect();
            if values.len() != names.len() {
                return Err(TableError::Ragged {
                    line: line + 1,
                    found: values.len(),
                    expected: names.len(),
                });
            }
            rows.push(values);
        }
        Ok(Self { names, rows })
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A column that must be there.
    pub fn column(&self, name: &'static str) -> Result<Column<'_>, TableError> {
        self.optional(name).ok_or(TableError::NoColumn(name))
    }

    /// A column that some files have.
    pub fn optional(&self, name: &'static str) -> Option<Column<'_>> {
        let at = self.names.iter().position(|other| *other == name)?;
        Some(Column { rows: &self.rows, at, name })
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    rows: &'a [Vec<&'a str>],
    at: usize,
    name: &'static str,
}

impl<'a> Column<'a> {
    pub fn text(&self, row: usize) -> &'a str {
        self.rows[row][self.at]
    }

    /// A number of at most `most`.
    pub fn number(&self, row: usize, most: u32) -> Result<u32, TableError> {
        let value = self.text(row);
        value.parse().ok().filter(|number| *number <= most).ok_or_else(|| TableError::Value {
            // The first line has the names, and lines count from 1.
            line: row + 2,
            column: self.name,
            value: value.to_owned(),
            wanted: "a whole number in range",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn columns_are_found_by_name_whatever_their_order() {
        let table = Table::read("b,a\n1,2\n\n3,4\n").unwrap();
        let column = table.column("a").unwrap();
        assert_eq!((table.len(), column.number(1, 10).unwrap()), (2, 4));
    }

    #[test]
    fn faults_name_line_and_column() {
        let table = Table::read("a\n1\nx\n").unwrap();
        let fault = |row: usize, most: u32| {
            table.column("a").unwrap().number(row, most).unwrap_err().to_string()
        };
        assert_eq!(fault(1, 9), "line 3, a: \"x\" is not a whole number in range");
        assert_eq!(fault(0, 0), "line 2, a: \"1\" is not a whole number in range");
        assert_eq!(table.column("z").unwrap_err().to_string(), "no column \"z\" in the first line");
        assert_eq!(
            Table::read("a,b\n1\n").unwrap_err().to_string(),
            "line 2: 1 values where the first line has 2"
        );
    }

    #[test]
    fn packed_and_plain_text_are_read_alike() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(b"a\n1\n").unwrap();
        assert_eq!(text(&packer.finish().unwrap()).unwrap(), text(b"a\n1\n").unwrap());
        assert!(text(&[0x1f, 0x8b, 0]).is_err());
    }
}
