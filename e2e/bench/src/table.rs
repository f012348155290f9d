//! Columns of text.

use std::fmt;

/// Rows of cells: the first column is aligned to the left, all others to the right.
#[derive(Clone, Debug, Default)]
pub(super) struct FiguresTable(Vec<Vec<String>>);

impl FiguresTable {
    /// A table with these headings.
    pub(super) fn new<const COLUMNS: usize>(headings: [&str; COLUMNS]) -> Self {
        Self(vec![headings.map(str::to_owned).into()])
    }

    /// Adds a row.
    pub(super) fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) {
        self.0.push(cells.into());
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.0.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

impl fmt::Display for FiguresTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.0 {
            for (column, cell) in row.iter().enumerate() {
                let width = self.width(column);
                match column {
                    0 => write!(f, "{cell:<width$}")?,
                    _ => write!(f, "  {cell:>width$}")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let mut table = FiguresTable::new(["what", "n"]);
        table.row(["ä long name".to_owned(), "1".to_owned()]);
        table.row(["short".to_owned(), "1000".to_owned()]);
        let expected = "what            n\nä long name     1\nshort        1000\n";
        assert_eq!(table.to_string(), expected);
    }
}
