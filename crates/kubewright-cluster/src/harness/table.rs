//! Text tables.

use std::fmt::{self, Display, Write as _};

/// Rows with aligned columns; the last column has no padding.
pub(super) struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(super) fn new() -> Self {
        Self { rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, indent: &str) -> fmt::Result {
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..N).map(width).collect();
        for row in &self.rows {
            let mut line = indent.to_owned();
            for (column, cell) in row.iter().enumerate() {
                if column + 1 == N {
                    line.push_str(cell);
                } else if widths[column] > 0 {
                    write!(line, "{cell:<width$}  ", width = widths[column])?;
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Shortens a text to one line of at most `limit` characters.
pub(super) fn short(text: &impl Display, limit: usize) -> String {
    let text = text.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= limit {
        return text;
    }
    let mut cut: String = text.chars().take(limit.saturating_sub(1)).collect();
    cut.push('…');
    cut
}
