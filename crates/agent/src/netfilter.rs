//! Removal of a pod's Service from the host's netfilter, and of the chains that CNI's portmap leaves.
//!
//! Programs get the same input as from `tare/deployments/pod/`; both are tested with the same captured tables.

use std::time::Duration;

use crate::Failure;
use crate::program::printed;

const CALL: Duration = Duration::from_secs(60);
/// Time limit: tables of ten thousand Services take seconds.
const LONG: Duration = Duration::from_secs(600);
const RESTORE: [&str; 4] = ["iptables-restore", "--noflush", "-w", "30"];
const TABLES: [&str; 2] = ["filter", "nat"];
const PORTMAP_CHAINS: [&str; 3] =
    ["CNI-HOSTPORT-DNAT", "CNI-HOSTPORT-MASQ", "CNI-HOSTPORT-SETMARK"];

/// Removes the rules with a tag, if there are any. `mark::refuse_rules` has judged both words.
pub(crate) fn drop_rules(proxy: &str, tag: &str) -> Result<(), Failure> {
    if proxy == "nftables" { drop_table(&format!("tare-{tag}")) } else { drop_chains(tag) }
}

/// Removes the chains that portmap keeps for the next pod, if the first has no rule, so no pod uses them.
pub(crate) fn drop_portmap() -> Result<(), Failure> {
    let lines = portmap_removal(&printed(&["iptables-save", "-t", "nat"], b"", CALL)?);
    if lines.is_empty() { Ok(()) } else { restore(&lines, CALL) }
}

fn drop_chains(tag: &str) -> Result<(), Failure> {
    let mut saved = String::new();
    for table in TABLES {
        saved += &printed(&["iptables-save", "-t", table], b"", LONG)?;
    }
    if saved.contains(&format!(":TARE-{tag}-")) {
        restore(&removal(tag, &saved), LONG)
    } else {
        Ok(())
    }
}

fn drop_table(name: &str) -> Result<(), Failure> {
    // nft reads whole tables even to list their names: 16 s with a thousand Services on a busy machine.
    let listed = printed(&["nft", "list", "tables", "ip"], b"", LONG)?;
    if listed.lines().any(|line| line == format!("table ip {name}")) {
        printed(&["nft", "delete", "table", "ip", name], b"", LONG)?;
    }
    Ok(())
}

fn restore(lines: &[String], limit: Duration) -> Result<(), Failure> {
    printed(&RESTORE, (lines.join("\n") + "\n").as_bytes(), limit).map(drop)
}

/// Lines that remove the chains of a tag in the output of `iptables-save`, and all rules that lead to them.
fn removal(tag: &str, saved: &str) -> Vec<String> {
    let own = format!("TARE-{tag}-");
    let (mut lines, mut chains) = (Vec::new(), Vec::new());
    for line in saved.lines() {
        if line.starts_with('*') {
            chains.clear();
            lines.push(line.to_owned());
        } else if let Some(rule) = line.strip_prefix("-A ") {
            if !rule.starts_with(&own) && rule.contains(&format!("-j {own}")) {
                lines.push(format!("-D {rule}"));
            }
        } else if let Some(chain) = line.strip_prefix(':').filter(|rest| rest.starts_with(&own)) {
            let name = chain.split(' ').next().unwrap_or(chain);
            lines.push(format!(":{name} - [0:0]")); // empties it
            chains.push(name);
        } else if line == "COMMIT" {
            lines.extend(chains.iter().map(|name| format!("-X {name}")));
            lines.push(line.to_owned());
        }
    }
    lines
}

/// Lines for the output of `iptables-save -t nat`; empty while a pod has a rule there.
fn portmap_removal(saved: &str) -> Vec<String> {
    let rules: Vec<&str> = saved.lines().filter_map(|line| line.strip_prefix("-A ")).collect();
    let there: Vec<&str> = PORTMAP_CHAINS
        .into_iter()
        .filter(|name| saved.lines().any(|line| line.starts_with(&format!(":{name} "))))
        .collect();
    let in_chain = |rule: &&str, name: &str| rule.starts_with(&format!("{name} "));
    if there.is_empty() || rules.iter().any(|rule| in_chain(rule, PORTMAP_CHAINS[0])) {
        return Vec::new();
    }
    let leading = rules.iter().filter(|rule| {
        !PORTMAP_CHAINS.iter().any(|name| in_chain(rule, name))
            && there.iter().any(|name| rule.contains(&format!("-j {name}")))
    });
    let mut lines = vec!["*nat".to_owned()];
    lines.extend(there.iter().map(|name| format!(":{name} - [0:0]")));
    lines.extend(leading.map(|rule| format!("-D {rule}")));
    lines.extend(there.iter().map(|name| format!("-X {name}")));
    lines.push("COMMIT".to_owned());
    lines
}

#[cfg(test)]
pub(crate) mod tests {
    use std::process::Command;

    use super::*;

    const TAG: &str = "0123456789ab";
    const SAVED: &str = include_str!("../tests/data/netfilter/saved");
    const REMOVAL: &str = include_str!("../tests/data/netfilter/removal");
    const PORTMAP: &str = include_str!("../tests/data/netfilter/portmap");

    /// Environment variable that is set in a test's own namespace.
    const APART: &str = "TARE_TEST_APART";

    /// Runs `body` in its own network namespace, where it may change the kernel's rules: this program runs `test`, the
    /// caller, there, which calls this function again. It never runs in the machine's own network: if no namespace can
    /// be made, the test is skipped with a message.
    pub(crate) fn in_own_network(test: &str, body: fn()) {
        if std::env::var_os(APART).is_some() {
            return body();
        }
        // Root of a user namespace may not read a checkout in somebody else's home.
        let root = rustix::process::geteuid().is_root();
        let unshare: &[&str] =
            if root { &["--net", "--mount"] } else { &["--map-root-user", "--net", "--mount"] };
        let there =
            Command::new("unshare").args(unshare).args(["iptables-save", "-t", "nat"]).output();
        if !there.is_ok_and(|done| done.status.success()) {
            eprintln!(
                "{test} is skipped: no network namespace with iptables of its own can be made"
            );
            return;
        }
        let done = Command::new("unshare")
            .args(unshare)
            .arg(std::env::current_exe().unwrap())
            .args([test, "--exact", "--test-threads=1"])
            .env(APART, "1")
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success() && words.contains("1 passed"), "{words}");
    }

    fn state() -> String {
        let saved: String = TABLES
            .iter()
            .map(|table| printed(&["iptables-save", "-t", table], b"", CALL).unwrap())
            .collect();
        let lines: Vec<&str> = saved.lines().filter(|line| !line.starts_with('#')).collect();
        lines.join("\n")
    }

    #[test]
    fn removal_of_a_captured_table_is_that_of_the_sweep() {
        assert_eq!(removal(TAG, SAVED), REMOVAL.lines().collect::<Vec<_>>());
    }

    #[test]
    fn chains_of_portmap_stay_while_a_pod_has_a_rule_there() {
        let lines = portmap_removal(PORTMAP);
        assert_eq!(lines[0], "*nat");
        assert_eq!(lines.iter().filter(|line| line.starts_with("-X ")).count(), 3);
        let used = PORTMAP.replace("COMMIT", "-A CNI-HOSTPORT-DNAT -p tcp -j CNI-DN-1\nCOMMIT");
        assert!(portmap_removal(&used).is_empty());
        assert!(portmap_removal("*nat\nCOMMIT\n").is_empty());
    }

    #[test]
    fn rules_go_from_the_kernel_and_those_of_others_stay() {
        in_own_network(
            "netfilter::tests::rules_go_from_the_kernel_and_those_of_others_stay",
            drop_rules_beside_others,
        );
    }

    fn drop_rules_beside_others() {
        printed(&RESTORE, SAVED.as_bytes(), CALL).unwrap();
        let before = state();
        assert!(before.contains(TAG) && before.contains("OTHERS"));
        drop_rules("iptables", TAG).unwrap();
        let after = state();
        assert!(!after.contains(TAG));
        let kept: Vec<&str> = before.lines().filter(|line| !line.contains(TAG)).collect();
        assert_eq!(after.lines().collect::<Vec<_>>(), kept);
        drop_rules("iptables", TAG).unwrap();
        assert_eq!(state(), after);

        let own = format!("tare-{TAG}");
        for table in [&own, "tare-ba9876543210", "others"] {
            printed(&["nft", "add", "table", "ip", table], b"", CALL).unwrap();
        }
        drop_rules("nftables", TAG).unwrap();
        drop_rules("nftables", TAG).unwrap();
        let listed = printed(&["nft", "list", "tables", "ip"], b"", CALL).unwrap();
        assert!(
            !listed.contains(&own)
                && listed.contains("tare-ba9876543210")
                && listed.contains("others")
        );
    }
}
