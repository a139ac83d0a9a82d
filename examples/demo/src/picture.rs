//! The screen as an SVG, for the README.

use std::fmt::Write as _;

use app_status::terminal::{Ink, Line};

/// Size of a character, and margin.
const WIDTH: f64 = 7.8;
const HEIGHT: f64 = 18.0;
const MARGIN: f64 = 18.0;

/// Draws lines, truncated to this many columns.
pub fn svg(lines: &[Line], columns: usize) -> String {
    let lines: Vec<Line> = lines.iter().map(|line| line.clone().fit(columns)).collect();
    let columns = u32::try_from(columns).unwrap_or(u32::MAX);
    let count = u32::try_from(lines.len()).unwrap_or(u32::MAX);
    let (width, height) =
        (f64::from(columns) * WIDTH + 2.0 * MARGIN, f64::from(count) * HEIGHT + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"The demo on a terminal\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"10\" fill=\"#16181d\"/>\n\
         <g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"13\" \
         xml:space=\"preserve\">\n"
    );
    let mut baseline = MARGIN + 13.0;
    for line in &lines {
        if !line.plain().is_empty() {
            let _ = write!(svg, "<text x=\"{MARGIN}\" y=\"{baseline:.0}\">");
            let mut column = 0_u32;
            for (ink, text) in line.pieces() {
                // Each piece has a position, so that no font misaligns the columns.
                let x = MARGIN + f64::from(column) * WIDTH;
                column += u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
                if !text.trim().is_empty() {
                    let _ = write!(svg, "<tspan x=\"{x:.1}\"{}>{}</tspan>", style(ink), escaped(text));
                }
            }
            svg.push_str("</text>\n");
        }
        baseline += HEIGHT;
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

fn style(ink: Ink) -> &'static str {
    match ink {
        Ink::Plain => " fill=\"#c9ced6\"",
        Ink::Bold => " fill=\"#f2f4f8\" font-weight=\"600\"",
        Ink::Dim => " fill=\"#7a828e\"",
        Ink::Green => " fill=\"#7fc98f\"",
        Ink::Yellow => " fill=\"#e0c074\"",
        Ink::Red => " fill=\"#e58080\"",
        Ink::Blue => " fill=\"#86aef0\"",
        Ink::Cyan => " fill=\"#7cc5cf\"",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_positioned_in_columns_and_escaped() {
        let lines = [Line::new().cell(Ink::Green, "a<b", 10).then(Ink::Plain, "& more"), Line::new()];
        let svg = svg(&lines, 20);
        assert!(svg.contains("<tspan x=\"18.0\" fill=\"#7fc98f\">a&lt;b       </tspan>"), "{svg}");
        assert!(svg.contains("<tspan x=\"96.0\" fill=\"#c9ced6\">&amp; more</tspan>"), "{svg}");
        assert_eq!(svg.matches("<text").count(), 1, "an empty line is a gap");
    }
}
