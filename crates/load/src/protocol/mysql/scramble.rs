//! Passwords as the server's authentication plugins want them: never in clear text.

use rsa::pkcs8::DecodePublicKey;
use rsa::{Oaep, PublicKey};
use sha1::Sha1;
use sha2::{Digest, Sha256};

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
