//! Console device (virtio 1.2, section 5.3) with one port.

use super::{Backend, Request};
use crate::{Input, Output};

const RECEIVE: usize = 0;
const FEATURE_SIZE: u64 = 1;
const FEATURE_EMERGENCY_WRITE: u64 = 1 << 2;
/// Offset of the emergency-write word in the configuration space.
const EMERGENCY_WRITE: u64 = 8;

/// The console.
pub struct VirtioConsole {
    output: Output,
    input: Option<Input>,
    /// Columns and rows of the terminal.
    size: (u16, u16),
}

snapshot::snapshot!(VirtioConsole {} keeps { output, input, size });

impl VirtioConsole {
    /// A console of `size` (columns, rows) that writes to `output` and reads from `input`.
    pub fn new(output: Output, input: Option<Input>, size: (u16, u16)) -> Self {
        Self { output, input, size }
    }
}

impl Backend for VirtioConsole {
    fn device_type(&self) -> u32 {
        3
    }

    fn features(&self) -> u64 {
        FEATURE_SIZE | FEATURE_EMERGENCY_WRITE
    }

    fn queues(&self) -> usize {
        2
    }

    fn config(&self) -> Vec<u8> {
        let (columns, rows) = self.size;
        // The number of ports, which the device does not offer, and the emergency write follow.
        [columns.to_le_bytes(), rows.to_le_bytes(), [0; 2], [0; 2], [0; 2], [0; 2]].concat()
    }

    fn write_config(&mut self, offset: u64, value: u32) {
        if offset == EMERGENCY_WRITE {
            self.output.put(&[value as u8]);
            self.output.flush();
        }
    }

    fn serve(&mut self, request: Request<'_>) -> Option<Vec<u8>> {
        if request.queue != RECEIVE {
            self.output.put(request.bytes);
            return Some(Vec::new());
        }
        let bytes = self.input.as_ref()?.take(request.room);
        (!bytes.is_empty()).then_some(bytes)
    }

    fn poll_hz(&self) -> u64 {
        1000
    }

    fn poll(&mut self, _nanos: u64) {
        self.output.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Capture;

    #[test]
    fn both_directions() {
        let (capture, input) = (Capture::default(), Input::default());
        let output = Output::new(Box::new(capture.clone()));
        let mut console = VirtioConsole::new(output, Some(input.clone()), (80, 25));
        let mut serve =
            |queue, bytes, room| console.serve(Request { queue, bytes, room, nanos: 0 });
        assert_eq!(serve(RECEIVE, b"", 4), None, "the buffer waits for input");
        input.push(b"hello");
        assert_eq!(serve(RECEIVE, b"", 4).unwrap(), b"hell");
        assert_eq!(serve(RECEIVE, b"", 4).unwrap(), b"o");
        assert_eq!(serve(1, b"out", 0).unwrap(), b"");
        console.write_config(EMERGENCY_WRITE, b'!'.into());
        assert_eq!(capture.text(), "out!");
        assert_eq!(console.config()[..4], [80, 0, 25, 0]);
    }
}
