//! Plugins that guard requests for certificates.

use base64::Engine;
use rustls::pki_types::{CertificateSigningRequestDer, pem::PemObject};

use super::{Attributes, Operation, Plugin};
use crate::{
    admission::Context,
    authn::MASTERS,
    authz::Access,
    registry::json::{at, text_at},
    status::Status,
};

const GROUP: &str = "certificates.k8s.io";
/// The signer of certificates that the server itself believes.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

fn is_about(attributes: &Attributes<'_>, subresource: &str) -> bool {
    let ty = attributes.ty();
    ty.group == GROUP
        && ty.plural == "certificatesigningrequests"
        && attributes.call.subresource == subresource
}

/// Returns whether the user may do something with a signer, by its name or by all of its domain.
fn may(context: &Context<'_>, attributes: &Attributes<'_>, verb: &str, signer: &str) -> bool {
    let domain = format!("{}/*", signer.split('/').next().unwrap_or_default());
    [signer, &domain].into_iter().any(|name| {
        let access =
            Access { verb, group: GROUP, version: "*", resource: "signers", name, ..Access::default() };
        context.authorize(attributes.call.user, &access).allowed
    })
}

/// `CertificateApproval`: only those approve who may approve for the signer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CertificateApproval;

impl Plugin for CertificateApproval {
    fn name(&self) -> &'static str {
        "CertificateApproval"
    }

    fn validate(&self, context: &Context<'_>, attributes: &Attributes<'_>) -> Result<(), Status> {
        if attributes.operation != Operation::Update || !is_about(attributes, "approval") {
            return Ok(());
        }
        let signer = attributes.old.map_or("", |old| text_at(old, &["spec", "signerName"]));
        if may(context, attributes, "approve", signer) {
            return Ok(());
        }
        Err(attributes.forbid(&format!("user not permitted to approve requests with signerName {signer:?}")))
    }
}

/// `CertificateSigning`: only those sign who may sign for the signer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CertificateSigning;

impl Plugin for CertificateSigning {
    fn name(&self) -> &'static str {
        "CertificateSigning"
    }

    fn validate(&self, context: &Context<'_>, attributes: &Attributes<'_>) -> Result<(), Status> {
        let Some(old) = attributes
            .old
            .filter(|_| attributes.operation == Operation::Update && is_about(attributes, "status"))
        else {
            return Ok(());
        };
        let unchanged =
            |field: &str| at(old, &["status", field]) == at(&attributes.object, &["status", field]);
        let signer = text_at(old, &["spec", "signerName"]);
        if (unchanged("certificate") && unchanged("conditions")) || may(context, attributes, "sign", signer) {
            return Ok(());
        }
        Err(attributes.forbid(&format!("user not permitted to sign requests with signerName {signer:?}")))
    }
}

/// `CertificateSubjectRestriction`: refuses client certificates of `system:masters`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CertificateSubject;

impl Plugin for CertificateSubject {
    fn name(&self) -> &'static str {
        "CertificateSubjectRestriction"
    }

    fn validate(&self, _: &Context<'_>, attributes: &Attributes<'_>) -> Result<(), Status> {
        if attributes.operation != Operation::Create
            || !is_about(attributes, "")
            || text_at(&attributes.object, &["spec", "signerName"]) != CLIENT_SIGNER
        {
            return Ok(());
        }
        let pem = base64::engine::general_purpose::STANDARD
            .decode(text_at(&attributes.object, &["spec", "request"]))
            .unwrap_or_default();
        let Ok(request) = CertificateSigningRequestDer::from_pem_slice(&pem) else {
            return Err(attributes.forbid("failed to parse CSR: PEM block type must be CERTIFICATE REQUEST"));
        };
        if names_organisation(&request, MASTERS) {
            let why = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
            return Err(attributes.forbid(&why));
        }
        Ok(())
    }
}

/// Returns whether a request has an organisation of that name: the attribute `2.5.4.10` with a text right behind it.
fn names_organisation(der: &[u8], name: &str) -> bool {
    const ORGANISATION: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x0a];
    let behind = der.windows(ORGANISATION.len()).enumerate().filter(|(_, window)| *window == ORGANISATION);
    behind.map(|(at, _)| &der[at + ORGANISATION.len()..]).any(|rest| {
        // A short text: its tag, its length, its bytes.
        rest.get(1).is_some_and(|length| usize::from(*length) == name.len())
            && rest.get(2..2 + name.len()) == Some(name.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    #[test]
    fn organisations_of_a_request_are_found() {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.distinguished_name.push(DnType::CommonName, "eve");
        let key = KeyPair::generate().unwrap();
        let request = params.serialize_request(&key).unwrap();
        assert!(names_organisation(request.der(), "system:masters"));
        assert!(!names_organisation(request.der(), "eve"));
    }
}
