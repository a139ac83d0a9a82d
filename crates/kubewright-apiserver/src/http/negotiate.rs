//! Content negotiation.

pub(crate) use crate::registry::semantics::Format;
use crate::{protobuf::MEDIA_TYPE, status::Status};

/// The form in which objects are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The objects themselves.
    Object,
    /// `as=Table`, in a version of `meta.k8s.io`.
    Table(String),
    /// `as=PartialObjectMetadata`
    Partial(String),
    /// `as=PartialObjectMetadataList`
    PartialList(String),
}

/// The encoding of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Encoding {
    /// `application/json`
    #[default]
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`, for built-in types
    Protobuf,
}

/// Encoding and shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Accept {
    /// The encoding.
    pub(crate) encoding: Encoding,
    /// The form of objects.
    pub(crate) shape: Shape,
}

const AVAILABLE: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// One clause of an Accept header.
#[derive(Debug)]
pub(crate) struct Clause<'a> {
    /// `application/json`
    pub(crate) media: &'a str,
    params: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    /// Returns a parameter; empty if there is none.
    pub(crate) fn param(&self, name: &str) -> &'a str {
        self.params.iter().find(|(k, _)| *k == name).map(|(_, v)| *v).unwrap_or_default()
    }
}

/// Parses the clauses of an Accept header, ordered by quality.
pub(crate) fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header
        .split(',')
        .map(str::trim)
        .filter(|c| !c.is_empty())
        .map(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            Clause { media, params: parts.filter_map(|p| p.split_once('=')).collect() }
        })
        .collect();
    // Qualities are compared as text of equal length: "0.8" becomes "0.800". The default is the highest.
    let quality = |c: &Clause<'_>| match c.param("q") {
        "" => "1.000".to_owned(),
        q => format!("{q:0<5.5}"),
    };
    clauses.sort_by_key(|c| std::cmp::Reverse(quality(c)));
    clauses
}

impl Accept {
    /// Plain JSON.
    pub(crate) const JSON: Self = Self { encoding: Encoding::Json, shape: Shape::Object };

    /// Returns the first form of the header that the server has, or 406. `protobuf` says whether the type has that form.
    pub(crate) fn parse(header: Option<&str>, protobuf: bool) -> Result<Self, Status> {
        let header = header.unwrap_or_default();
        if header.trim().is_empty() {
            return Ok(Self::JSON);
        }
        let mut transformed = false;
        for clause in clauses(header) {
            let encoding = match clause.media {
                "application/json" | "*/*" => Encoding::Json,
                "application/yaml" => Encoding::Yaml,
                MEDIA_TYPE if protobuf => Encoding::Protobuf,
                MEDIA_TYPE => {
                    transformed = true;
                    continue;
                }
                _ => continue,
            };
            let version = clause.param("v").to_owned();
            let known = clause.param("g") == "meta.k8s.io" && matches!(version.as_str(), "v1" | "v1beta1");
            let shape = match clause.param("as") {
                "" => Shape::Object,
                // Tables have no protobuf form.
                "Table" if known && encoding != Encoding::Protobuf => Shape::Table(version),
                "PartialObjectMetadata" if known => Shape::Partial(version),
                "PartialObjectMetadataList" if known => Shape::PartialList(version),
                _ => {
                    transformed = true;
                    continue;
                }
            };
            return Ok(Self { encoding, shape });
        }
        Err(if transformed {
            not_acceptable()
        } else {
            let message = format!("406: Not Acceptable\n\nAvailable representations: {AVAILABLE}");
            Status::plain(406, "NotAcceptable", message).with_details()
        })
    }
}

/// Returns the encoding of a refusal: protobuf if the client prefers it, otherwise JSON.
pub(crate) fn of_refusal(header: Option<&str>) -> Encoding {
    let asks = |clause: &Clause<'_>| clause.media == MEDIA_TYPE;
    let first = header.map(clauses).and_then(|clauses| clauses.first().map(asks));
    if first == Some(true) { Encoding::Protobuf } else { Encoding::Json }
}

/// Returns the 406 of a form that the server does not have.
pub(crate) fn not_acceptable() -> Status {
    Status::plain(406, "NotAcceptable", format!("only the following media types are accepted: {AVAILABLE}"))
}

/// Returns the 415 of a body in an unknown format.
pub(crate) fn unsupported(accepted: &str) -> Status {
    Status::plain(
        415,
        "UnsupportedMediaType",
        format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        ),
    )
}

/// Returns the 415 of a patch in an unknown format. Strategic merges need a Go type, which custom resources do not have.
pub(crate) fn unsupported_patch(custom: bool) -> Status {
    let strategic = if custom { "" } else { "application/strategic-merge-patch+json, " };
    unsupported(&format!(
        "application/json-patch+json, application/merge-patch+json, {strategic}application/apply-patch+yaml"
    ))
    .with_details()
}

/// Returns whether a request body is protobuf.
pub(crate) fn is_protobuf(content_type: Option<&str>) -> bool {
    content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim() == MEDIA_TYPE
}

/// Returns the format of a request body, or 415.
pub(crate) fn body_format(content_type: Option<&str>) -> Result<Format, Status> {
    let media = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    match media {
        "" | "application/json" => Ok(Format::Json),
        "application/yaml" => Ok(Format::Yaml),
        _ => Err(unsupported(AVAILABLE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wish_that_can_be_met_counts() {
        let parse = |h: &str| Accept::parse(Some(h), true);
        assert_eq!(parse("*/*").unwrap(), Accept::JSON);
        assert_eq!(parse("text/html;q=0.9,application/json;q=0.8").unwrap(), Accept::JSON);
        assert_eq!(parse("application/yaml").unwrap().encoding, Encoding::Yaml);
        assert_eq!(
            parse("application/json;as=Table;v=v1;g=meta.k8s.io,application/json").unwrap().shape,
            Shape::Table("v1".into())
        );
        assert_eq!(
            parse("application/json;as=Nope;v=v1;g=meta.k8s.io,application/json").unwrap(),
            Accept::JSON
        );
        let go = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(parse(go).unwrap(), Accept { encoding: Encoding::Protobuf, shape: Shape::Object });
        assert_eq!(
            Accept::parse(Some(go), false).unwrap(),
            Accept::JSON,
            "custom resources have no such form"
        );
        assert_eq!(Accept::parse(Some(MEDIA_TYPE), false).unwrap_err().code, 406);
        assert_eq!((of_refusal(Some(go)), of_refusal(Some("*/*"))), (Encoding::Protobuf, Encoding::Json));
        for no in ["application/xml", "application/*", "application/json;as=Nope;v=v1;g=meta.k8s.io"] {
            assert_eq!(parse(no).unwrap_err().code, 406);
        }
    }
}
