//! Ports of the host that are forwarded to the guest.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::str::FromStr;

/// A TCP port of the host's loopback interface that is forwarded to a port of the guest: `HOST:GUEST`.
///
/// ```
/// use user_net::Forward;
///
/// assert_eq!("2222:22".parse(), Ok(Forward { host: 2222, guest: 22 }));
/// assert!("2222".parse::<Forward>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Port of the host; 0: any free one.
    pub host: u16,
    /// Port of the guest.
    pub guest: u16,
}

/// The error for a text that is not a [`Forward`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected HOST:GUEST, two ports such as 2222:22; found \"{0}\"")]
pub struct BadForward(String);

impl FromStr for Forward {
    type Err = BadForward;

    fn from_str(text: &str) -> Result<Self, BadForward> {
        let parse = || {
            let (host, guest) = text.split_once(':')?;
            let forward = Self { host: host.parse().ok()?, guest: guest.parse().ok()? };
            (forward.guest != 0).then_some(forward)
        };
        parse().ok_or_else(|| BadForward(text.to_owned()))
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.guest)
    }
}

/// A listening socket of the host for a forwarded port.
pub(crate) struct Listener {
    /// The ports; that of the host is the one bound, never 0.
    pub forward: Forward,
    listener: TcpListener,
}

impl Listener {
    /// Binds the host's port.
    pub(crate) fn bind(forward: Forward) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, forward.host))?;
        listener.set_nonblocking(true)?;
        let host = listener.local_addr()?.port();
        Ok(Self { forward: Forward { host, ..forward }, listener })
    }

    /// Accepts the next pending connection, if there is one.
    pub(crate) fn accept(&self) -> Option<TcpStream> {
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(stream)
    }
}
