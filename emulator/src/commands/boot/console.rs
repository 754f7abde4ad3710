//! The guest's console on standard output.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use simulation::TAIL_BYTES;

/// Standard output, of which the end is remembered. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Console(Arc<Mutex<Vec<u8>>>);

impl Console {
    /// Returns the end of what was printed, as text.
    pub(super) fn tail(&self) -> String {
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail).into_owned()
    }
}

impl Write for Console {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(bytes);
        // Half of the bytes are thrown away at a time, instead of one at each byte.
        let most = TAIL_BYTES as usize;
        if tail.len() > 2 * most {
            let surplus = tail.len() - most;
            tail.drain(..surplus);
        }
        drop(tail);
        io::stdout().write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}
