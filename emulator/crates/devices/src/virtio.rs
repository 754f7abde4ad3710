//! Virtio 1.2 devices behind the MMIO transport: block, console, entropy, network and shared
//! folder.
//!
//! [`VirtioMmio`] is the transport and walks the queues; a [`Backend`] sees requests and replies
//! as bytes, never guest addresses. A request is carried out when the driver announces it, and its
//! reply reaches guest memory at a simulated time, by [`Latency`].

mod backend;
mod blk;
mod console;
mod fs;
mod mmio;
mod net;
mod queue;
mod rng;

pub use backend::{Backend, Latency, Request};
pub use blk::{Blk, DiskError, DiskMode};
pub use console::VirtioConsole;
pub use fs::{FolderError, Fs};
pub use mmio::{VIRTIO_SIZE, VirtioMmio};
pub use net::{Link, Net};
pub use rng::{Rng, SplitMix64};

#[cfg(test)]
mod driver;
