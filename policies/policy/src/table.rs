//! Host attributes as columns: one row per host, one column per attribute.
//!
//! A column takes the kind of its first value; if values of another kind come, it holds values as
//! they are, which is slower to evaluate and means the same. Strings are numbered by a dictionary
//! that all columns share.

use crate::Value;
use smol_str::SmolStr;
use std::collections::HashMap;

/// Rows per word of a set.
pub(crate) const LANES: usize = 64;
/// The number of the string that is not there.
pub(crate) const NO_TEXT: u32 = u32::MAX;
/// The number of strings that no row has: equal to none of theirs.
pub(crate) const FOREIGN_TEXT: u32 = u32::MAX - 1;

/// The values of host attributes, by row and column.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: usize,
    columns: Vec<Column>,
    texts: Dictionary,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum Column {
    /// Nothing but nulls so far.
    #[default]
    Empty,
    Numbers {
        values: Vec<f64>,
        there: Vec<u64>,
    },
    Texts(Vec<u32>),
    Bools {
        values: Vec<u64>,
        there: Vec<u64>,
    },
    Mixed(Vec<Value>),
}

#[derive(Clone, Debug, Default)]
struct Dictionary {
    numbers: HashMap<SmolStr, u32>,
    texts: Vec<SmolStr>,
}

impl Table {
    /// A table of nulls.
    pub fn new(rows: usize, columns: usize) -> Self {
        Self { rows, columns: vec![Column::Empty; columns], texts: Dictionary::default() }
    }

    /// A table whose cells are what `value` says of a row and a column.
    pub fn fill(rows: usize, columns: usize, value: &mut dyn FnMut(usize, usize) -> Value) -> Self {
        let mut table = Self::new(rows, columns);
        for row in 0..rows {
            for column in 0..columns {
                table.set(row, column, value(row, column));
            }
        }
        table
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Changes the number of rows; new ones are null.
    pub fn resize(&mut self, rows: usize) {
        self.rows = rows;
        for column in &mut self.columns {
            column.resize(rows);
        }
    }

    /// Puts `value` into a cell. Cells outside of the table are left alone.
    pub fn set(&mut self, row: usize, column: usize, value: Value) {
        let value = if let Value::Number(number) = value { Value::number(number) } else { value };
        let rows = self.rows;
        let Some(column) = self.columns.get_mut(column).filter(|_| row < rows) else { return };
        if matches!(column, Column::Empty) {
            *column = match value {
                Value::Null => return,
                Value::Number(_) => Column::Numbers { values: Vec::new(), there: Vec::new() },
                Value::Text(_) => Column::Texts(Vec::new()),
                Value::Bool(_) => Column::Bools { values: Vec::new(), there: Vec::new() },
            };
            column.resize(rows);
        }
        if !column.put(row, &value, &mut self.texts) {
            let values = (0..rows).map(|row| column.value(row, &self.texts)).collect();
            *column = Column::Mixed(values);
            column.put(row, &value, &mut self.texts);
        }
        // Hosts come and go; their names must not stay for ever.
        if self.texts.texts.len() > 1024 + 2 * rows * self.columns.len() {
            self.renumber();
        }
    }

    pub fn value(&self, row: usize, column: usize) -> Value {
        self.columns.get(column).map_or(Value::Null, |column| column.value(row, &self.texts))
    }

    pub(crate) fn column(&self, column: usize) -> &Column {
        self.columns.get(column).unwrap_or(&Column::Empty)
    }

    /// The number that rows with this text have.
    pub(crate) fn text_number(&self, text: &SmolStr) -> u32 {
        self.texts.numbers.get(text).copied().unwrap_or(FOREIGN_TEXT)
    }

    /// Numbers the strings that are in use anew, and forgets the others.
    fn renumber(&mut self) {
        let mut kept = Dictionary::default();
        for column in &mut self.columns {
            let Column::Texts(numbers) = column else { continue };
            for number in numbers {
                if let Some(text) = self.texts.texts.get(*number as usize) {
                    *number = kept.number(text);
                }
            }
        }
        self.texts = kept;
    }
}

impl Dictionary {
    fn number(&mut self, text: &SmolStr) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        // Rows are far fewer than numbers, and unused strings are forgotten in time.
        let number = u32::try_from(self.texts.len()).unwrap_or(NO_TEXT);
        self.numbers.insert(text.clone(), number);
        self.texts.push(text.clone());
        number
    }
}

impl Column {
    fn resize(&mut self, rows: usize) {
        let words = rows.div_ceil(LANES);
        match self {
            Column::Empty => {}
            Column::Numbers { values, there } => {
                values.resize(rows, 0.0);
                resize_bits(there, rows, words);
            }
            Column::Texts(numbers) => numbers.resize(rows, NO_TEXT),
            Column::Bools { values, there } => {
                resize_bits(values, rows, words);
                resize_bits(there, rows, words);
            }
            Column::Mixed(values) => values.resize(rows, Value::Null),
        }
    }

    /// Stores the value if the column can; `false` when it is of another kind.
    fn put(&mut self, row: usize, value: &Value, texts: &mut Dictionary) -> bool {
        match (self, value) {
            (Column::Numbers { values, there }, Value::Number(number)) => {
                store(values, row, *number);
                put_bit(there, row, true);
            }
            (Column::Numbers { there, .. }, Value::Null) => put_bit(there, row, false),
            (Column::Texts(numbers), Value::Text(text)) => store(numbers, row, texts.number(text)),
            (Column::Texts(numbers), Value::Null) => store(numbers, row, NO_TEXT),
            (Column::Bools { values, there }, Value::Bool(value)) => {
                put_bit(values, row, *value);
                put_bit(there, row, true);
            }
            (Column::Bools { values, there }, Value::Null) => {
                put_bit(values, row, false);
                put_bit(there, row, false);
            }
            (Column::Mixed(values), value) => store(values, row, value.clone()),
            _ => return false,
        }
        true
    }

    fn value(&self, row: usize, texts: &Dictionary) -> Value {
        match self {
            Column::Empty => Value::Null,
            Column::Numbers { values, there } => {
                let value = bit(there, row).then(|| values.get(row)).flatten();
                value.map_or(Value::Null, |number| Value::Number(*number))
            }
            Column::Texts(numbers) => {
                let text = numbers.get(row).and_then(|number| texts.texts.get(*number as usize));
                text.map_or(Value::Null, |text| Value::Text(text.clone()))
            }
            Column::Bools { values, there } => {
                if bit(there, row) {
                    Value::Bool(bit(values, row))
                } else {
                    Value::Null
                }
            }
            Column::Mixed(values) => values.get(row).cloned().unwrap_or_default(),
        }
    }
}

fn store<T>(values: &mut [T], row: usize, value: T) {
    if let Some(cell) = values.get_mut(row) {
        *cell = value;
    }
}

fn bit(bits: &[u64], row: usize) -> bool {
    bits.get(row / LANES).is_some_and(|word| word >> (row % LANES) & 1 == 1)
}

fn put_bit(bits: &mut [u64], row: usize, value: bool) {
    if let Some(word) = bits.get_mut(row / LANES) {
        let mask = 1 << (row % LANES);
        *word = if value { *word | mask } else { *word & !mask };
    }
}

/// Keeps the bits beyond the last row clear.
fn resize_bits(bits: &mut Vec<u64>, rows: usize, words: usize) {
    bits.resize(words, 0);
    if let Some(last) = bits.last_mut().filter(|_| !rows.is_multiple_of(LANES)) {
        *last &= (1 << (rows % LANES)) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_holds_what_was_put_into_it() {
        let mut table = Table::new(130, 2);
        for (row, value) in [(0, Value::from(1.5)), (129, Value::from(2.0)), (1, Value::Null)] {
            table.set(row, 0, value.clone());
            assert_eq!(table.value(row, 0), value);
        }
        table.set(5, 1, Value::text("a"));
        table.set(6, 1, Value::Bool(true));
        let read = [4, 5, 6].map(|row| table.value(row, 1));
        assert_eq!(read, [Value::Null, Value::text("a"), Value::Bool(true)]);
        table.set(500, 1, Value::Bool(true));
        assert_eq!(table.value(500, 1), Value::Null);
    }

    #[test]
    fn rows_that_come_back_are_empty() {
        let mut table = Table::new(100, 3);
        for row in 0..100 {
            table.set(row, 0, Value::Bool(true));
            table.set(row, 1, Value::from(1.0));
            table.set(row, 2, Value::text("x"));
        }
        table.resize(70);
        table.resize(100);
        let read =
            [69, 70, 99].map(|row| [0, 1, 2].map(|column| table.value(row, column).is_null()));
        assert_eq!(read, [[false; 3], [true; 3], [true; 3]]);
    }

    #[test]
    fn names_of_hosts_that_left_are_forgotten() {
        let mut table = Table::new(4, 1);
        for round in 0..10_000 {
            table.set(round % 4, 0, Value::from(format!("host-{round}").as_str()));
        }
        assert!(table.texts.texts.len() <= 1100, "{}", table.texts.texts.len());
        assert_eq!(table.value(3, 0), Value::text("host-9999"));
    }
}
