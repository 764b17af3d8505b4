//! Binding of the log-in to the TLS connection, so that nobody in between can pass it on (RFC 5929, `tls-server-end-point`).

use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::protocol::scram::Binding;

const SCRAM_SHA_256: &str = "SCRAM-SHA-256";
const SCRAM_SHA_256_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// How to log in: a mechanism among those that the server offers, and what it is bound to.
pub(super) fn chosen(
    offered: &[u8],
    certificate: Option<&[u8]>,
) -> Option<(&'static str, Binding)> {
    let offers = |name: &str| offered.split(|&byte| byte == 0).any(|one| one == name.as_bytes());
    match certificate.and_then(end_point) {
        Some(end_point) if offers(SCRAM_SHA_256_PLUS) => {
            Some((SCRAM_SHA_256_PLUS, Binding::EndPoint(end_point)))
        }
        _ if !offers(SCRAM_SHA_256) => None,
        // The server learns that it could have been bound, so that nobody in between can hide its offer.
        Some(_) => Some((SCRAM_SHA_256, Binding::Unused)),
        None => Some((SCRAM_SHA_256, Binding::Unsupported)),
    }
}

/// `1.2.840.113549.1.1` and `1.2.840.10045.4` and `…4.3`: signatures by RSA and by elliptic curves.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1];
const CURVE_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1];
const CURVE: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3];

/// Digest of a certificate by the function that signed it; SHA-256 instead of MD5 and SHA-1. `None`: the standard names
/// none, as for Ed25519.
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (_, signed_and_how, _) = element(certificate)?;
    let (_, _, how) = element(signed_and_how)?;
    let (_, how, _) = element(how)?;
    let (_, name, _) = element(how)?;
    let bits = match (name.strip_prefix(RSA), name.strip_prefix(CURVE)) {
        (Some([4 | 5 | 11]), _) | (_, Some([2])) => 256,
        (Some([12]), _) | (_, Some([3])) => 384,
        (Some([13]), _) | (_, Some([4])) => 512,
        _ if name == CURVE_SHA1 => 256,
        _ => return None,
    };
    Some(match bits {
        256 => Sha256::digest(certificate).to_vec(),
        384 => Sha384::digest(certificate).to_vec(),
        _ => Sha512::digest(certificate).to_vec(),
    })
}

/// The first element of DER: its kind, its content, and what follows it.
fn element(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[kind, length], rest) = input.split_first_chunk::<2>()?;
    let more = usize::from(length & 0x7f);
    let (length, rest) = if length < 0x80 {
        (usize::from(length), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(more).filter(|_| more <= 4)?;
        (bytes.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((kind, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn der(kind: u8, content: &[u8]) -> Vec<u8> {
        let length = (content.len() as u16).to_be_bytes();
        [&[kind, 0x82], &length[..], content].concat()
    }

    fn certificate(name: &[u8]) -> Vec<u8> {
        let how = der(0x30, &[der(6, name), der(5, &[])].concat());
        der(0x30, &[der(0x30, &[7; 300]), how, der(3, &[1; 64])].concat())
    }

    #[test]
    fn the_digest_is_that_of_the_signature() {
        for (name, length) in [
            ([RSA, &[11]].concat(), 32),
            ([RSA, &[5]].concat(), 32),
            ([RSA, &[12]].concat(), 48),
            ([CURVE, &[2]].concat(), 32),
            ([CURVE, &[4]].concat(), 64),
        ] {
            let found = end_point(&certificate(&name)).expect("a known name");
            assert_eq!(found.len(), length, "{name:?}");
        }
        assert_eq!(end_point(&certificate(&[0x2b, 0x65, 0x70])), None, "Ed25519");
        let whole = certificate(&[RSA, &[11]].concat());
        assert!((0..whole.len()).all(|end| end_point(&whole[..end]).is_none()), "cut short");
    }

    #[test]
    fn a_log_in_is_bound_if_both_sides_can() {
        let certificate = certificate(&[RSA, &[11]].concat());
        let both = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
        let name = |offered: &[u8], certificate| chosen(offered, certificate).map(|(name, _)| name);
        assert_eq!(name(both, Some(&certificate[..])), Some("SCRAM-SHA-256-PLUS"));
        assert_eq!(name(both, None), Some("SCRAM-SHA-256"));
        assert_eq!(name(&both[19..], Some(&certificate)), Some("SCRAM-SHA-256"));
        assert_eq!(name(b"OTHER\0\0", Some(&certificate)), None);
    }
}
