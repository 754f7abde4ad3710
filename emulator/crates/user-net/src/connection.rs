//! One TCP connection: the guest's half in the stack, the host's half in a socket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Duration;

/// Bytes that wait in each direction: the most that a window without scaling can name. With scaling, smoltcp 0.14
/// takes the window of its own SYN-ACK, which is never scaled, for a scaled one, and a guest that sends more than
/// fits the buffer makes it panic.
const BUFFER: usize = 65_535;
/// A guest that is silent for so long, while it owes an answer, is gone.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A connection.
pub struct Connection {
    /// The guest's half.
    pub handle: SocketHandle,
    stream: TcpStream,
    /// The host sends no more.
    host_ended: bool,
    /// The guest sends no more, and the host knows.
    guest_ended: bool,
    /// The host's half failed.
    broken: bool,
}

/// A socket of the stack for the guest's half.
pub fn socket() -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; BUFFER]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.set_timeout(Some(TIMEOUT));
    // What the host sends in pieces goes on in pieces, and packets leave once a millisecond at most anyway.
    socket.set_nagle_enabled(false);
    socket.set_ack_delay(None);
    socket
}

impl Connection {
    /// Joins the two halves.
    pub fn new(handle: SocketHandle, stream: TcpStream) -> Self {
        // Only latency is at stake.
        let _ = stream.set_nodelay(true);
        Self {
            handle,
            stream,
            host_ended: false,
            guest_ended: false,
            broken: false,
        }
    }

    /// Moves what can be moved, in both directions. A half that breaks takes the other with it.
    pub fn pump(&mut self, socket: &mut Socket<'_>) {
        let moved = self
            .guest_to_host(socket)
            .and_then(|()| self.host_to_guest(socket));
        if moved.is_err() {
            self.broken = true;
            socket.abort();
        }
    }

    /// Nothing more will come of it.
    pub fn is_done(&self, socket: &Socket<'_>) -> bool {
        match socket.state() {
            // What the guest sent before it closed may still wait for the host.
            State::Closed => self.broken || socket.recv_queue() == 0,
            // The guest refused the answer to its own request.
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
            if !progressed(written.map_err(io::Error::other)?)? {
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
                    if !progressed(result)? {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }
}

/// False if the host's socket is not ready.
fn progressed(result: io::Result<usize>) -> io::Result<bool> {
    match result {
        Ok(count) => Ok(count > 0),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(error),
    }
}

/// The guest has sent its FIN, and all that was before it has been taken.
fn guest_ended(socket: &Socket<'_>) -> bool {
    let state = socket.state();
    matches!(
        state,
        State::CloseWait | State::LastAck | State::Closing | State::TimeWait
    ) && socket.recv_queue() == 0
}
