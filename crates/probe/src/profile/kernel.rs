//! Names of the kernel's functions, from `/proc/kallsyms`.

use std::fs;
use std::io;

/// Code of the kernel and of its modules, by address.
#[derive(Default)]
pub(super) struct KernelSymbols {
    /// Address, and position of its name in `names`; sorted by address.
    starts: Vec<(u64, u32)>,
    names: String,
}

/// Longest function: addresses farther from a function's start are not part of it.
const LONGEST: u64 = 1 << 18;

impl KernelSymbols {
    /// Reads the symbols of the running kernel.
    ///
    /// # Errors
    /// The file does not exist, or `kptr_restrict` hides its addresses; the message says which.
    pub(super) fn of_host() -> io::Result<Self> {
        let found = Self::parse(&fs::read_to_string("/proc/kallsyms")?);
        if found.starts.is_empty() {
            return Err(io::Error::other(
                "/proc/kallsyms hides its addresses: kernel.kptr_restrict, or no CAP_SYSLOG",
            ));
        }
        Ok(found)
    }

    /// Parses lines of address, type, name, and for a module its name in brackets.
    #[must_use]
    pub(super) fn parse(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            if address == 0 || !matches!(kind, "t" | "T" | "w" | "W") {
                continue;
            }
            let at = found.names.len() as u32;
            found.names.push_str(clean(name));
            found.names.push('\n');
            found.starts.push((address, at));
        }
        // The first of several names of one address is kept, as `sort_by_key` keeps their order.
        found.starts.sort_by_key(|(address, _)| *address);
        found.starts.dedup_by_key(|(address, _)| *address);
        found
    }

    /// Function that contains an address.
    #[must_use]
    pub(super) fn name(&self, address: u64) -> Option<&str> {
        let after = self.starts.partition_point(|(start, _)| *start <= address);
        let (start, at) = *self.starts.get(after.checked_sub(1)?)?;
        if address - start >= LONGEST {
            return None;
        }
        self.names[at as usize..].split('\n').next()
    }
}

/// Name without suffixes that compilers append: `.isra.0`, `.constprop.0`, `.part.0`, `.cold`.
fn clean(name: &str) -> &str {
    let whole = name.split_once('.').map_or(name, |(whole, _)| whole);
    if whole.is_empty() { name } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 t tcp_sendmsg.isra.0
ffffffff81000200 D some_data
ffffffffc0100000 t nf_conntrack_in\t[nf_conntrack]
";

    #[test]
    fn an_address_lies_in_the_function_that_begins_before_it() {
        let symbols = KernelSymbols::parse(TEXT);
        assert_eq!(symbols.name(0xffff_ffff_8100_0180), Some("tcp_sendmsg"));
        assert_eq!(symbols.name(0xffff_ffff_8100_0000), Some("_stext"));
        assert_eq!(symbols.name(0xffff_ffff_c010_0010), Some("nf_conntrack_in"));
        assert_eq!(symbols.name(0xffff_ffff_8000_0000), None, "before all of them");
        assert_eq!(symbols.name(0xffff_ffff_8200_0000), None, "far behind the last before it");
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        let hidden = "0000000000000000 T _stext\n0000000000000000 T tcp_sendmsg\n";
        assert_eq!(KernelSymbols::parse(hidden).name(0x10), None);
    }
}
