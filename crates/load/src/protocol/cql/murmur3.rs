//! Where a partition key lies on Cassandra's ring (`Murmur3Partitioner`).

/// The first half of `MurmurHash3_x64_128` with seed 0, as Cassandra has it: bytes of the tail are signed there.
pub(super) fn token(key: &[u8]) -> i64 {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let mix1 = |k: u64| k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let mix2 = |k: u64| k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let (mut h1, mut h2) = (0_u64, 0_u64);
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        let (low, high) = block.split_at(8);
        let word =
            |half: &[u8]| half.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        h1 = (h1 ^ mix1(word(low))).rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ mix2(word(high))).rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    // Sign extension is what makes it differ from the algorithm as published.
    let signed = |bytes: &[u8]| {
        let one = |(place, &byte): (usize, &u8)| (i64::from(byte as i8) as u64) << (8 * place);
        bytes.iter().enumerate().map(one).fold(0, |word, one| word ^ one)
    };
    let (low, high) = tail.split_at(tail.len().min(8));
    h2 ^= mix2(signed(high));
    h1 ^= mix1(signed(low));
    h1 ^= key.len() as u64;
    h2 ^= key.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    let token = finish(h1).wrapping_add(finish(h2)) as i64;
    if token == i64::MIN { i64::MAX } else { token }
}

fn finish(mut h: u64) -> u64 {
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^= h >> 33;
    h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a test of the driver for Python has them.
    #[test]
    fn tokens_are_those_of_cassandra() {
        assert_eq!(token(b"123"), -7_468_325_962_851_647_638);
        assert_eq!(token(&b"\x00\xff\x10\xfa\x99".repeat(10)), 5_837_342_703_291_459_765);
        assert_eq!(token(&[0xfe; 8]), -8_927_430_733_708_461_935);
        assert_eq!(token(&[0x10; 8]), 1_446_172_840_243_228_796);
        assert_eq!(token(b"9223372036854775807"), 7_162_290_910_810_015_547);
        assert_eq!(token(b""), 0);
    }

    /// `SELECT y_id, token(y_id)`, and `SELECT a, token(b, a)` where b is the int -2, of Cassandra 3.11.2.
    #[test]
    fn tokens_are_those_that_a_server_tells() {
        assert_eq!(token(b"user1715321609418666813"), -8_139_644_566_994_260_956);
        assert_eq!(token(b"user4904145807851891375"), -8_138_292_776_607_601_311);
        let of_two = |text: &str| {
            let length = (text.len() as u16).to_be_bytes();
            token(&[b"\0\x04\xff\xff\xff\xfe\0", &length[..], text.as_bytes(), b"\0"].concat())
        };
        assert_eq!(of_two("x"), 7_506_902_016_032_882_462);
        assert_eq!(of_two("Straße"), -3_954_489_305_663_196_113);
        assert_eq!(of_two("user0123456789012345678901234567890"), -8_565_126_265_336_690_582);
        assert_eq!(of_two("éàüöçß_ñ"), 8_317_347_824_250_703_451);
    }
}
