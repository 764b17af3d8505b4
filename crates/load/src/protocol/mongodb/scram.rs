//! SCRAM-SHA-256 (RFC 5802, RFC 7677), with the user's name in its first message, as `MongoDB` wants it.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

type Key = [u8; 32];

/// More would keep a client busy for seconds at each connection.
const MOST_ITERATIONS: u32 = 1_000_000;

/// Between the client's two messages.
pub(super) struct Scram {
    password: String,
    nonce: String,
    /// The first message without its header.
    first: String,
}

/// The client's second message, and what the server must answer to it.
pub(super) struct Proof {
    pub(super) message: String,
    signature: Key,
}

impl Scram {
    /// The client's side, and its first message; `nonce` must be new each time.
    pub(super) fn begin(user: &str, password: &str, nonce: String) -> (Self, String) {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        let first = format!("n={user},r={nonce}");
        let message = format!("n,,{first}");
        let password = stringprep::saslprep(password).unwrap_or(Cow::Borrowed(password));
        (Self { password: password.into_owned(), nonce, first }, message)
    }

    /// Answers the server's first message.
    pub(super) fn prove(&self, challenge: &str) -> Result<Proof, &'static str> {
        let nonce = attribute(challenge, "r=").ok_or("a challenge without a nonce")?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err("a challenge to another client");
        }
        let salt = attribute(challenge, "s=").and_then(|salt| STANDARD.decode(salt).ok());
        let salt = salt.ok_or("a challenge without a salt")?;
        let iterations = attribute(challenge, "i=").and_then(|number| number.parse().ok());
        let iterations = iterations
            .filter(|number| (1..=MOST_ITERATIONS).contains(number))
            .ok_or("a challenge with a number of iterations that it cannot have")?;
        let salted = salted(self.password.as_bytes(), &salt, iterations);
        let client = mac(&salted, b"Client Key");
        let bare = format!("c=biws,r={nonce}");
        let all = format!("{},{challenge},{bare}", self.first);
        let mask = mac(&Sha256::digest(client).into(), all.as_bytes());
        let proof: Vec<u8> = client.iter().zip(mask).map(|(one, other)| one ^ other).collect();
        Ok(Proof {
            message: format!("{bare},p={}", STANDARD.encode(proof)),
            signature: mac(&mac(&salted, b"Server Key"), all.as_bytes()),
        })
    }
}

impl Proof {
    /// Whether the server knows the password, too.
    pub(super) fn is_answered_by(&self, last: &str) -> bool {
        let signature = attribute(last, "v=").and_then(|text| STANDARD.decode(text).ok());
        signature.is_some_and(|signature| signature == self.signature)
    }
}

fn attribute<'a>(message: &'a str, name: &str) -> Option<&'a str> {
    message.split(',').find_map(|part| part.strip_prefix(name))
}

fn mac(key: &Key, text: &[u8]) -> Key {
    keyed(key).chain_update(text).finalize().into_bytes().into()
}

#[allow(clippy::expect_used)] // of any length (RFC 2104)
fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("a key")
}

/// PBKDF2 (RFC 8018) of one block.
fn salted(password: &[u8], salt: &[u8], iterations: u32) -> Key {
    let keyed = keyed(password);
    let first = keyed.clone().chain_update(salt).chain_update([0, 0, 0, 1]);
    let mut last: Key = first.finalize().into_bytes().into();
    let mut sum = last;
    for _ in 1..iterations {
        last = keyed.clone().chain_update(last).finalize().into_bytes().into();
        sum.iter_mut().zip(last).for_each(|(byte, other)| *byte ^= other);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
    const CHALLENGE: &str =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

    /// The example of RFC 7677, section 3.
    #[test]
    fn the_example_of_the_standard() {
        let (scram, first) = Scram::begin("user", "pencil", NONCE.to_owned());
        assert_eq!(first, "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let proof = scram.prove(CHALLENGE).expect("a challenge");
        assert_eq!(
            proof.message,
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        assert!(proof.is_answered_by("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
        assert!(!proof.is_answered_by("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G8="));
        assert!(!proof.is_answered_by("e=invalid-proof"));
    }

    #[test]
    fn what_is_no_challenge_to_it_is_refused() {
        let (scram, _) = Scram::begin("a,b=c", "pencil", NONCE.to_owned());
        assert_eq!(scram.first, "n=a=2Cb=3Dc,r=rOprNGfwEbeRWgbNEkqO");
        for (what, by) in [(NONCE, "other"), ("s=W22Z", "t="), ("4096", "0"), ("4096", "9999999")] {
            assert!(scram.prove(&CHALLENGE.replace(what, by)).is_err(), "{what}");
        }
        assert!(scram.prove("").is_err());
    }
}
