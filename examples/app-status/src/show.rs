//! The board on a terminal, as plain lines or as JSON.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    time::Duration,
};

use jiff::Timestamp;
use serde::Serialize;

use crate::{
    Board, Row, State,
    options::Format,
    terminal::{self, Ink, Line, Output, Screen},
};

/// Changes within this time are drawn together.
const FRAME: Duration = Duration::from_millis(50);
/// Interval of redrawing ages.
const TICK: Duration = Duration::from_secs(1);

/// Shows the board until the future is dropped or the reader closes the pipe.
pub async fn live(board: &Board, format: Format, output: Output) -> io::Result<()> {
    let mut changes = board.changes();
    let mut watching = Watching::default();
    let mut screen = match format {
        Format::Table if output.live => Some(Screen::new(io::stdout(), output)?),
        _ => None,
    };
    loop {
        if let Some(screen) = &mut screen {
            let mut lines = table(&board.rows(), Timestamp::now());
            lines.extend(missing(board));
            screen.draw(&lines, terminal::size())?;
        } else {
            let mut out = io::stdout().lock();
            for change in watching.changes(board.rows()) {
                match format {
                    Format::Table => writeln!(out, "{}", output.render(&change.line()))?,
                    Format::Json => writeln!(out, "{}", serde_json::to_string(&change)?)?,
                }
            }
            out.flush()?;
        }
        // At most one frame per change, and one a second for the ages.
        let _ = tokio::time::timeout(TICK, changes.next()).await;
        tokio::time::sleep(FRAME).await;
    }
}

/// Prints the board once, when it is complete.
pub async fn once(board: &Board, format: Format, output: Output, out: &mut impl Write) -> io::Result<()> {
    let mut changes = board.changes();
    while !board.is_complete() {
        let _ = tokio::time::timeout(FRAME, changes.next()).await;
    }
    let rows = board.rows();
    match format {
        Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(&rows)?),
        Format::Table => {
            let lines = table(&rows, Timestamp::now()).into_iter().chain(missing(board));
            lines.into_iter().try_for_each(|line| writeln!(out, "{}", output.render(&line)))
        }
    }
}

/// The rows as a table with a heading.
pub fn table(rows: &[Row], now: Timestamp) -> Vec<Line> {
    if rows.is_empty() {
        return vec![Line::new().then(Ink::Dim, "nothing to show")];
    }
    let longest = |heading: &str, text: &dyn Fn(&Row) -> usize| {
        rows.iter().map(text).fold(heading.len(), usize::max) + 2
    };
    let kind = longest("KIND", &|row| row.kind.chars().count());
    let name = longest("NAME", &|row| row.path().chars().count());
    // Wide enough for the common states, so that a redrawn table does not jump.
    let state = longest(State::Progressing.word(), &|row| row.health.state.word().len());
    let ready = longest("READY", &|row| row.health.ready.as_ref().map_or(0, String::len));
    let heading =
        format!("  {:<kind$}{:<name$}{:<state$}{:<ready$}{:<6}", "KIND", "NAME", "STATE", "READY", "AGE");
    let mut lines = vec![Line::new().then(Ink::Dim, heading)];
    lines.extend(rows.iter().map(|row| {
        let (mark, ink) = mark(row.health.state);
        Line::new()
            .then(ink, format!("{mark} "))
            .cell(Ink::Plain, &row.kind, kind)
            .cell(Ink::Bold, &row.path(), name)
            .cell(ink, row.health.state.word(), state)
            .cell(Ink::Plain, row.health.ready.as_deref().unwrap_or_default(), ready)
            .cell(Ink::Dim, &row.created.map(|created| age(created, now)).unwrap_or_default(), 6)
            .then(Ink::Dim, row.health.message.clone())
    }));
    lines
}

fn missing(board: &Board) -> impl Iterator<Item = Line> {
    board.missing().into_iter().map(|(word, why)| {
        Line::new().then(Ink::Yellow, "? ").then(Ink::Bold, word).then(Ink::Dim, format!("  {why}"))
    })
}

/// The symbol and colour of a state.
pub fn mark(state: State) -> (&'static str, Ink) {
    match state {
        State::Ready => ("●", Ink::Green),
        State::Done => ("✔", Ink::Green),
        State::Progressing => ("◌", Ink::Yellow),
        State::NotReady => ("○", Ink::Yellow),
        State::Suspended => ("‖", Ink::Blue),
        State::Failed => ("✖", Ink::Red),
        State::Terminating => ("◦", Ink::Dim),
        State::Unknown => ("?", Ink::Dim),
    }
}

/// The age as in kubectl: `42s`, `3m`, `2h`, `5d`.
pub fn age(created: Timestamp, now: Timestamp) -> String {
    match now.duration_since(created).as_secs().max(0) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds / 60),
        seconds @ 7200..172_800 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// Change of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The type of change.
    pub change: What,
    /// The current or last row.
    #[serde(flatten)]
    pub row: Row,
}

/// Type of a row's change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// Added.
    Added,
    /// Changed.
    Changed,
    /// Deleted.
    Removed,
}

impl Change {
    /// Formats the change as a line.
    pub fn line(&self) -> Line {
        let Row { kind, health, .. } = &self.row;
        let (mark, ink) = mark(health.state);
        let (mark, ink, word) = match self.change {
            What::Removed => ("-", Ink::Dim, "Gone"),
            What::Added | What::Changed => (mark, ink, health.state.word()),
        };
        let line = Line::new()
            .then(ink, format!("{mark} "))
            .cell(ink, word, 13)
            .then(Ink::Plain, format!("{kind} "))
            .then(Ink::Bold, self.row.path());
        match (self.change, &health.ready) {
            (What::Removed, _) => line,
            (_, Some(ready)) => {
                line.then(Ink::Plain, format!(" {ready}")).then(Ink::Dim, format!(" {}", health.message))
            }
            (_, None) => line.then(Ink::Dim, format!(" {}", health.message)),
        }
    }
}

/// Remembers a board to compute its changes.
#[derive(Debug, Default)]
pub struct Watching(BTreeMap<(String, String, String), Row>);

impl Watching {
    /// Returns the changes since the last call: existing rows in their order, then deleted ones.
    pub fn changes(&mut self, rows: Vec<Row>) -> Vec<Change> {
        let mut before = std::mem::take(&mut self.0);
        let mut changes = Vec::new();
        for row in rows {
            let key = (row.api_version.clone(), row.kind.clone(), row.path());
            let change = match before.remove(&key) {
                None => Some(What::Added),
                Some(held) if held != row => Some(What::Changed),
                Some(_) => None,
            };
            changes.extend(change.map(|change| Change { change, row: row.clone() }));
            self.0.insert(key, row);
        }
        changes.extend(before.into_values().map(|row| Change { change: What::Removed, row }));
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Health;

    fn row(name: &str, state: State, ready: Option<&str>) -> Row {
        let mut health = Health::new(state, "because");
        health.ready = ready.map(str::to_owned);
        Row {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
            health,
            created: Some("2026-01-01T00:00:00Z".parse().unwrap()),
        }
    }

    #[test]
    fn a_table_is_aligned_to_its_longest_entries() {
        let rows = [row("a", State::Ready, Some("1/1")), row("longer", State::Progressing, None)];
        let lines: Vec<String> =
            table(&rows, "2026-01-01T00:05:00Z".parse().unwrap()).iter().map(Line::plain).collect();
        assert_eq!(
            lines,
            [
                "  KIND        NAME         STATE        READY  AGE",
                "● Deployment  shop/a       Ready        1/1    5m    because",
                "◌ Deployment  shop/longer  Progressing         5m    because",
            ]
        );
        assert_eq!(table(&[], Timestamp::UNIX_EPOCH)[0].plain(), "nothing to show");
    }

    #[test]
    fn only_changed_rows_are_reported() {
        let mut watching = Watching::default();
        let formatted = |changes: Vec<Change>| -> Vec<String> {
            changes.iter().map(|change| change.line().plain()).collect()
        };
        let first = vec![row("a", State::Progressing, Some("0/1")), row("b", State::Ready, None)];
        assert_eq!(
            formatted(watching.changes(first.clone())),
            ["◌ Progressing  Deployment shop/a 0/1 because", "● Ready        Deployment shop/b because"]
        );
        assert_eq!(formatted(watching.changes(first)), Vec::<String>::new());
        let second = watching.changes(vec![row("a", State::Ready, Some("1/1"))]);
        assert_eq!(
            serde_json::to_value(&second[0]).unwrap(),
            serde_json::json!({"change": "changed", "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop",
                "name": "a", "state": "Ready", "ready": "1/1", "message": "because", "created": "2026-01-01T00:00:00Z"})
        );
        assert_eq!(
            formatted(second),
            ["● Ready        Deployment shop/a 1/1 because", "- Gone         Deployment shop/b"]
        );
    }

    #[test]
    fn ages_are_formatted_as_in_kubectl() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        for (seconds, said) in [(0, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (172_800, "2d")] {
            assert_eq!(age(Timestamp::from_second(1_000_000 - seconds).unwrap(), now), said);
        }
    }
}
