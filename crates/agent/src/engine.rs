//! The part of the container engine's API that is needed to remove what a dead tare left.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Failure;
use crate::mark;

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);
/// Time limit of a program in a container, which may remove a large directory.
const LONGEST: Duration = Duration::from_secs(600);
const NOT_FOUND: u16 = 404;
/// Prefix of the names of tare's own images.
const IMAGES: &str = "tare/";
/// Status if the engine is already removing it, at the request of a dead tare.
const CONFLICT: u16 = 409;

pub(crate) struct Engine<'a> {
    pub(crate) socket: &'a str,
}

impl Engine<'_> {
    /// Removes a container, network or volume that bears the owner's label.
    pub(crate) fn remove(&self, kind: &str, name: &str, owner: &str) -> Result<(), Failure> {
        if !name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-:/@".contains(letter)) {
            return Err("an engine has nothing of this name".into());
        }
        let (look, remove) = match kind {
            "image" => return self.remove_image(name),
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
        let labels = about.get("Labels").unwrap_or(&about["Config"]["Labels"]);
        mark::refuse_labels(labels, owner)?;
        match self.ask("DELETE", &remove)? {
            (200..300 | NOT_FOUND, _) => Ok(()),
            (CONFLICT, _) => self.wait_until_gone(&look),
            answer => Err(refused(&answer)),
        }
    }

    /// Removes a name of an image; the engine removes the image with its last name.
    fn remove_image(&self, name: &str) -> Result<(), Failure> {
        if !name.starts_with(IMAGES) {
            return Err("it is no image that tare would have made".into());
        }
        match self.ask("DELETE", &format!("/images/{name}?force=1&noprune=1"))? {
            (200..300 | NOT_FOUND, _) => Ok(()),
            answer => Err(refused(&answer)),
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

    /// Makes a container and waits until its program has ended. The container is kept.
    pub(crate) fn run_once(&self, name: &str, wanted: &Value) -> Result<(), Failure> {
        let created = format!("/containers/create?name={name}");
        for (target, body) in
            [(created, wanted.to_string()), (format!("/containers/{name}/start"), String::new())]
        {
            match self.send("POST", &target, &body, PATIENCE)? {
                (200..300, _) => {}
                answer => return Err(refused(&answer)),
            }
        }
        let (status, text) = self.send("POST", &format!("/containers/{name}/wait"), "", LONGEST)?;
        if !(200..300).contains(&status) {
            return Err(refused(&(status, text)));
        }
        let ended: Value = serde_json::from_str(&text)?;
        if ended["StatusCode"] == 0 {
            return Ok(());
        }
        let (_, log) = self.ask("GET", &format!("/containers/{name}/logs?stderr=1&tail=1"))?;
        // The text comes after the eight bytes of a frame's header.
        let words = log.trim_matches(|letter: char| letter.is_control() || letter.is_whitespace());
        let last = words.lines().last().unwrap_or_default();
        let said = last.trim_start_matches(|letter: char| !letter.is_ascii_graphic());
        Err(format!("its program ended with {}: {said}", ended["StatusCode"]).into())
    }

    fn ask(&self, method: &str, target: &str) -> Result<(u16, String), Failure> {
        self.send(method, target, "", PATIENCE)
    }

    /// Sends a request; returns status and body. By HTTP/1.0, so that the body ends with the stream.
    fn send(
        &self,
        method: &str,
        target: &str,
        body: &str,
        limit: Duration,
    ) -> Result<(u16, String), Failure> {
        let mut stream = UnixStream::connect(self.socket)
            .map_err(|error| format!("no container engine answers at {}: {error}", self.socket))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let about = if body.is_empty() {
            String::new()
        } else {
            format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len())
        };
        let request = format!("{method} {target} HTTP/1.0\r\nHost: engine\r\n{about}\r\n{body}");
        stream.write_all(request.as_bytes())?;
        let text = read_all(&mut stream, limit)?;
        let (head, body) = text.split_once("\r\n\r\n").ok_or("the engine's answer is cut short")?;
        let status = head.split(' ').nth(1).ok_or("the engine's answer has no status")?.parse()?;
        Ok((status, body.to_owned()))
    }
}

/// Reads an answer; the limit is for the whole, even if it arrives slowly in pieces.
fn read_all(stream: &mut UnixStream, limit: Duration) -> Result<String, Failure> {
    let deadline = Instant::now() + limit;
    let (mut bytes, mut block) = (Vec::new(), [0; 1 << 13]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(format!("the engine did not answer within {} s", limit.as_secs()).into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut block) {
            Ok(0) => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Ok(length) => bytes.extend_from_slice(&block[..length]),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The engine's error message, which is in JSON.
fn refused((status, text): &(u16, String)) -> Failure {
    let about: Option<Value> = serde_json::from_str(text).ok();
    let words = about.as_ref().and_then(|about| about["message"].as_str());
    format!("the engine answered {status}: {}", words.unwrap_or(text).trim()).into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// What was asked of an engine that gives these answers, and what came of it.
    fn asked(answers: &'static [&'static str], kind: &str) -> (Vec<String>, Result<(), Failure>) {
        asked_for(answers, kind, "x")
    }

    fn asked_for(
        answers: &'static [&'static str],
        kind: &str,
        name: &str,
    ) -> (Vec<String>, Result<(), Failure>) {
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
        let done = Engine { socket: socket.to_str().unwrap() }.remove(kind, name, "a");
        (server.join().unwrap(), done)
    }

    #[test]
    fn what_bears_the_label_is_removed() {
        let (lines, done) = asked(
            &[
                "HTTP/1.0 200 OK\r\n\r\n{\"Config\": {\"Labels\": {\"org.tare-bench.run\": \"r\", \
                 \"org.tare-bench.owner\": \"a\"}}}",
                "HTTP/1.0 204 No Content\r\n\r\n",
            ],
            "container",
        );
        assert!(done.is_ok());
        assert_eq!(lines[1], "DELETE /containers/x?force=1&v=1 HTTP/1.0");
    }

    #[test]
    fn what_does_not_is_left_alone() {
        let others = "HTTP/1.0 200 OK\r\n\r\n{\"Labels\": {\"org.tare-bench.run\": \"r\", \
                      \"org.tare-bench.owner\": \"b\"}}";
        let nobodys = "HTTP/1.0 200 OK\r\n\r\n{\"Labels\": null}";
        for (answer, why) in [(others, "another tare made it"), (nobodys, "it has no label of")] {
            let (lines, done) = asked(Box::leak(Box::new([answer])), "network");
            assert!(done.unwrap_err().to_string().starts_with(why) && lines.len() == 1);
        }
    }

    #[test]
    fn an_image_of_tares_loses_its_name_and_no_other_does() {
        let name = "tare/pause:tare-test-1";
        let gone = &["HTTP/1.0 200 OK\r\n\r\n[{\"Untagged\": \"tare/pause:tare-test-1\"}]"];
        let (lines, done) = asked_for(gone, "image", name);
        assert!(done.is_ok());
        assert_eq!(lines, ["DELETE /images/tare/pause:tare-test-1?force=1&noprune=1 HTTP/1.0"]);
        assert!(asked_for(&["HTTP/1.0 404 Not Found\r\n\r\n{}"], "image", name).1.is_ok());
        for strange in ["debian:12", "tare/x?force=1 HTTP/1.0\r\n", "sha256:0123"] {
            let (lines, done) = asked_for(&[], "image", strange);
            assert!(done.is_err() && lines.is_empty(), "{strange}");
        }
    }

    #[test]
    fn an_engine_that_refuses_is_quoted() {
        let busy = &["HTTP/1.0 409 Conflict\r\n\r\n{\"message\": \"image is being used\"}\n"];
        let why = asked_for(busy, "image", "tare/run:x").1.unwrap_err().to_string();
        assert_eq!(why, "the engine answered 409: image is being used");
    }

    #[test]
    fn an_answer_in_drips_takes_no_longer_than_it_may() {
        let (mut reader, mut writer) = UnixStream::pair().unwrap();
        let dripping = std::thread::spawn(move || {
            while writer.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        // Without a limit it would read for ever.
        assert!(read_all(&mut reader, Duration::from_millis(200)).is_err());
        drop(reader);
        dripping.join().unwrap();
    }

    #[test]
    fn what_is_gone_needs_no_removal() {
        assert!(asked(&["HTTP/1.0 404 Not Found\r\n\r\n{}"], "volume").1.is_ok());
    }
}
