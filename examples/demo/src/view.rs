//! The screen of the demo.

use std::{path::PathBuf, time::Duration};

use app_status::{
    Row, show,
    terminal::{Ink, Line},
};
use jiff::Timestamp;
use kubewright::controller::Totals;

/// Content of the screen.
#[derive(Debug, Clone)]
pub struct View {
    /// The elapsed time.
    pub elapsed: Duration,
    /// The time until all was ready, if it is.
    pub ready: Option<Duration>,
    /// The operators: name, description, totals of the controller.
    pub operators: Vec<(&'static str, &'static str, Option<Totals>)>,
    /// The objects.
    pub rows: Vec<Row>,
    /// The log, oldest first.
    pub log: Vec<Line>,
    /// The current time.
    pub now: Timestamp,
    /// The path of the kubeconfig.
    pub kubeconfig: PathBuf,
}

/// Minimum and maximum number of log lines.
const LOG: std::ops::RangeInclusive<usize> = 4..=14;

impl View {
    /// Renders the screen for a terminal of this size.
    pub fn frame(&self, (columns, rows): (usize, usize)) -> Vec<Line> {
        let head = [self.title(columns), self.progress(), Line::new()];
        let operators = self.operators();
        let foot = self.hints();
        // The space for objects and log, with a heading and a blank line each.
        let room = rows.saturating_sub(1 + head.len() + operators.len() + 1 + foot.len() + 1 + 2);
        let objects = show::table(&self.rows, self.now);
        let objects = shortened(objects, room.saturating_sub(*LOG.start()));
        let log_room = room.saturating_sub(objects.len()).clamp(*LOG.start(), *LOG.end());
        let log = self.log.iter().skip(self.log.len().saturating_sub(log_room)).cloned();

        let mut frame: Vec<Line> = head.into();
        frame.extend(operators);
        frame.push(Line::new());
        frame.extend(objects);
        frame.push(Line::new());
        frame.push(Line::new().then(Ink::Dim, "  WHAT HAPPENED"));
        frame.extend(log);
        frame.push(Line::new());
        frame.extend(foot);
        frame
    }

    fn title(&self, columns: usize) -> Line {
        let seconds = self.elapsed.as_secs();
        let clock = format!("{:02}:{:02}", seconds / 60, seconds % 60);
        let line = Line::new()
            .then(Ink::Bold, "  kubewright demo")
            .then(Ink::Dim, "   three nodes and five operators in one process");
        let gap = columns.saturating_sub(line.width() + clock.len() + 2).max(2);
        line.then(Ink::Plain, " ".repeat(gap)).then(Ink::Dim, clock)
    }

    fn progress(&self) -> Line {
        let settled = self.rows.iter().filter(|row| row.health.state.is_settled()).count();
        let count = format!("{settled} of {} objects are ready", self.rows.len());
        match self.ready {
            Some(took) => Line::new()
                .then(Ink::Green, format!("● ready after {:.1} s", took.as_secs_f64()))
                .then(Ink::Dim, format!("   {count}")),
            None => Line::new().then(Ink::Yellow, "◌ starting").then(Ink::Dim, format!("   {count}")),
        }
    }

    fn operators(&self) -> Vec<Line> {
        let name = self.operators.iter().map(|(name, ..)| name.len()).max().unwrap_or(0).max(8) + 2;
        let heading = format!("  {:<name$}{:>10}{:>8}{:>10}", "OPERATOR", "RECONCILES", "FAILED", "MEAN");
        let mut lines = vec![Line::new().then(Ink::Dim, heading)];
        lines.extend(self.operators.iter().map(|(operator, does, totals)| {
            let (count, errors, mean) = totals.as_ref().map_or((0, 0, Duration::ZERO), |totals| {
                let count = u32::try_from(totals.reconciles).unwrap_or(u32::MAX);
                (totals.reconciles, totals.errors, totals.time.checked_div(count).unwrap_or_default())
            });
            let mark = if count > 0 { ("● ", Ink::Green) } else { ("◌ ", Ink::Yellow) };
            Line::new()
                .then(mark.1, mark.0)
                .cell(Ink::Bold, operator, name)
                .then(Ink::Plain, format!("{count:>10}"))
                .then(if errors > 0 { Ink::Yellow } else { Ink::Dim }, format!("{errors:>8}"))
                .then(Ink::Dim, format!("{:>10}", format!("{:.1} ms", mean.as_secs_f64() * 1e3)))
                .then(Ink::Dim, format!("   {does}"))
        }));
        lines
    }

    /// How to use kubectl with the cluster, and what to try.
    pub fn hints(&self) -> Vec<Line> {
        let command = |text: &str| Line::new().then(Ink::Plain, format!("  {text}"));
        vec![
            Line::new().then(Ink::Dim, "  Try it from another terminal; Ctrl-C ends it here."),
            command(&format!("export KUBECONFIG={}", self.kubeconfig.display())),
            command("kubectl get foos,cloudmanagers,deployments,pods")
                .then(Ink::Dim, "        # everything is a Kubernetes API"),
            command("kubectl delete deployment example-foo")
                .then(Ink::Dim, "                  # it comes back"),
        ]
    }
}

/// Truncates the lines to the room, with the number of missing ones.
fn shortened(mut lines: Vec<Line>, room: usize) -> Vec<Line> {
    if lines.len() > room && room > 0 {
        let rest = lines.len() - (room - 1);
        lines.truncate(room - 1);
        lines.push(Line::new().then(Ink::Dim, format!("  … and {rest} more")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use app_status::{Health, State};

    use super::*;

    fn view(objects: usize) -> View {
        let row = |number: usize| Row {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: Some("default".to_owned()),
            name: format!("d{number}"),
            health: Health::new(if number == 0 { State::Progressing } else { State::Ready }, ""),
            created: None,
        };
        View {
            elapsed: Duration::from_secs(75),
            ready: None,
            operators: vec![("sample-controller", "a Deployment for every Foo", None)],
            rows: (0..objects).map(row).collect(),
            log: (0..100).map(|number| Line::new().then(Ink::Plain, format!("line {number}"))).collect(),
            now: Timestamp::UNIX_EPOCH,
            kubeconfig: "demo.kubeconfig".into(),
        }
    }

    #[test]
    fn the_screen_is_never_taller_than_the_terminal() {
        for (objects, rows) in [(3, 50), (3, 30), (30, 40), (100, 24)] {
            let frame = view(objects).frame((100, rows));
            assert!(frame.len() < rows, "{} lines for {rows} rows and {objects} objects", frame.len());
            assert!(frame.iter().any(|line| line.plain().contains("line 99")), "the newest is always shown");
        }
    }

    #[test]
    fn it_shows_its_progress() {
        let mut view = view(3);
        let frame = view.frame((80, 40));
        assert!(frame[0].plain().ends_with("01:15"));
        assert_eq!(frame[1].plain(), "◌ starting   2 of 3 objects are ready");
        view.ready = Some(Duration::from_millis(1234));
        assert_eq!(view.frame((80, 40))[1].plain(), "● ready after 1.2 s   2 of 3 objects are ready");
    }

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        let frame = view(100).frame((100, 40));
        let more = frame.iter().find(|line| line.plain().contains("more")).expect("it says so");
        let shown = frame.iter().filter(|line| line.plain().contains("Deployment  ")).count();
        assert_eq!(more.plain(), format!("  … and {} more", 100 - shown));
    }
}
