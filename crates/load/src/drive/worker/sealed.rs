//! Connections over TLS: encryption of output, decryption of input.

use super::Worker;
use crate::error::Fault;
use crate::protocol::Protocol;

impl<P: Protocol> Worker<'_, P> {
    /// Encrypts the output if the connection uses TLS. If that fails, the connection is lost.
    pub(super) fn seal(&mut self, route: usize) {
        let line = self.routes[route].line.as_mut();
        let Some(session) = line.and_then(|line| line.session.as_mut()) else { return };
        self.sealed_output.clear();
        if let Err(fault) = session.seal(&self.output, &mut self.sealed_output) {
            return self.lose(route, &fault);
        }
        std::mem::swap(&mut self.output, &mut self.sealed_output);
    }

    /// Decrypts the first `count` bytes of the encrypted input, and decodes the replies in it.
    pub(super) fn unseal(
        &mut self,
        route: usize,
        count: usize,
        read_ns: u64,
        unread_ns: Option<u64>,
    ) -> Result<(), Fault> {
        let sealed = std::mem::take(&mut self.sealed_input);
        let taken = self.open(route, &sealed[..count], read_ns, unread_ns);
        self.sealed_input = sealed;
        taken?;
        let line = self.routes[route].line.as_ref();
        let session = line.and_then(|line| line.session.as_ref());
        if session.is_some_and(crate::tls::Session::wants_to_send) {
            self.output.clear();
            self.seal(route);
            self.write_behind(route);
        }
        Ok(())
    }

    fn open(
        &mut self,
        route: usize,
        mut sealed: &[u8],
        read_ns: u64,
        unread_ns: Option<u64>,
    ) -> Result<(), Fault> {
        loop {
            let line = self.routes[route].line.as_mut();
            let Some(session) = line.and_then(|line| line.session.as_mut()) else { return Ok(()) };
            let count = session.open(&mut self.input);
            if count > 0 {
                self.take_replies(route, count, read_ns, unread_ns)?;
            } else if sealed.is_empty() {
                return Ok(());
            } else {
                session.take(&mut sealed)?;
            }
        }
    }
}
