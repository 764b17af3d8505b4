//! Detaching of a pod by CNI's own plug-ins (CNI specification 1.0.0, DEL), as in `tare/deployments/pod/cni.py`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::Failure;
use crate::netfilter::drop_portmap;
use crate::program::{self, Cancel};
use crate::request::Program;

/// Directories of plug-ins: upstream's, Debian's, Fedora's.
const DIRECTORIES: [&str; 3] = ["/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"];
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const INTERFACE: &str = "eth0";
const ATTACHED: &str = "attached.json";
const CALL: Duration = Duration::from_secs(60);

/// Directory with everything that is needed to detach a task's pod.
pub(crate) fn scratch_of(name: &str) -> Result<String, Failure> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    if name.is_empty() || !name.chars().all(plain) {
        return Err("it names no pod of tare's".into());
    }
    Ok(format!("/run/tare-pod.{name}"))
}

/// Calls DEL in reverse order, and removes portmap's own chains if they are empty. The caller removes the directory
/// last, as it is needed to detach the pod.
pub(crate) fn detach(name: &str, scratch: &str) -> Result<(), Failure> {
    let chain = attached(Path::new(scratch))?;
    for config in chain.iter().rev() {
        let place = directory_of(kind(config)?, &DIRECTORIES)?;
        delete(&place, config, name)?;
    }
    if chain.iter().any(|config| config["type"] == "portmap") { drop_portmap() } else { Ok(()) }
}

/// Configurations of the plug-ins that were called, in order; empty if nothing was attached yet.
fn attached(scratch: &Path) -> Result<Vec<Value>, Failure> {
    let text = match fs::read(scratch.join(ATTACHED)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let about: Value =
        serde_json::from_slice(&text).map_err(|error| format!("{ATTACHED} is damaged: {error}"))?;
    Ok(about["chain"].as_array().ok_or(format!("{ATTACHED} has no chain"))?.clone())
}

/// Name of a plug-in, which must not be a path.
fn kind(config: &Value) -> Result<&str, Failure> {
    let kind = config["type"].as_str().unwrap_or_default();
    if kind.is_empty() || kind.contains('/') || kind.starts_with('.') {
        return Err(format!("{ATTACHED} names no CNI plug-in").into());
    }
    Ok(kind)
}

fn directory_of(plugin: &str, places: &[&str]) -> Result<PathBuf, Failure> {
    let there = places.iter().map(PathBuf::from).find(|place| place.join(plugin).is_file());
    there.ok_or_else(|| {
        format!("the CNI plug-in {plugin} is in none of {}", places.join(", ")).into()
    })
}

/// Calls DEL. The namespace may have ended before, which is no error (specification, DEL).
fn delete(place: &Path, config: &Value, name: &str) -> Result<(), Failure> {
    let plugin = kind(config)?;
    let place = place.display().to_string();
    let env = [
        ("CNI_COMMAND", "DEL"),
        ("CNI_CONTAINERID", name),
        ("CNI_NETNS", ""),
        ("CNI_IFNAME", INTERFACE),
        ("CNI_PATH", &place),
        ("PATH", PATH),
    ];
    let env: BTreeMap<_, _> =
        env.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let program = Program { argv: vec![format!("{place}/{plugin}")], env: Some(env) };
    let done = program::run(&program, config.to_string().as_bytes(), CALL, &Cancel::new()?)
        .map_err(|fault| format!("the CNI plug-in {plugin} does not detach {name}: {fault}"))?;
    if done.code == 0 {
        return Ok(());
    }
    let answer: Option<Value> = serde_json::from_slice(&done.stdout).ok();
    let message = answer.as_ref().and_then(|answer| answer["msg"].as_str()).map(str::to_owned);
    let message = message.unwrap_or_else(|| done.last_words());
    Err(format!("the CNI plug-in {plugin} does not detach {name}: {message}").into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use serde_json::json;

    use super::*;
    use crate::netfilter::tests::in_own_network;

    fn plugin(folder: &Path, name: &str, script: &str) {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_pod_is_named_by_letters_that_lead_nowhere_else() {
        assert_eq!(scratch_of("tare-a.b_1").unwrap(), "/run/tare-pod.tare-a.b_1");
        for name in ["", "../x", "a/b", "a b"] {
            assert!(scratch_of(name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_was_never_attached_needs_no_plugin() {
        let folder = tempfile::tempdir().unwrap();
        assert!(attached(folder.path()).unwrap().is_empty());
        fs::write(folder.path().join(ATTACHED), "{").unwrap();
        assert!(
            attached(folder.path())
                .unwrap_err()
                .to_string()
                .starts_with("attached.json is damaged")
        );
        for strange in [json!({"type": "../sh"}), json!({"type": ".."}), json!({})] {
            assert!(kind(&strange).is_err(), "{strange}");
        }
    }

    #[test]
    fn a_plugin_gets_what_the_specification_says_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let seen = folder.path().join("seen").display().to_string();
        plugin(folder.path(), "fake", &format!("{{ env | sort; cat; }} >{seen}"));
        let config = json!({"cniVersion": "1.0.0", "name": "x", "type": "fake"});
        delete(folder.path(), &config, "x").unwrap();
        let text = fs::read_to_string(&seen).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("PWD=")).collect();
        assert_eq!(
            lines,
            [
                "CNI_COMMAND=DEL",
                "CNI_CONTAINERID=x",
                "CNI_IFNAME=eth0",
                "CNI_NETNS=",
                &format!("CNI_PATH={}", folder.path().display()),
                &format!("PATH={PATH}"),
                &config.to_string(),
            ]
        );
    }

    #[test]
    fn a_plugin_that_fails_is_quoted() {
        let folder = tempfile::tempdir().unwrap();
        plugin(folder.path(), "fake", r#"echo '{"code": 11, "msg": "out of order"}'; exit 1"#);
        plugin(folder.path(), "mute", "exit 4");
        let why = |kind: &str| {
            delete(folder.path(), &json!({"type": kind}), "x").unwrap_err().to_string()
        };
        assert_eq!(why("fake"), "the CNI plug-in fake does not detach x: out of order");
        assert_eq!(why("mute"), "the CNI plug-in mute does not detach x: it ended with 4");
        let places = [folder.path().to_str().unwrap()];
        assert_eq!(directory_of("mute", &places).unwrap(), folder.path());
        assert!(directory_of("none", &places).is_err());
    }

    #[test]
    fn a_real_pod_is_detached_though_its_namespace_is_gone() {
        if directory_of("portmap", &DIRECTORIES).is_err() {
            eprintln!("skipped: CNI's plug-ins are not installed");
            return;
        }
        in_own_network(
            "cni::tests::a_real_pod_is_detached_though_its_namespace_is_gone",
            detach_a_pod_that_is_gone,
        );
    }

    fn detach_a_pod_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = folder.path().display().to_string();
        let ipam = json!({
            "type": "host-local", "dataDir": format!("{scratch}/addresses"),
            "ranges": [[{"subnet": "10.231.0.0/29"}]], "routes": [{"dst": "0.0.0.0/0"}],
        });
        let mapping = json!({
            "hostPort": 5000, "containerPort": 5000, "protocol": "tcp", "hostIP": "10.231.0.1",
        });
        let chain = json!([
            {"cniVersion": "1.0.0", "name": "x", "type": "bridge", "bridge": "tarec0", "isGateway": true, "ipam": ipam},
            {
                "cniVersion": "1.0.0", "name": "x", "type": "portmap", "snat": true,
                "runtimeConfig": {"portMappings": [mapping]},
            },
        ]);
        fs::write(folder.path().join(ATTACHED), json!({"chain": chain, "pid": 1}).to_string())
            .unwrap();
        // A pod's namespace, which ends with its container.
        let mut pod = Command::new("unshare").args(["--net", "sleep", "60"]).spawn().unwrap();
        let netns = format!("/proc/{}/ns/net", pod.id());
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        while fs::read_link(&netns).unwrap() == own {
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut result = Value::Null;
        for config in chain.as_array().unwrap() {
            let mut given = config.clone();
            if !result.is_null() {
                given["prevResult"] = result;
            }
            result = add(&given, &netns);
        }
        let nat = || program::printed(&["iptables-save", "-t", "nat"], b"", CALL).unwrap();
        assert!(nat().contains("--to-destination 10.231.0.2:5000"));
        assert!(folder.path().join("addresses/x/10.231.0.2").exists());
        pod.kill().unwrap();
        pod.wait().unwrap();
        detach("x", &scratch).unwrap();
        assert!(!nat().contains("CNI-"), "{}", nat());
        assert!(!folder.path().join("addresses/x/10.231.0.2").exists());
        detach("x", &scratch).unwrap();
    }

    fn add(config: &Value, netns: &str) -> Value {
        let plugin = kind(config).unwrap();
        let place = directory_of(plugin, &DIRECTORIES).unwrap().display().to_string();
        let env = [
            ("CNI_COMMAND", "ADD"),
            ("CNI_CONTAINERID", "x"),
            ("CNI_NETNS", netns),
            ("CNI_IFNAME", INTERFACE),
            ("CNI_PATH", &place),
            ("PATH", PATH),
        ];
        let env = env.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let program = Program { argv: vec![format!("{place}/{plugin}")], env: Some(env) };
        let stdin = config.to_string();
        let done = program::run(&program, stdin.as_bytes(), CALL, &Cancel::new().unwrap()).unwrap();
        assert_eq!(done.code, 0, "{}", String::from_utf8_lossy(&done.stdout));
        serde_json::from_slice(&done.stdout).unwrap()
    }
}
