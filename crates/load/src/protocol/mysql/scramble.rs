//! Passwords as the server's authentication plugins want them: never in clear text.

use curve25519_dalek::{EdwardsPoint, Scalar};
use rsa::pkcs8::DecodePublicKey;
use rsa::{Oaep, PublicKey};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

/// `mysql_native_password`: SHA1(p) ⊕ SHA1(nonce ‖ SHA1(SHA1(p))).
pub(super) fn native(password: &str, nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password.as_bytes());
    let twice = Sha1::digest(once);
    let mixed = Sha1::new().chain_update(nonce).chain_update(twice).finalize();
    xor(&once, &mixed)
}

/// `caching_sha2_password`, for a server that has the password in its cache: SHA256(p) ⊕
/// SHA256(SHA256(SHA256(p)) ‖ nonce).
pub(super) fn caching_sha2(password: &str, nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha256::digest(password.as_bytes());
    let twice = Sha256::digest(once);
    let mixed = Sha256::new().chain_update(twice).chain_update(nonce).finalize();
    xor(&once, &mixed)
}

/// The same for one that has not: the password itself, for the owner of this key (PEM) alone.
pub(super) fn sealed(password: &str, nonce: &[u8], key: &[u8]) -> Result<Vec<u8>, String> {
    let pem = std::str::from_utf8(key).map_err(|_| "its public key is no PEM".to_owned())?;
    let key = PublicKey::from_public_key_pem(pem).map_err(|error| error.to_string())?;
    let mut text = password.as_bytes().to_vec();
    text.push(0);
    for (byte, other) in text.iter_mut().zip(nonce.iter().cycle()) {
        *byte ^= other;
    }
    key.encrypt(&mut rand::rng(), Oaep::<Sha1>::new(), &text).map_err(|error| error.to_string())
}

/// `client_ed25519`: the nonce, signed by Ed25519 (RFC 8032, section 5.1.6) with a key whose seed is the password, of any length.
pub(super) fn ed25519(password: &str, nonce: &[u8]) -> Vec<u8> {
    let expanded: [u8; 64] = Sha512::digest(password.as_bytes()).into();
    let (secret, prefix) = expanded.split_at(32);
    let mut clamped = [0; 32];
    clamped.copy_from_slice(secret);
    let secret = Scalar::from_bytes_mod_order(curve25519_dalek::scalar::clamp_integer(clamped));
    let public = EdwardsPoint::mul_base(&secret).compress();
    let reduced = |parts: &[&[u8]]| {
        let digest = parts.iter().fold(Sha512::new(), Digest::chain_update).finalize();
        Scalar::from_bytes_mod_order_wide(&digest.into())
    };
    let once = reduced(&[prefix, nonce]);
    let point = EdwardsPoint::mul_base(&once).compress();
    let challenge = reduced(&[point.as_bytes(), public.as_bytes(), nonce]);
    let answer = once + challenge * secret;
    [*point.as_bytes(), answer.to_bytes()].concat()
}

fn xor(one: &[u8], other: &[u8]) -> Vec<u8> {
    one.iter().zip(other).map(|(one, other)| one ^ other).collect()
}

#[cfg(test)]
mod tests {
    use rsa::PrivateKey;
    use rsa::pkcs8::{EncodePublicKey, LineEnding};

    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    }

    /// Of Python's hashlib, by the formulas of the servers' manuals.
    #[test]
    fn known_answers() {
        let nonce: Vec<u8> = (1..=20).collect();
        let found = hex(&native("secret", &nonce));
        assert_eq!(found, "b32bb3a583e1340c0a1108d58b1be49781ad8c2f");
        let found = hex(&caching_sha2("secret", &nonce));
        assert_eq!(found, "746ebe205d56a0707acb3e796e834e0dd7b1d61743b26bd5202c7a623230c7c9");
        assert!(native("", &nonce).is_empty() && caching_sha2("", &nonce).is_empty());
    }

    /// By the steps of RFC 8032, section 5.1.6, in Python, which sign that standard's first test as it does.
    #[test]
    fn a_signature_is_that_of_the_standard() {
        let found = hex(&ed25519("foobar", &[0; 32]));
        assert_eq!(
            found,
            "56cf8887d9be76857c2d5fb33ea05ef8a121f1028dbc6f65d006bb1c8e72e9a95bd42b14dfce703e5451d4115df35b0c2f394db03f33afd3f5f8088ea403210c"
        );
    }

    #[test]
    fn a_key_opens_what_was_sealed() {
        let private = PrivateKey::new(&mut rand::rng(), 1024).expect("a key");
        let pem = private.to_public_key().to_public_key_pem(LineEnding::LF).expect("written");
        let nonce = [7; 20];
        let opened = private
            .decrypt(
                Oaep::<Sha1>::new(),
                &sealed("secret", &nonce, pem.as_bytes()).expect("sealed"),
            )
            .expect("opened");
        let text: Vec<u8> = opened.iter().map(|byte| byte ^ 7).collect();
        assert_eq!(text, b"secret\0");
        assert!(sealed("secret", &nonce, b"no key").is_err());
    }
}
