//! Guest memory, the bus, and every device on it: what a machine has besides its harts.
//!
//! ```
//! use devices::{Bus, CLINT_BASE, Clock, RAM_BASE};
//!
//! let mut bus = Bus::new(1 << 20, 1, Clock::default())?;
//! bus.ram.store(RAM_BASE, 4, 0x13).unwrap();
//! bus.store(CLINT_BASE + 0x4000, 8, 5).unwrap(); // hart 0's mtimecmp
//! assert_eq!(bus.next_event(), 5 * 320);
//! # Ok::<(), devices::RamError>(())
//! ```
//!
//! A [`Device`] answers loads and stores, has one event, and one interrupt line; it sees guest memory and the clock
//! through [`Cx`]. Time is simulated: devices see the cycle of the access and schedule what they do later at a
//! cycle. Nothing that a guest or a disk image contains may panic or hang the host.

mod bus;
mod clint;
mod clock;
mod console;
mod device;
mod htif;
pub mod memory_map;
mod packing;
mod plic;
mod ram;
mod rtc;
mod syscon;
mod uart;
pub mod virtio;

pub use bus::{Bus, Exit, Overlap};
pub use clint::{CLINT_SIZE, Clint};
pub use clock::Clock;
pub use console::{Capture, Input, Output};
pub use device::{AccessFault, Cx, Device};
pub use htif::{Htif, signature};
pub use memory_map::{CLINT_BASE, PLIC_BASE, RAM_BASE};
pub use packing::packing;
pub use plic::{PLIC_SIZE, PLIC_SOURCES, Plic};
pub use ram::{DmaWrite, PageEvent, PageEventKind, Ram, RamError};
pub use rtc::{RTC_SIZE, Rtc};
pub use syscon::{SYSCON_POWER_OFF, SYSCON_RESET, SYSCON_SIZE, Syscon};
pub use uart::{UART_SIZE, Uart, Uart16550};
