//! `io.stat` of control groups v2 (Documentation/admin-guide/cgroup-v2.rst).

use super::fields::{leading_number, lines};

/// Sums over all devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub reads: u64,
    pub writes: u64,
}

/// Sums the devices' lines; `None` where none has counters.
#[must_use]
pub fn sums(bytes: &[u8]) -> Option<Io> {
    let mut sums: Option<Io> = None;
    for pair in lines(bytes).flat_map(|line| line.split(|byte| *byte == b' ')) {
        let Some(equals) = memchr::memchr(b'=', pair) else { continue };
        let Some((value, _)) = leading_number(&pair[equals + 1..]) else { continue };
        let field: fn(&mut Io) -> &mut u64 = match &pair[..equals] {
            b"rbytes" => |io| &mut io.read_bytes,
            b"wbytes" => |io| &mut io.written_bytes,
            b"rios" => |io| &mut io.reads,
            b"wios" => |io| &mut io.writes,
            _ => continue,
        };
        let sum = field(sums.get_or_insert_default());
        *sum = sum.saturating_add(value);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the kernel's documentation.
    const IO_STAT: &[u8] =
        b"8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n\
        8:0 rbytes=90430464 wbytes=299008000 rios=8950 wios=1252 dbytes=50331648 dios=3021\n";

    #[test]
    fn devices_are_added() {
        let io = sums(IO_STAT).expect("two devices");
        assert_eq!(io.read_bytes, 1_459_200 + 90_430_464);
        assert_eq!(io.written_bytes, 314_773_504 + 299_008_000);
        assert_eq!((io.reads, io.writes), (9142, 1605));
    }

    #[test]
    fn a_group_without_io_has_no_lines() {
        assert_eq!(sums(b""), None);
        assert_eq!(sums(b"8:16 \n"), None, "a device that was never used has no counters");
    }
}
