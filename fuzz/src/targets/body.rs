//! Arbitrary bytes as JSON and YAML bodies: no panic, no hang, and decoding is stable.

use crate::{builtin, report_outcome};
use kubewright_schema::{
    body::{self, Format, Limits},
    canonical,
    validate::Validator,
};

/// Runs the target.
pub fn run(input: &[u8]) {
    let limits = Limits::default();
    for (group, kind) in [("", "Pod"), ("apps", "Deployment"), ("", "Secret")] {
        let (_, schema) = builtin(group, "v1", kind);
        for format in [Format::Json, Format::Yaml] {
            let decoded = match body::decode(input, format, Some((&schema, kind)), &limits) {
                Ok(decoded) => decoded,
                Err(why) => {
                    report_outcome(&why.to_string());
                    continue;
                }
            };
            decoded.findings.iter().for_each(|finding| report_outcome(finding));
            let written = decoded.value.to_string();
            let again = body::decode(written.as_bytes(), Format::Json, Some((&schema, kind)), &limits)
                .expect("what was decoded can be decoded");
            assert_eq!(again.value, decoded.value);
            assert!(again.findings.is_empty(), "{:?}", again.findings);
            let mut canonical = decoded.value;
            canonical::canonicalise(&schema, &mut canonical);
        }
    }
    for format in [Format::Json, Format::Yaml] {
        let Ok(decoded) = body::decode(input, format, None, &limits) else { continue };
        let written = decoded.value.to_string();
        let again = body::decode(written.as_bytes(), Format::Json, None, &limits).expect("it was written");
        assert_eq!(again.value, decoded.value);
        if let Ok(validator) = Validator::new(&decoded.value) {
            validator.validate(&again.value);
        }
    }
}
