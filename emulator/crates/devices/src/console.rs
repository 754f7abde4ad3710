//! The host's side of a console: where output goes and where input waits.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Input that waits for the guest. Clones share one queue, so that another thread can push what a
/// user types. What was pushed before the run starts is deterministic; what comes later is the
/// machine's only source of nondeterminism.
#[derive(Clone, Default)]
pub struct Input(Arc<Mutex<VecDeque<u8>>>);

impl Input {
    /// A queue with the bytes of a script.
    pub fn script(bytes: &[u8]) -> Self {
        let input = Self::default();
        input.push(bytes);
        input
    }

    /// Appends bytes.
    pub fn push(&self, bytes: &[u8]) {
        self.queue().extend(bytes);
    }

    /// Takes up to `most` bytes.
    pub fn take(&self, most: usize) -> Vec<u8> {
        let mut queue = self.queue();
        let count = most.min(queue.len());
        queue.drain(..count).collect()
    }

    /// Number of bytes that wait.
    pub fn len(&self) -> usize {
        self.queue().len()
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queue().is_empty()
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<u8>> {
        // The queue is valid even if a thread panicked while it held the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Output that is handed on line by line, or when [`Output::flush`] is called (devices do so a
/// moment after the last byte, so that a prompt appears). Errors of the host's stream are
/// dropped: a closed pipe must not change the run.
pub struct Output {
    stream: Box<dyn Write + Send>,
    buffer: Vec<u8>,
}

impl Output {
    const CAPACITY: usize = 4096;

    /// Output to `stream`.
    pub fn new(stream: Box<dyn Write + Send>) -> Self {
        Self { stream, buffer: Vec::with_capacity(Self::CAPACITY) }
    }

    /// Writes bytes. Returns true if some of them wait for [`Self::flush`].
    pub fn put(&mut self, bytes: &[u8]) -> bool {
        self.buffer.extend_from_slice(bytes);
        if bytes.contains(&b'\n') || self.buffer.len() >= Self::CAPACITY {
            self.flush();
        }
        !self.buffer.is_empty()
    }

    /// Hands on what waits.
    pub fn flush(&mut self) {
        if !self.buffer.is_empty() {
            let _ = self.stream.write_all(&self.buffer);
            let _ = self.stream.flush();
            self.buffer.clear();
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.flush();
    }
}

/// A stream that keeps what is written to it. Clones share one buffer.
#[derive(Clone, Default)]
pub struct Capture(Arc<Mutex<Vec<u8>>>);

impl Capture {
    /// Everything written so far; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Write for Capture {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_handed_on_by_line() {
        let capture = Capture::default();
        let mut output = Output::new(Box::new(capture.clone()));
        assert!(output.put(b"login: "));
        assert_eq!(capture.text(), "");
        output.flush();
        assert_eq!(capture.text(), "login: ");
        assert!(!output.put(b"x\ny"));
        assert_eq!(capture.text(), "login: x\ny");
        output.put(b"z");
        drop(output);
        assert_eq!(capture.text(), "login: x\nyz");
    }

    #[test]
    fn input_is_shared() {
        let input = Input::script(b"abc");
        let other = input.clone();
        assert_eq!(other.take(2), b"ab");
        other.push(b"d");
        assert_eq!(input.take(10), b"cd");
        assert!(input.is_empty());
    }
}
