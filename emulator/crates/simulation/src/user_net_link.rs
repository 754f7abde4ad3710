//! The user-mode network as the other end of the guest's network card.

use devices::virtio::Link;
use user_net::UserNet;

/// The network behind the guest's card.
pub(crate) struct UserNetLink(pub(crate) UserNet);

impl Link for UserNetLink {
    fn send(&mut self, frame: &[u8], nanos: u64) {
        self.0.send(frame, nanos);
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        self.0.receive()
    }

    fn poll(&mut self, nanos: u64) {
        self.0.poll(nanos);
    }

    fn reset(&mut self) {
        self.0.reset();
    }
}
