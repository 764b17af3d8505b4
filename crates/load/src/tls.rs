//! TLS by rustls: checks of the server's certificate, and the session of one connection.
//!
//! A session does not read or write the socket itself: it converts the bytes of the socket to those of the protocol
//! and vice versa. Sessions are never resumed, so each connection has a whole handshake.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    Resumption, WantsClientCert, verify_server_cert_signed_by_trust_anchor, verify_server_name,
};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, ConfigBuilder,
    DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use crate::error::{Fault, LoadError};

/// How to check the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Not at all: anyone on the way could pose as the server.
    None,
    /// A known authority must have signed it.
    Ca,
    /// A known authority must have signed it, and it must have the server's name.
    Full,
}

impl Verify {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Ca => "ca",
            Self::Full => "full",
        }
    }
}

/// What the client shows of itself.
#[derive(Clone, Copy, Debug)]
pub struct OwnCertificate<'a> {
    /// Its certificate in PEM, then those between it and the authority's.
    pub chain: &'a Path,
    pub key: &'a Path,
}

/// TLS settings of all connections.
#[derive(Clone, Debug)]
pub struct Tls {
    pub verify: Verify,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    /// `address` is `HOST:PORT`, `ca` a file of certificates in PEM, `own` what the client shows of itself.
    ///
    /// # Errors
    /// A file cannot be read, has no certificate or key, or is required and missing.
    pub fn new(
        address: &str,
        verify: Verify,
        ca: Option<&Path>,
        own: Option<OwnCertificate<'_>>,
    ) -> Result<Self, LoadError> {
        let roots = match (ca, verify) {
            (_, Verify::None) => RootCertStore::empty(),
            (Some(path), _) => authorities(path)?,
            (None, _) => {
                return Err(LoadError::Usage(
                    "--tls must check who the server is: give its authority's certificate with --ca FILE, or use --tls-verify none"
                        .to_owned(),
                ));
            }
        };
        let provider = Arc::new(ring::default_provider());
        let verifier =
            Verifier { verify, roots, algorithms: provider.signature_verification_algorithms };
        let config = Arc::new(config(provider, verifier, own)?);
        Ok(Self { verify, config, name: name(address)? })
    }

    /// # Errors
    /// No handshake is possible with the settings.
    pub fn session(&self) -> Result<Session, Fault> {
        let mut connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .map_err(|error| fault(&error))?;
        // A request may have any length; the default keeps 64 KiB and drops the rest.
        connection.set_buffer_limit(None);
        Ok(Session(Box::new(connection)))
    }
}

fn config(
    provider: Arc<CryptoProvider>,
    verifier: Verifier,
    own: Option<OwnCertificate<'_>>,
) -> Result<ClientConfig, LoadError> {
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| LoadError::Usage(format!("--tls: {error}")))?
        .dangerous() // `Verifier` decides what is checked
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match own {
        None => config.with_no_client_auth(),
        Some(own) => own.show(config)?,
    };
    config.resumption = Resumption::disabled();
    Ok(config)
}

impl OwnCertificate<'_> {
    fn show(
        &self,
        config: ConfigBuilder<ClientConfig, WantsClientCert>,
    ) -> Result<ClientConfig, LoadError> {
        let wrong = |option: &str, path: &Path, reason: String| {
            LoadError::Usage(format!("{option} {}: {reason}", path.display()))
        };
        let chain = certificates("--cert", self.chain)?;
        let key = PrivateKeyDer::from_pem_slice(&read(self.key)?)
            .map_err(|error| wrong("--key", self.key, format!("no private key in PEM: {error}")))?;
        config
            .with_client_auth_cert(chain, key)
            .map_err(|error| wrong("--cert", self.chain, format!("not that of --key: {error}")))
    }
}

fn authorities(path: &Path) -> Result<RootCertStore, LoadError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("--ca", path)? {
        roots
            .add(certificate)
            .map_err(|error| LoadError::Usage(format!("--ca {}: {error}", path.display())))?;
    }
    Ok(roots)
}

/// All of a file of the option, at least one.
fn certificates(option: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, LoadError> {
    let wrong = |reason: String| LoadError::Usage(format!("{option} {}: {reason}", path.display()));
    let all: Vec<_> = CertificateDer::pem_slice_iter(&read(path)?)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(error.to_string()))?;
    if all.is_empty() {
        return Err(wrong("there is no certificate in PEM in this file".to_owned()));
    }
    Ok(all)
}

fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    std::fs::read(path).map_err(|source| LoadError::File { path: path.to_owned(), source })
}

fn name(address: &str) -> Result<ServerName<'static>, LoadError> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    ServerName::try_from(host).map_err(|_| {
        LoadError::Usage(format!(
            "--address {address}: the host has no name that a certificate could bear"
        ))
    })
}

/// One connection's keys and state.
pub struct Session(Box<ClientConnection>);

impl Session {
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.0.is_handshaking()
    }

    /// TLS version and cipher suite, such as `TLSv1_3 TLS13_AES_256_GCM_SHA384`.
    #[must_use]
    pub fn described(&self) -> Option<String> {
        let (version, suite) =
            (self.0.protocol_version()?, self.0.negotiated_cipher_suite()?.suite());
        Some(format!("{} {}", version.as_str()?, suite.as_str()?))
    }

    /// The server's certificate in DER.
    #[must_use]
    pub fn certificate(&self) -> Option<&[u8]> {
        Some(self.0.peer_certificates()?.first()?.as_ref())
    }

    /// Encrypts `plain` and appends it to `out`, after pending messages of the session.
    ///
    /// # Errors
    /// The session does not take all of `plain`.
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        self.0.writer().write_all(plain)?;
        while self.0.wants_write() {
            self.0.write_tls(out)?;
        }
        Ok(())
    }

    /// Consumes a piece of the encrypted input, whose content [`Self::open`] then returns.
    ///
    /// # Errors
    /// The input is not TLS, is an alert that ends the session, or follows a closing message.
    pub fn take(&mut self, sealed: &mut &[u8]) -> Result<(), Fault> {
        if self.0.read_tls(sealed)? == 0 && !sealed.is_empty() {
            return Err(Fault::Closed);
        }
        self.0.process_new_packets().map(drop).map_err(|error| fault(&error))
    }

    /// Copies decrypted bytes to `plain`; returns their number, which is 0 if there are none yet.
    pub fn open(&mut self, plain: &mut [u8]) -> usize {
        // `WouldBlock`: nothing yet. After a closing message, nothing follows, and the socket ends, too.
        self.0.reader().read(plain).unwrap_or(0)
    }

    /// Ends it: the next [`Self::seal`] says so to the server.
    pub fn close(&mut self) {
        self.0.send_close_notify();
    }

    /// Whether it has pending messages, such as new keys.
    #[must_use]
    pub fn wants_to_send(&self) -> bool {
        self.0.wants_write()
    }
}

/// What rustls-webpki calls a certificate of an authority that a server shows as its own.
const CA_AS_SERVER: &str = "CaUsedAsEndEntity";

/// Makes a fault that users understand from an error of the library.
fn fault(error: &Error) -> Fault {
    Fault::Tls(match error {
        Error::InvalidMessage(_) => {
            "the server does not answer with TLS: is TLS on at this port?".to_owned()
        }
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "no authority of --ca has signed the server's certificate".to_owned()
        }
        Error::InvalidCertificate(CertificateError::Other(other))
            if other.to_string() == CA_AS_SERVER =>
        {
            "the server's certificate is that of an authority, such as `openssl req -x509` makes: have the authority sign a certificate for the server, or use --tls-verify none".to_owned()
        }
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "the server's certificate bears another name; --tls-verify ca does not look at names"
            .to_owned(),
        Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "the server's certificate has expired".to_owned(),
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server wants a certificate of its clients: give one with --cert and --key".to_owned()
        }
        other => other.to_string(),
    })
}

#[derive(Debug)]
struct Verifier {
    verify: Verify,
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.verify != Verify::None {
            let parsed = ParsedCertificate::try_from(certificate)?;
            verify_server_cert_signed_by_trust_anchor(
                &parsed,
                &self.roots,
                between,
                now,
                self.algorithms.all,
            )?;
            if self.verify == Verify::Full {
                verify_server_name(&parsed, name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_takes_a_write_of_any_length() {
        let tls = Tls::new("localhost:1", Verify::None, None, None).unwrap();
        let mut session = tls.session().unwrap();
        let mut out = Vec::new();
        session.seal(&vec![b'x'; 300_000], &mut out).unwrap();
        assert!(!out.is_empty(), "the greeting, before which nothing else is sent");
    }
}
