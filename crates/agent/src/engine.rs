//! As much of the container engine's HTTP as removing what a dead tare left takes.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Failure;

/// Borne by what tare's deployments make; what lacks it is somebody else's.
const LABEL: &str = "org.tare-bench.run";
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);
const NOT_FOUND: u16 = 404;
/// A dead tare had asked for it, and the engine is at it.
const CONFLICT: u16 = 409;

pub(crate) struct Engine<'a> {
    pub(crate) socket: &'a str,
}

impl Engine<'_> {
    /// Remove a container, network or volume that bears tare's label.
    pub(crate) fn remove(&self, kind: &str, name: &str) -> Result<(), Failure> {
        let (look, remove) = match kind {
            "container" => {
                (format!("/containers/{name}/json"), format!("/containers/{name}?force=1&v=1"))
            }
            "network" => (format!("/networks/{name}"), format!("/networks/{name}")),
            "volume" => (format!("/volumes/{name}"), format!("/volumes/{name}?force=1")),
            _ => return Err(format!("no engine makes a {kind}").into()),
        };
        let (status, text) = self.ask("GET", &look)?;
        if status == NOT_FOUND {
            return Ok(());
        }
        let about: Value = serde_json::from_str(&text)?;
        if about["Labels"].get(LABEL).or(about["Config"]["Labels"].get(LABEL)).is_none() {
            return Err("it has no label of tare's, so it belongs to someone else".into());
        }
        match self.ask("DELETE", &remove)? {
            (200..300 | NOT_FOUND, _) => Ok(()),
            (CONFLICT, _) => self.wait_until_gone(&look),
            (status, text) => Err(format!("the engine answered {status}: {}", text.trim()).into()),
        }
    }

    fn wait_until_gone(&self, look: &str) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if self.ask("GET", look)?.0 == NOT_FOUND {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        Err("the engine does not get done with removing it".into())
    }

    /// Status and body. HTTP/1.0, so that the end of the stream is the end of the body.
    fn ask(&self, method: &str, target: &str) -> Result<(u16, String), Failure> {
        let mut stream = UnixStream::connect(self.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream
            .write_all(format!("{method} {target} HTTP/1.0\r\nHost: engine\r\n\r\n").as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let (head, body) = text.split_once("\r\n\r\n").ok_or("the engine's answer is cut short")?;
        let status = head.split(' ').nth(1).ok_or("the engine's answer has no status")?.parse()?;
        Ok((status, body.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// What was asked of an engine that gives these answers, and what came of it.
    fn asked(answers: &'static [&'static str], kind: &str) -> (Vec<String>, Result<(), Failure>) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let server = std::thread::spawn(move || {
            let mut lines = Vec::new();
            for answer in answers {
                let mut stream = listener.accept().unwrap().0;
                let mut block = [0; 4096];
                let length = stream.read(&mut block).unwrap();
                let text = String::from_utf8_lossy(&block[..length]).into_owned();
                lines.push(text.lines().next().unwrap().to_owned());
                stream.write_all(answer.as_bytes()).unwrap();
            }
            lines
        });
        let done = Engine { socket: socket.to_str().unwrap() }.remove(kind, "x");
        (server.join().unwrap(), done)
    }

    #[test]
    fn what_bears_the_label_is_removed() {
        let (lines, done) = asked(
            &[
                "HTTP/1.0 200 OK\r\n\r\n{\"Config\": {\"Labels\": {\"org.tare-bench.run\": \"a\"}}}",
                "HTTP/1.0 204 No Content\r\n\r\n",
            ],
            "container",
        );
        assert!(done.is_ok());
        assert_eq!(lines[1], "DELETE /containers/x?force=1&v=1 HTTP/1.0");
    }

    #[test]
    fn what_does_not_is_left_alone() {
        let (lines, done) = asked(&["HTTP/1.0 200 OK\r\n\r\n{\"Labels\": null}"], "network");
        assert!(done.is_err() && lines.len() == 1);
    }

    #[test]
    fn what_is_gone_needs_no_removal() {
        assert!(asked(&["HTTP/1.0 404 Not Found\r\n\r\n{}"], "volume").1.is_ok());
    }
}
