//! Tables of limited width.

use std::fmt;

use windlass_object::text::OneLine;

/// Maximum width in columns.
const SCREEN: usize = 120;

/// Column separator.
const GAP: &str = "  ";

/// Marks a cut cell.
const CUT: char = '…';

/// A table of at most 120 columns. The widest cells are cut first.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table with these column headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        let headings = headings.iter().map(|heading| (*heading).to_owned()).collect();
        Self { rows: vec![headings] }
    }

    /// Adds a row. An empty cell is shown as `-`.
    pub(crate) fn add<const N: usize>(&mut self, cells: [&dyn fmt::Display; N]) {
        let cells = cells.map(|cell| match OneLine(&cell.to_string()).to_string() {
            empty if empty.is_empty() => "-".to_owned(),
            cell => cell,
        });
        self.rows.push(cells.into());
    }

    /// Returns the width of each column.
    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let mut widths: Vec<usize> = (0..columns).map(width).collect();
        let screen = SCREEN.saturating_sub(columns.saturating_sub(1) * GAP.len());
        while widths.iter().sum::<usize>() > screen {
            // The last of the widest columns: messages come last.
            let Some(widest) = widths.iter_mut().max().filter(|width| **width > 1) else {
                break;
            };
            *widest -= 1;
        }
        widths
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for row in &self.rows {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{:width$}", cut(cell, *width)))
                .collect();
            writeln!(f, "{}", cells.join(GAP).trim_end())?;
        }
        Ok(())
    }
}

/// Returns the first `width` characters, the last of them a mark if there are more.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    kept.chain([CUT]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*};

    use super::*;
    use windlass_object::text::is_hostile;

    #[test]
    fn columns_fit_their_cells() {
        let mut table = Table::new(&["NAME", "N"]);
        table.add([&"a", &1]);
        table.add([&"longer", &""]);
        assert_eq!(table.to_string(), "NAME    N\na       1\nlonger  -\n");
    }

    #[test]
    fn the_widest_cell_is_cut() {
        let mut table = Table::new(&["NAME", "MESSAGE"]);
        table.add([&"short", &"m".repeat(200)]);
        let text = table.to_string();
        let line = text.lines().nth(1).unwrap();
        assert_eq!(line.chars().count(), SCREEN);
        assert!(line.starts_with("short  mmm") && line.ends_with('…'), "{line}");
    }

    proptest! {
        #[test]
        fn any_table_fits_and_stays_a_table(
            rows in collection::vec(collection::vec("(?s).{0,90}", 9), 1..5)
        ) {
            let mut table = Table::new(&["HEADING"; 9]);
            for row in &rows {
                table.add::<9>(std::array::from_fn(|column| &row[column] as &dyn fmt::Display));
            }
            let text = table.to_string();
            prop_assert_eq!(text.lines().count(), rows.len() + 1);
            for line in text.lines() {
                prop_assert!(line.chars().count() <= SCREEN, "{}", line);
                prop_assert!(!line.chars().any(is_hostile), "{:?}", line);
            }
        }
    }
}
