//! What people write when they mean a resource.

/// A word as it may be meant: `deploy`, `deployments.apps`, `deployments.v1.apps`, `Deployment`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Partial {
    /// Plural, singular, short name or kind, in lower case.
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) group: Option<String>,
}

impl Partial {
    /// The readings of a word, best first: `a.b.c.d` is `a` in version `b` of group `c.d`, or else `a` in
    /// group `b.c.d`.
    pub(super) fn readings(word: &str) -> Vec<Self> {
        let mut readings = Vec::new();
        let lower = |name: &str| name.to_lowercase();
        let mut dots = word.splitn(3, '.');
        if let (Some(name), Some(version), Some(group)) = (dots.next(), dots.next(), dots.next()) {
            // `pods.v1.` has an empty group: the core one.
            readings.push(Self {
                name: lower(name),
                version: Some(version.to_owned()),
                group: Some(group.to_owned()),
            });
        }
        match word.split_once('.') {
            Some((name, group)) => {
                readings.push(Self { name: lower(name), version: None, group: Some(group.to_owned()) });
            }
            None => readings.push(Self { name: lower(word), version: None, group: None }),
        }
        readings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_kubectl_reads_them() {
        let read = |word: &str| -> Vec<(String, Option<String>, Option<String>)> {
            Partial::readings(word).into_iter().map(|p| (p.name, p.version, p.group)).collect()
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("Pods"), [("pods".into(), None, None)]);
        assert_eq!(read("deployments.apps"), [("deployments".into(), None, some("apps"))]);
        assert_eq!(
            read("deployments.v1.apps"),
            [("deployments".into(), some("v1"), some("apps")), ("deployments".into(), None, some("v1.apps"))]
        );
        assert_eq!(
            read("foos.samplecontroller.k8s.io"),
            [
                ("foos".into(), some("samplecontroller"), some("k8s.io")),
                ("foos".into(), None, some("samplecontroller.k8s.io"))
            ]
        );
        assert_eq!(read("pods.v1.")[0], ("pods".into(), some("v1"), some("")));
    }
}
