//! Users by client certificate: the common name is the user name, the organisations are the groups.
//!
//! The TLS layer has verified the certificate; only its subject is read here.

use x509_cert::{
    Certificate,
    der::{
        Decode,
        oid::db::rfc4519::{COMMON_NAME, ORGANIZATION_NAME},
    },
    ext::pkix::name::DirectoryString,
};

use super::User;

/// Returns the user that a certificate (DER) names; `None` without a common name.
pub(crate) fn user(certificate: &[u8]) -> Option<User> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let mut user = User::default();
    for attribute in certificate.tbs_certificate().subject().iter() {
        let text = || DirectoryString::try_from(&attribute.value).ok().map(String::from);
        match attribute.oid {
            COMMON_NAME => user.name = text()?,
            ORGANIZATION_NAME => user.groups.push(text()?),
            _ => {}
        }
    }
    (!user.name.is_empty()).then_some(user)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    #[test]
    fn the_subject_of_a_certificate_is_a_user() {
        let mut params = CertificateParams::new(vec!["x.example".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "alice");
        params.distinguished_name.push(DnType::OrganizationName, "dev");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let user = user(certificate.der()).unwrap();
        assert_eq!((user.name.as_str(), user.groups.as_slice()), ("alice", &["dev".to_owned()][..]));
    }

    #[test]
    fn garbage_names_no_user() {
        for garbage in [&b""[..], b"\x30", b"\x30\x84\xff\xff\xff\xff", b"\x30\x03\x30\x01\x02", &[0x30; 64]]
        {
            assert!(user(garbage).is_none());
        }
    }
}
