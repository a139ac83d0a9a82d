//! Pods of two thousand applications that differ: about 10.9 KB of JSON each.
//!
//! An application has one to four containers, two to thirty environment variables of random words and digests, and annotations
//! of up to 3 KB. Pod number `i` is always the same Pod; Pods of one application differ as those of a `ReplicaSet` do.

use serde_json::{Map, Value, json};

use crate::pods::{Application, Container, digest, hash, text};

/// Number of applications of [`pod`].
pub const APPLICATIONS: usize = 2_000;

/// Longest annotations of an application, in bytes.
const ANNOTATIONS: usize = 3_000;

const SYLLABLES: [&str; 32] = [
    "ba", "cor", "den", "el", "fir", "gan", "hu", "in", "jo", "kel", "lam", "mi", "nor", "ol", "par", "qui",
    "ra", "sen", "tor", "ul", "va", "wen", "xi", "yor", "za", "bri", "cha", "dro", "fle", "gri", "pla",
    "sto",
];

/// Text of Pod `i` as the API server sends it.
pub fn pod(i: usize) -> String {
    text(i, application(i % APPLICATIONS))
}

fn application(number: usize) -> Application {
    let mut random = Random { number, drawn: 0 };
    let (containers, variables) = (random.below(4) + 1, random.below(29) + 2);
    let containers = (0..containers).map(|at| {
        // The first has what is left by an even distribution.
        let share = variables / containers + if at == 0 { variables % containers } else { 0 };
        let variable = |_| json!({"name": random.words("_", 2).to_uppercase(), "value": random.value()});
        let name = ["app", "proxy", "metrics", "config-reloader"][at].to_owned();
        Container { name, env: (0..share).map(variable).collect(), serves: at == 0 }
    });
    let containers = containers.collect();
    let mut annotations = Map::new();
    let mut left = random.below(ANNOTATIONS).min(random.below(ANNOTATIONS));
    while left > 0 {
        let (name, value) =
            (format!("{}.example.com/{}", random.words("-", 2), random.words("-", 2)), random.value());
        left = left.saturating_sub(name.len() + value.len());
        annotations.insert(name, Value::String(value));
    }
    Application { number, containers, annotations }
}

/// Random numbers of one application, the same in every run.
struct Random {
    number: usize,
    drawn: u64,
}

impl Random {
    #[allow(clippy::cast_possible_truncation, reason = "the remainder fits")]
    fn below(&mut self, limit: usize) -> usize {
        self.drawn += 1;
        (hash(self.number, 1_000 + self.drawn) % limit as u64) as usize
    }

    fn words(&mut self, separator: &str, most: usize) -> String {
        let words: Vec<String> = (0..=self.below(most))
            .map(|_| (0..=self.below(3)).map(|_| SYLLABLES[self.below(SYLLABLES.len())]).collect())
            .collect();
        words.join(separator)
    }

    /// A digest, or a few words.
    fn value(&mut self) -> String {
        if self.below(3) == 0 {
            self.drawn += 1;
            return format!("sha256:{}", digest(self.number, 100_000 + 10 * self.drawn));
        }
        self.words(" ", 6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_have_the_documented_size() {
        let sizes: Vec<usize> = (0..APPLICATIONS).map(|i| pod(i).len()).collect();
        let average = sizes.iter().sum::<usize>() / sizes.len();
        assert!((10_600..11_200).contains(&average), "{average} bytes");
        assert!(sizes.iter().max() > Some(&15_000) && sizes.iter().min() < Some(&7_500));
    }
}
