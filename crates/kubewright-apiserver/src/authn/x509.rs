//! Users by client certificate: the common name is the user, the organisations are the groups.
//!
//! The TLS layer has verified the certificate; here only the subject is read. DER is a tree of tag, length and value,
//! and the subject is the sixth element of the first element, so a small reader is enough.

use super::User;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const CONTEXT_0: u8 = 0xa0;
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANISATION: &[u8] = &[0x55, 0x04, 0x0a];

/// One element and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let digits = usize::from(first & 0x7f);
        if digits == 0 || digits > 4 || rest.len() < digits {
            return None;
        }
        let length = rest[..digits].iter().fold(0usize, |n, &b| (n << 8) | usize::from(b));
        (length, &rest[digits..])
    };
    (rest.len() >= length).then(|| (tag, &rest[..length], &rest[length..]))
}

fn inside(der: &[u8], tag: u8) -> Option<&[u8]> {
    element(der).filter(|(t, ..)| *t == tag).map(|(_, value, _)| value)
}

/// The user that a certificate names; `None` when it names none.
pub fn user(certificate: &[u8]) -> Option<User> {
    let mut fields = inside(inside(certificate, SEQUENCE)?, SEQUENCE)?;
    if fields.first() == Some(&CONTEXT_0) {
        fields = element(fields)?.2;
    }
    // Serial number, signature algorithm, issuer and validity come before the subject.
    for _ in 0..4 {
        fields = element(fields)?.2;
    }
    let mut names = inside(fields, SEQUENCE)?;
    let mut user = User::default();
    while !names.is_empty() {
        let (tag, mut set, rest) = element(names)?;
        names = rest;
        if tag != SET {
            return None;
        }
        while !set.is_empty() {
            let (_, pair, more) = element(set)?;
            set = more;
            let (id_tag, id, value) = element(pair)?;
            let (_, text, _) = element(value)?;
            let text = std::str::from_utf8(text).ok()?;
            match id {
                _ if id_tag != OBJECT_ID => return None,
                COMMON_NAME => text.clone_into(&mut user.name),
                ORGANISATION => user.groups.push(text.to_owned()),
                _ => {}
            }
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
    fn garbage_is_nobody() {
        for garbage in [&b""[..], b"\x30", b"\x30\x84\xff\xff\xff\xff", b"\x30\x03\x30\x01\x02", &[0x30; 64]]
        {
            assert!(user(garbage).is_none());
        }
    }
}
