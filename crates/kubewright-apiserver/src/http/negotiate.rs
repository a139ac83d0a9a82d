//! In which form the client wants its answer.

pub use crate::registry::semantics::Format;
use crate::status::Status;

/// What objects are turned into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// As they are.
    Object,
    /// `as=Table`, in a version of `meta.k8s.io`.
    Table(String),
    /// `as=PartialObjectMetadata`
    Partial(String),
    /// `as=PartialObjectMetadataList`
    PartialList(String),
}

/// Format and shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accept {
    /// How objects are written.
    pub format: Format,
    /// What they are turned into.
    pub shape: Shape,
}

const AVAILABLE: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// One clause of an Accept header.
#[derive(Debug)]
pub struct Clause<'a> {
    /// `application/json`
    pub media: &'a str,
    params: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    /// A parameter, or the empty text.
    pub fn param(&self, name: &str) -> &'a str {
        self.params.iter().find(|(k, _)| *k == name).map(|(_, v)| *v).unwrap_or_default()
    }
}

/// The clauses of an Accept header, most wanted first.
pub fn clauses(header: &str) -> Vec<Clause<'_>> {
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
    // Qualities are compared as text of equal length: "0.8" becomes "0.800". Nothing said is the best.
    let quality = |c: &Clause<'_>| match c.param("q") {
        "" => "1.000".to_owned(),
        q => format!("{q:0<5.5}"),
    };
    clauses.sort_by_key(|c| std::cmp::Reverse(quality(c)));
    clauses
}

impl Accept {
    /// Plain JSON.
    pub const JSON: Self = Self { format: Format::Json, shape: Shape::Object };

    /// The form that a client wants; 406 when none of its wishes can be met.
    pub fn parse(header: Option<&str>) -> Result<Self, Status> {
        let header = header.unwrap_or_default();
        if header.trim().is_empty() {
            return Ok(Self::JSON);
        }
        let mut transformed = false;
        for clause in clauses(header) {
            let format = match clause.media {
                "application/json" | "*/*" => Format::Json,
                "application/yaml" => Format::Yaml,
                _ => continue,
            };
            let version = clause.param("v").to_owned();
            let known = clause.param("g") == "meta.k8s.io" && matches!(version.as_str(), "v1" | "v1beta1");
            let shape = match clause.param("as") {
                "" => Shape::Object,
                "Table" if known => Shape::Table(version),
                "PartialObjectMetadata" if known => Shape::Partial(version),
                "PartialObjectMetadataList" if known => Shape::PartialList(version),
                _ => {
                    transformed = true;
                    continue;
                }
            };
            return Ok(Self { format, shape });
        }
        Err(if transformed {
            not_acceptable()
        } else {
            let message = format!("406: Not Acceptable\n\nAvailable representations: {AVAILABLE}");
            Status::plain(406, "NotAcceptable", message).with_details()
        })
    }
}

/// 406 of a form that the server does not have.
pub fn not_acceptable() -> Status {
    Status::plain(406, "NotAcceptable", format!("only the following media types are accepted: {AVAILABLE}"))
}

/// 415 of a body in an unknown form.
pub fn unsupported(accepted: &str) -> Status {
    Status::plain(
        415,
        "UnsupportedMediaType",
        format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        ),
    )
}

/// 415 of a patch in an unknown form. Strategic merges need a Go type, which custom resources do not have.
pub fn unsupported_patch(custom: bool) -> Status {
    let strategic = if custom { "" } else { "application/strategic-merge-patch+json, " };
    unsupported(&format!(
        "application/json-patch+json, application/merge-patch+json, {strategic}application/apply-patch+yaml"
    ))
    .with_details()
}

/// How a request body is written; 415 when the server cannot read it.
pub fn body_format(content_type: Option<&str>) -> Result<Format, Status> {
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
        let parse = |h: &str| Accept::parse(Some(h));
        assert_eq!(parse("*/*").unwrap(), Accept::JSON);
        assert_eq!(parse("text/html;q=0.9,application/json;q=0.8").unwrap(), Accept::JSON);
        assert_eq!(parse("application/yaml").unwrap().format, Format::Yaml);
        assert_eq!(
            parse("application/json;as=Table;v=v1;g=meta.k8s.io,application/json").unwrap().shape,
            Shape::Table("v1".into())
        );
        assert_eq!(
            parse("application/json;as=Nope;v=v1;g=meta.k8s.io,application/json").unwrap(),
            Accept::JSON
        );
        assert_eq!(parse("application/vnd.kubernetes.protobuf,application/json").unwrap(), Accept::JSON);
        for no in ["application/xml", "application/*", "application/json;as=Nope;v=v1;g=meta.k8s.io"] {
            assert_eq!(parse(no).unwrap_err().code, 406);
        }
    }
}
