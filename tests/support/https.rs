//! An HTTPS server of a certificate authority of its own.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

/// A running server. It ends with the test program.
pub struct HttpsServer {
    address: SocketAddr,
    /// The certificate of the authority, as a client wants it in `SSL_CERT_FILE`.
    pub authority: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl HttpsServer {
    /// Starts a server that answers each path with what a function writes.
    pub fn start(answer: impl Fn(&str, &mut dyn Write) + Send + Sync + 'static) -> Self {
        let mut authority = CertificateParams::new(Vec::new()).expect("parameters");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key"))
            .expect("an authority");
        let key = KeyPair::generate().expect("a key");
        let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).expect("parameters");
        let certificate = certificate.signed_by(&key, &authority).expect("a certificate");
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("a certificate");
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (config, seen, answer) = (Arc::clone(&config), Arc::clone(&seen), Arc::clone(&answer));
                std::thread::spawn(move || serve(config, connection, &seen, &*answer));
            }
        });
        Self { address, authority: authority.pem(), requests }
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// The paths that were asked for.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("unpoisoned").clone()
    }
}

/// Answers one request. A client that leaves is no failure.
fn serve(
    config: Arc<ServerConfig>,
    connection: TcpStream,
    seen: &Mutex<Vec<String>>,
    answer: &dyn Fn(&str, &mut dyn Write),
) {
    let session = ServerConnection::new(config).expect("a session");
    let mut stream = BufReader::new(StreamOwned::new(session, connection));
    let mut first = String::new();
    let mut line = String::new();
    while stream.read_line(&mut line).is_ok_and(|count| count > 2) {
        if first.is_empty() {
            first.clone_from(&line);
        }
        line.clear();
    }
    let Some(path) = first.split(' ').nth(1) else { return };
    seen.lock().expect("unpoisoned").push(path.to_owned());
    let stream = stream.get_mut();
    answer(path, stream);
    stream.conn.send_close_notify();
    let _ = stream.flush();
}

/// Writes a whole answer.
pub fn respond(to: &mut dyn Write, status: u16, headers: &str, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
        body.len()
    );
    let _ = to.write_all(head.as_bytes()).and_then(|()| to.write_all(body));
}
