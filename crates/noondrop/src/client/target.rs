//! Which server: `http://host:port`, resolved once.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

/// A server that can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where it listens.
    pub address: SocketAddr,
    /// What goes into the `Host` header.
    pub host: String,
}

/// Why a text names no server.
#[derive(Debug)]
pub enum TargetError {
    /// It wants TLS.
    Tls,
    /// It is not `http://host:port`.
    Form(String),
    /// Its name has no address.
    Unresolved {
        /// The name.
        host: String,
        /// Why.
        source: std::io::Error,
    },
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tls => f.write_str(
                "this client speaks no TLS: name the server itself, http://host:port, not the proxy in front of it",
            ),
            Self::Form(text) => write!(f, "{text:?} is not of the form http://host:port"),
            Self::Unresolved { host, .. } => write!(f, "could not find the address of {host}"),
        }
    }
}

impl std::error::Error for TargetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unresolved { source, .. } => Some(source),
            Self::Tls | Self::Form(_) => None,
        }
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self { address, host: address.to_string() }
    }
}

impl Target {
    /// From `http://host:port`; port 80 where none is named. Asks the resolver.
    pub fn parse(url: &str) -> Result<Self, TargetError> {
        if url.starts_with("https://") {
            return Err(TargetError::Tls);
        }
        let form = || TargetError::Form(url.to_owned());
        let host = url.strip_prefix("http://").ok_or_else(form)?.trim_end_matches('/');
        if host.is_empty() || host.contains(['/', '?', '#', '@', ' ']) {
            return Err(form());
        }
        let port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let with_port = if port { host.to_owned() } else { format!("{host}:80") };
        let unresolved = |source| TargetError::Unresolved { host: host.to_owned(), source };
        let address = with_port.to_socket_addrs().map_err(unresolved)?.next().ok_or_else(form)?;
        Ok(Self { address, host: host.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_scheme_host_and_port() {
        let target = Target::parse("http://127.0.0.1:7878/").unwrap();
        assert_eq!(target, Target::from("127.0.0.1:7878".parse::<SocketAddr>().unwrap()));
        assert_eq!(Target::parse("http://127.0.0.1").unwrap().address.port(), 80);
        assert!(matches!(Target::parse("https://127.0.0.1"), Err(TargetError::Tls)));
        for wrong in ["127.0.0.1:80", "http://", "http://a/b", "http://u@h:1"] {
            assert!(matches!(Target::parse(wrong), Err(TargetError::Form(_))), "{wrong}");
        }
    }
}
