//! Field paths that are formatted only for errors: validating a pod visits a hundred fields and rarely
//! reports one.

use std::{borrow::Cow, fmt};

/// Step of a path.
#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// Steps stored inline; further ones are formatted together with those before.
const STEPS: usize = 10;

/// Field path such as `spec.containers[0].image`; empty for the object itself.
#[derive(Debug, Clone)]
pub struct Field<'a> {
    start: Cow<'a, str>,
    steps: [Step<'a>; STEPS],
    taken: usize,
}

impl<'a> Field<'a> {
    /// Creates a path from text.
    pub fn new(path: impl Into<Cow<'a, str>>) -> Self {
        Self { start: path.into(), steps: [Step::Index(0); STEPS], taken: 0 }
    }

    /// Returns the path of a field.
    #[must_use]
    pub fn child(&self, key: &'a str) -> Self {
        self.step(Step::Key(key))
    }

    /// Returns the path of a list item.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        self.step(Step::Index(index))
    }

    fn step(&self, step: Step<'a>) -> Self {
        let mut longer = if self.taken < STEPS { self.clone() } else { Self::new(self.to_string()) };
        longer.steps[longer.taken] = step;
        longer.taken += 1;
        longer
    }
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.start)?;
        let mut is_first = self.start.is_empty();
        for step in &self.steps[..self.taken] {
            match step {
                Step::Key(key) if is_first => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
            is_first = false;
        }
        Ok(())
    }
}

impl From<Field<'_>> for String {
    fn from(field: Field<'_>) -> Self {
        field.to_string()
    }
}

impl From<&Field<'_>> for String {
    fn from(field: &Field<'_>) -> Self {
        field.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_formatted_from_its_steps() {
        let top = Field::new("");
        assert_eq!(top.to_string(), "");
        assert_eq!(
            top.child("spec").child("containers").item(2).child("image").to_string(),
            "spec.containers[2].image"
        );
        assert_eq!(Field::new("spec").item(0).child("a").to_string(), "spec[0].a");
    }

    #[test]
    fn a_path_of_any_length_is_formatted() {
        let (mut field, mut text) = (Field::new("a"), "a".to_owned());
        for n in 0..3 * STEPS {
            field = field.child("b").item(n);
            text = format!("{text}.b[{n}]");
            assert_eq!(field.to_string(), text);
        }
    }
}
