//! SHA-256 of a file.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

use crate::bytes::to_hex;

pub(crate) fn sha256_of(mut source: impl Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut block = vec![0; 1 << 16];
    loop {
        match source.read(&mut block)? {
            0 => return Ok(to_hex(&digest.finalize())),
            length => digest.update(&block[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answer_of_fips_180() {
        let digest = sha256_of(&b"abc"[..]).expect("memory can be read");
        assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
