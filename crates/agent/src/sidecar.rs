//! Sidecars, for an agent that is not root: containers that do what only root or the owners of data may do.
//!
//! tare sends how to make its own sidecar (python/tare/sites/sidecar/); each of these runs a single program.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::Failure;
use crate::engine::Engine;
use crate::ledger::Ledger;

static MADE: AtomicU32 = AtomicU32::new(0);

/// Removes trees of control groups. Arguments: their number, the trees, and parents to remove if they are empty.
const REMOVE_CGROUPS: &str = r#"
left=$1; shift
while [ "$left" -gt 0 ]; do
    tries=50
    while [ -d "$1" ]; do
        find "$1" -depth -type d -exec rmdir -- {} \; 2>/dev/null
        [ -d "$1" ] || break
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || { echo "$1 still holds processes" >&2; exit 1; }
        sleep 0.2
    done
    shift; left=$((left - 1))
done
for above; do rmdir -- "$above" 2>/dev/null || :; done
"#;

/// `wanted`: the request to the engine, without the program.
pub(crate) struct Sidecar<'a> {
    pub(crate) engine: Engine<'a>,
    pub(crate) wanted: &'a Value,
    pub(crate) ledger: &'a Ledger,
}

impl Sidecar<'_> {
    /// Runs a program to its end. The container is in the ledger while it exists.
    pub(crate) fn run(&self, argv: &[&str]) -> Result<(), Failure> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("tare-sidecar-{}-{number}", std::process::id());
        let mut wanted = self.wanted.clone();
        *wanted.get_mut("Cmd").ok_or("nobody has told how a sidecar is made")? = argv.into();
        self.ledger.note("container".into(), name.clone(), false)?;
        let done = self.engine.run_once(&name, &wanted);
        self.engine.remove("container", &name, self.ledger.owner())?;
        self.ledger.forget("container".into(), name)?;
        done
    }
    /// Removes a directory with files of other users.
    pub(crate) fn remove_tree(&self, path: &str) -> Result<(), Failure> {
        self.run(&["rm", "-rf", "--one-file-system", "--", path])
    }

    /// Clears a control group of a user's container that the engine has ended, in every hierarchy: root owns them.
    pub(crate) fn clear_cgroup(
        &self,
        path: &str,
        mounts: &BTreeSet<String>,
    ) -> Result<(), Failure> {
        let (mut trees, mut above) = (Vec::new(), Vec::new());
        for mount in mounts {
            let tree = Path::new(mount).join(path);
            if tree.exists() {
                let parents =
                    tree.ancestors().skip(1).take_while(|place| *place != Path::new(mount));
                above.extend(parents.map(|place| place.display().to_string()));
                trees.push(tree.display().to_string());
            }
        }
        if trees.is_empty() {
            return Ok(());
        }
        let count = trees.len().to_string();
        let words = ["sh", "-c", REMOVE_CGROUPS, "sh", &count];
        let places = trees.iter().chain(&above).map(String::as_str);
        self.run(&words.into_iter().chain(places).collect::<Vec<_>>())
    }
}

/// Whether something failed because of missing rights.
pub(crate) fn denied(failure: &Failure) -> bool {
    let error = failure.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use serde_json::json;

    use super::*;

    const OURS: &str = "HTTP/1.0 200 OK\r\n\r\n{\"Config\": {\"Labels\": {\
        \"org.tare-bench.run\": \"r\", \"org.tare-bench.owner\": \"me\"}}}";
    const DONE: &str = "HTTP/1.0 204 No Content\r\n\r\n";

    /// What an engine that gives these answers was asked, and what came of removing a directory.
    fn removed(answers: Vec<String>) -> (Vec<String>, Result<(), Failure>) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let server = std::thread::spawn(move || {
            let mut requests = Vec::new();
            for answer in answers {
                let mut stream = listener.accept().unwrap().0;
                let mut block = [0; 4096];
                let length = stream.read(&mut block).unwrap();
                requests.push(String::from_utf8_lossy(&block[..length]).into_owned());
                stream.write_all(answer.as_bytes()).unwrap();
            }
            requests
        });
        let ledger = Ledger::new(folder.path().join("ledger"), "me".into());
        let engine = Engine { socket: socket.to_str().unwrap() };
        let wanted = json!({"Image": "tare/sidecar:x", "Cmd": []});
        let done = Sidecar { engine, wanted: &wanted, ledger: &ledger }.remove_tree("/srv/tare/x");
        assert_eq!(ledger.entries().unwrap(), []);
        (server.join().unwrap(), done)
    }

    fn answers(ended: &str) -> Vec<String> {
        let created = "HTTP/1.0 201 Created\r\n\r\n{\"Id\": \"1\"}";
        [created, DONE, ended].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_container_runs_the_program_and_is_removed() {
        let mut given = answers("HTTP/1.0 200 OK\r\n\r\n{\"StatusCode\": 0}");
        given.extend([OURS.to_owned(), DONE.to_owned()]);
        let (requests, done) = removed(given);
        assert!(done.is_ok(), "{done:?}");
        let first = requests[0].split_once("\r\n\r\n").unwrap();
        assert!(first.0.starts_with("POST /containers/create?name=tare-sidecar-"));
        assert!(first.0.ends_with(&format!("Content-Length: {}", first.1.len())));
        let asked: Value = serde_json::from_str(first.1).unwrap();
        assert_eq!(asked["Image"], "tare/sidecar:x");
        assert_eq!(asked["Cmd"], json!(["rm", "-rf", "--one-file-system", "--", "/srv/tare/x"]));
        let verbs: Vec<_> = requests.iter().map(|text| text.split(' ').next().unwrap()).collect();
        assert_eq!(verbs, ["POST", "POST", "POST", "GET", "DELETE"]);
    }

    #[test]
    fn a_program_that_fails_is_quoted_and_its_container_goes_all_the_same() {
        let mut given = answers("HTTP/1.0 200 OK\r\n\r\n{\"StatusCode\": 1}");
        let frame = "\u{2}\0\0\0\0\0\0\u{10}rm: Device busy\n";
        given.push(format!("HTTP/1.0 200 OK\r\n\r\n{frame}"));
        given.extend([OURS.to_owned(), DONE.to_owned()]);
        let why = removed(given).1.unwrap_err().to_string();
        assert_eq!(why, "its program ended with 1: rm: Device busy");
    }

    #[test]
    fn an_engine_that_makes_none_is_quoted() {
        let refused = "HTTP/1.0 404 Not Found\r\n\r\n{\"message\": \"No such image\"}".to_owned();
        let gone = "HTTP/1.0 404 Not Found\r\n\r\n{}".to_owned();
        let why = removed(vec![refused, gone]).1.unwrap_err().to_string();
        assert_eq!(why, "the engine answered 404: No such image");
    }
}
