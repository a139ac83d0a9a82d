//! Parsing of kubectl-style resource arguments.

/// A resource argument: `deploy`, `deployments.apps`, `deployments.v1.apps`, `Deployment`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResourceArg {
    /// Plural, singular, short name or kind, in lower case.
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) group: Option<String>,
}

impl ResourceArg {
    /// Parses an argument into its interpretations, best first: `a.b.c.d` is `a` in version `b` of group
    /// `c.d`, or else `a` in group `b.c.d`.
    pub(super) fn parse(arg: &str) -> Vec<Self> {
        let mut interpretations = Vec::new();
        let lower = |name: &str| name.to_lowercase();
        let mut dots = arg.splitn(3, '.');
        if let (Some(name), Some(version), Some(group)) = (dots.next(), dots.next(), dots.next()) {
            // `pods.v1.` has an empty group: the core one.
            interpretations.push(Self {
                name: lower(name),
                version: Some(version.to_owned()),
                group: Some(group.to_owned()),
            });
        }
        match arg.split_once('.') {
            Some((name, group)) => {
                interpretations.push(Self {
                    name: lower(name),
                    version: None,
                    group: Some(group.to_owned()),
                });
            }
            None => interpretations.push(Self { name: lower(arg), version: None, group: None }),
        }
        interpretations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parsed_as_kubectl_parses_them() {
        let read = |arg: &str| -> Vec<(String, Option<String>, Option<String>)> {
            ResourceArg::parse(arg).into_iter().map(|p| (p.name, p.version, p.group)).collect()
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
