//! SCRAM (RFC 5802, RFC 7677), by SHA-1 or SHA-256.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// More would keep a client busy for seconds at each connection.
const MOST_ITERATIONS: u32 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha256,
}

/// What the log-in is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// The client cannot.
    Unsupported,
    /// The client could, and the server does not offer it.
    Unused,
    /// Digest of the server's certificate (`tls-server-end-point`, RFC 5929).
    EndPoint(Vec<u8>),
}

impl Binding {
    fn header(&self) -> &'static str {
        match self {
            Self::Unsupported => "n,,",
            Self::Unused => "y,,",
            Self::EndPoint(_) => "p=tls-server-end-point,,",
        }
    }

    /// As the client's last message repeats it.
    fn repeated(&self) -> String {
        let mut bytes = self.header().as_bytes().to_vec();
        if let Self::EndPoint(digest) = self {
            bytes.extend_from_slice(digest);
        }
        STANDARD.encode(bytes)
    }
}

/// Between the client's two messages.
pub(super) struct Scram {
    hash: Hash,
    password: String,
    nonce: String,
    binding: Binding,
    /// The first message without its header.
    first: String,
}

/// The client's second message, and what the server must answer to it.
pub(super) struct Proof {
    pub(super) message: String,
    pub(super) signature: Vec<u8>,
}

impl Scram {
    /// The client's side, and its first message; `nonce` must be new each time.
    pub(super) fn begin(
        hash: Hash,
        user: &str,
        password: &str,
        nonce: String,
        binding: Binding,
    ) -> (Self, String) {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        let first = format!("n={user},r={nonce}");
        let message = format!("{}{first}", binding.header());
        let password = stringprep::saslprep(password).unwrap_or(Cow::Borrowed(password));
        (Self { hash, password: password.into_owned(), nonce, binding, first }, message)
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
        let salted = self.hash.salted(self.password.as_bytes(), &salt, iterations);
        let client = self.hash.mac(&salted, b"Client Key");
        let bare = format!("c={},r={nonce}", self.binding.repeated());
        let all = format!("{},{challenge},{bare}", self.first);
        let mask = self.hash.mac(&self.hash.digest(&client), all.as_bytes());
        let proof: Vec<u8> = client.iter().zip(mask).map(|(one, other)| one ^ other).collect();
        Ok(Proof {
            message: format!("{bare},p={}", STANDARD.encode(proof)),
            signature: self.hash.mac(&self.hash.mac(&salted, b"Server Key"), all.as_bytes()),
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

/// 24 characters that no other log-in has.
pub(super) fn nonce() -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let random: [u8; 24] = rand::random();
    random.iter().map(|byte| char::from(LETTERS[usize::from(byte % 64)])).collect()
}

fn attribute<'a>(message: &'a str, name: &str) -> Option<&'a str> {
    message.split(',').find_map(|part| part.strip_prefix(name))
}

impl Hash {
    fn digest(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => Sha1::digest(bytes).to_vec(),
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
        }
    }

    fn mac(self, key: &[u8], text: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => mac(&keyed::<Hmac<Sha1>>(key), &[text]),
            Self::Sha256 => mac(&keyed::<Hmac<Sha256>>(key), &[text]),
        }
    }

    fn salted(self, password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
        match self {
            Self::Sha1 => salted(&keyed::<Hmac<Sha1>>(password), salt, iterations),
            Self::Sha256 => salted(&keyed::<Hmac<Sha256>>(password), salt, iterations),
        }
    }
}

#[allow(clippy::expect_used)] // of any length (RFC 2104)
fn keyed<M: KeyInit>(key: &[u8]) -> M {
    M::new_from_slice(key).expect("a key")
}

fn mac<M: Mac + Clone>(keyed: &M, texts: &[&[u8]]) -> Vec<u8> {
    let keyed = texts.iter().fold(keyed.clone(), Mac::chain_update);
    keyed.finalize().into_bytes().to_vec()
}

/// PBKDF2 (RFC 8018) of one block.
fn salted<M: Mac + Clone>(keyed: &M, salt: &[u8], iterations: u32) -> Vec<u8> {
    let mut last = mac(keyed, &[salt, &[0, 0, 0, 1]]);
    let mut sum = last.clone();
    for _ in 1..iterations {
        last = mac(keyed, &[&last]);
        sum.iter_mut().zip(&last).for_each(|(byte, other)| *byte ^= other);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
    const CHALLENGE: &str =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

    fn begin(hash: Hash, user: &str, nonce: &str, binding: Binding) -> (Scram, String) {
        Scram::begin(hash, user, "pencil", nonce.to_owned(), binding)
    }

    /// The example of RFC 5802, section 5.
    #[test]
    fn the_example_of_the_standard_by_sha_1() {
        let nonce = "fyko+d2lbbFgONRv9qkxdawL";
        let (scram, first) = begin(Hash::Sha1, "user", nonce, Binding::Unsupported);
        assert_eq!(first, "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL");
        let proof = scram
            .prove("r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096")
            .expect("a challenge");
        assert_eq!(
            proof.message,
            "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
        );
        assert!(proof.is_answered_by("v=rmF9pqV8S7suAoZWja4dJRkFsKQ="));
        assert!(!proof.is_answered_by("v=rmF9pqV8S7suAoZWja4dJRkEsKQ="));
    }

    #[test]
    fn a_binding_is_repeated_with_its_header() {
        let (bound, first) = begin(Hash::Sha256, "", NONCE, Binding::EndPoint(b"digest".to_vec()));
        assert!(first.starts_with("p=tls-server-end-point,,n=,r="));
        let message = bound.prove(CHALLENGE).expect("a challenge").message;
        let repeated = STANDARD.encode(b"p=tls-server-end-point,,digest");
        assert!(message.starts_with(&format!("c={repeated},r=")));
        let (_, first) = begin(Hash::Sha256, "", NONCE, Binding::Unused);
        assert!(first.starts_with("y,,n=,r="));
    }

    /// The example of RFC 7677, section 3.
    #[test]
    fn the_example_of_the_standard() {
        let (scram, first) = begin(Hash::Sha256, "user", NONCE, Binding::Unsupported);
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
        let (scram, _) = begin(Hash::Sha256, "a,b=c", NONCE, Binding::Unsupported);
        assert_eq!(scram.first, "n=a=2Cb=3Dc,r=rOprNGfwEbeRWgbNEkqO");
        for (what, by) in [(NONCE, "other"), ("s=W22Z", "t="), ("4096", "0"), ("4096", "9999999")] {
            assert!(scram.prove(&CHALLENGE.replace(what, by)).is_err(), "{what}");
        }
        assert!(scram.prove("").is_err());
    }
}
