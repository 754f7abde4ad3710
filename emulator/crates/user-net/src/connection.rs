//! One TCP connection: the guest's half in the stack, the host's half in a socket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Duration;

/// Bytes of a socket's buffer in each direction: the largest TCP window without the window-scale option. With that
/// option, smoltcp 0.14 scales the window of its own SYN-ACK, which is never scaled; a guest that then sends more
/// than the buffer holds makes smoltcp panic.
const BUFFER: usize = 65_535;
/// The stack aborts a connection whose guest has not acknowledged data for this long.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A TCP connection between the guest and a peer that the host reaches.
pub(crate) struct Connection {
    /// The stack's socket for the guest's half.
    pub handle: SocketHandle,
    /// The host's half.
    stream: TcpStream,
    /// The host's half reached the end of its input, and the guest was sent a FIN.
    host_ended: bool,
    /// The guest sent a FIN, and the host's half was shut down for writing.
    guest_ended: bool,
    /// The host's half failed.
    broken: bool,
}

/// A socket of the stack for the guest's half.
pub(crate) fn socket() -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; BUFFER]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.set_timeout(Some(TIMEOUT));
    // Nagle's algorithm would only add latency: packets are sent once a millisecond at most anyway.
    socket.set_nagle_enabled(false);
    socket.set_ack_delay(None);
    socket
}

impl Connection {
    /// Joins the two halves.
    pub(crate) fn new(handle: SocketHandle, stream: TcpStream) -> Self {
        // A failure costs latency only.
        let _ = stream.set_nodelay(true);
        Self { handle, stream, host_ended: false, guest_ended: false, broken: false }
    }

    /// Moves the data that can be moved, in both directions. If one half fails, the other is reset.
    pub(crate) fn transfer(&mut self, socket: &mut Socket<'_>) {
        let moved = self.guest_to_host(socket).and_then(|()| self.host_to_guest(socket));
        if moved.is_err() {
            self.broken = true;
            socket.abort();
        }
    }

    /// True if the connection can be removed: it ended or never opened.
    pub(crate) fn is_done(&self, socket: &Socket<'_>) -> bool {
        match socket.state() {
            // Data that the guest sent before it closed may still wait for the host.
            State::Closed => self.broken || socket.recv_queue() == 0,
            // The guest answered the SYN-ACK with RST.
            State::Listen => true,
            _ => false,
        }
    }

    fn guest_to_host(&mut self, socket: &mut Socket<'_>) -> io::Result<()> {
        while socket.can_recv() {
            let written = socket.recv(|bytes| match self.stream.write(bytes) {
                Ok(count) => (count, Ok(count)),
                Err(error) => (0, Err(error)),
            });
            if !made_progress(written.map_err(io::Error::other)?)? {
                return Ok(());
            }
        }
        if !self.guest_ended && guest_ended(socket) {
            self.guest_ended = true;
            self.stream.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }

    fn host_to_guest(&mut self, socket: &mut Socket<'_>) -> io::Result<()> {
        while !self.host_ended && socket.can_send() {
            let read = socket.send(|room| match self.stream.read(room) {
                Ok(count) => (count, Ok(count)),
                Err(error) => (0, Err(error)),
            });
            match read.map_err(io::Error::other)? {
                Ok(0) => {
                    self.host_ended = true;
                    socket.close();
                }
                result => {
                    if !made_progress(result)? {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }
}

/// True if the call moved data or is to be repeated; false if the host's socket is not ready.
fn made_progress(result: io::Result<usize>) -> io::Result<bool> {
    match result {
        Ok(count) => Ok(count > 0),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(error),
    }
}

/// The guest has sent its FIN, and all data before the FIN has been read.
fn guest_ended(socket: &Socket<'_>) -> bool {
    let state = socket.state();
    matches!(state, State::CloseWait | State::LastAck | State::Closing | State::TimeWait)
        && socket.recv_queue() == 0
}
