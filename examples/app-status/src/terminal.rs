//! Colours, widths and redrawing in place, without a widget library.
//!
//! A [`Line`] is text with [`Ink`], rendered for its output: a terminal gets colours, a pipe or `NO_COLOR`
//! plain text. A [`Screen`] draws each frame over the one before and leaves the last one.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _, Write},
};

/// Style of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// Default.
    Plain,
    /// Emphasised.
    Bold,
    /// Dimmed.
    Dim,
    /// Success.
    Green,
    /// In progress.
    Yellow,
    /// Failure.
    Red,
    /// Heading or hint.
    Blue,
    /// Name.
    Cyan,
}

impl Ink {
    /// The escape code.
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "0",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Red => "31",
            Self::Blue => "34",
            Self::Cyan => "36",
        }
    }
}

/// Line of styled text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line(Vec<(Ink, String)>);

impl Line {
    /// Creates an empty line.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends text.
    #[must_use]
    pub fn then(mut self, ink: Ink, text: impl Into<String>) -> Self {
        self.0.push((ink, text.into()));
        self
    }

    /// Appends another line.
    #[must_use]
    pub fn and(mut self, line: Self) -> Self {
        self.0.extend(line.0);
        self
    }

    /// Appends text, padded to at least this width.
    #[must_use]
    pub fn cell(self, ink: Ink, text: &str, width: usize) -> Self {
        self.then(ink, format!("{text:<width$}"))
    }

    /// The width in columns. All printed characters take one.
    pub fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// Truncates the line to a width.
    #[must_use]
    pub fn fit(self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        let mut fitted = Self::new();
        for (ink, text) in self.0 {
            let text: String = text.chars().take(left).collect();
            left -= text.chars().count();
            fitted.0.push((ink, text));
            if left == 0 {
                break;
            }
        }
        fitted.then(Ink::Dim, "…")
    }

    /// The text without styles.
    pub fn plain(&self) -> String {
        let text: String = self.0.iter().map(|(_, text)| text.as_str()).collect();
        text.trim_end().to_owned()
    }

    /// The text with escape sequences.
    pub fn painted(&self) -> String {
        let mut painted = String::new();
        for (ink, text) in &self.0 {
            match ink {
                Ink::Plain => painted.push_str(text),
                ink => {
                    let _ = write!(painted, "\x1b[{}m{text}\x1b[0m", ink.code());
                }
            }
        }
        painted
    }

    /// The styled pieces.
    pub fn pieces(&self) -> impl Iterator<Item = (Ink, &str)> {
        self.0.iter().map(|(ink, text)| (*ink, text.as_str()))
    }
}

/// Capabilities of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// Whether it is a terminal that can be redrawn.
    pub live: bool,
    /// Whether to use colours.
    pub colour: bool,
}

impl Output {
    /// Detects the capabilities. `NO_COLOR` is respected: see no-color.org.
    pub fn of_stdout() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let live = io::stdout().is_terminal() && set("TERM").is_none_or(|term| term != "dumb");
        Self { live, colour: live && set("NO_COLOR").is_none() }
    }

    /// Renders a line for this output.
    pub fn render(self, line: &Line) -> String {
        if self.colour { line.painted() } else { line.plain() }
    }
}

/// The size of the terminal: columns and rows.
pub fn size() -> (usize, usize) {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(io::stdout())
        && size.ws_col > 0
        && size.ws_row > 0
    {
        return (size.ws_col.into(), size.ws_row.into());
    }
    (100, 40)
}

/// Area of a terminal that is redrawn. Dropping it leaves the last frame.
#[derive(Debug)]
pub struct Screen<W: Write> {
    out: W,
    output: Output,
    drawn: usize,
}

impl<W: Write> Screen<W> {
    /// Creates a screen at the cursor.
    pub fn new(mut out: W, output: Output) -> io::Result<Self> {
        out.write_all(b"\x1b[?25l")?;
        Ok(Self { out, output, drawn: 0 })
    }

    /// Draws a frame over the one before, truncated to the size of the terminal.
    pub fn draw(&mut self, lines: &[Line], (columns, rows): (usize, usize)) -> io::Result<()> {
        let visible = &lines[..lines.len().min(rows.saturating_sub(1))];
        // One write and one synchronised update, where the terminal supports it, avoids flicker.
        let mut frame = String::from("\x1b[?2026h");
        if self.drawn > 0 {
            let _ = write!(frame, "\x1b[{}A\r", self.drawn);
        }
        for line in visible {
            let _ = writeln!(frame, "{}\x1b[K", self.output.render(&line.clone().fit(columns)));
        }
        frame.push_str("\x1b[J\x1b[?2026l");
        self.drawn = visible.len();
        self.out.write_all(frame.as_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Drop for Screen<W> {
    fn drop(&mut self) {
        // A terminal that cannot be written to cannot be restored.
        let _ = self.out.write_all(b"\x1b[?25h").and_then(|()| self.out.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_plain_in_a_pipe_and_coloured_on_a_terminal() {
        let line = Line::new().cell(Ink::Green, "ok", 4).then(Ink::Plain, "done  ");
        assert_eq!(line.plain(), "ok  done");
        assert_eq!(line.painted(), "\x1b[32mok  \x1b[0mdone  ");
        let plain_output = Output { live: true, colour: false };
        assert_eq!(plain_output.render(&line), "ok  done");
    }

    #[test]
    fn long_lines_are_truncated_with_an_ellipsis() {
        let line = Line::new().then(Ink::Red, "abc").then(Ink::Plain, "defgh");
        assert_eq!(line.clone().fit(8).plain(), "abcdefgh");
        assert_eq!(line.clone().fit(6).plain(), "abcde…");
        assert_eq!(line.fit(3).plain(), "ab…");
    }

    #[test]
    fn a_frame_replaces_the_one_before_and_fits_the_terminal() {
        let mut out = Vec::new();
        let lines: Vec<Line> = ["a", "b", "c"].map(|text| Line::new().then(Ink::Plain, text)).into();
        {
            let mut screen = Screen::new(&mut out, Output { live: true, colour: false }).unwrap();
            screen.draw(&lines, (80, 10)).unwrap();
            screen.draw(&lines, (80, 3)).unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        let frames: Vec<&str> = text.split("\x1b[?2026h").collect();
        assert_eq!(frames[1], "a\x1b[K\nb\x1b[K\nc\x1b[K\n\x1b[J\x1b[?2026l");
        assert_eq!(
            frames[2], "\x1b[3A\ra\x1b[K\nb\x1b[K\n\x1b[J\x1b[?2026l\x1b[?25h",
            "and the cursor is back"
        );
    }
}
