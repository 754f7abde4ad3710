//! The MMIO transport, version 2 (virtio 1.2, section 4.2), or 1, the legacy interface (section 4.2.4).
//!
//! Not modelled: shared memory, queue reset, event indices (the driver then uses the rings'
//! flags), and notification data.

mod register;

use std::collections::VecDeque;

use snapshot::{Archive, Snapshot};

use super::backend::{Backend, Latency, Request};
use super::queue::{Chain, QUEUE_MAX, Queue, RuleViolation};
use crate::{AccessFault, Cx, Device};
use register::Register;

/// Size of the register window in bytes.
pub const VIRTIO_SIZE: u64 = 0x1000;

const MAGIC: u32 = u32::from_le_bytes(*b"virt");
const VERSION: u32 = 2;
const LEGACY_VERSION: u32 = 1;
/// QEMU's vendor ID, since some guests check for it.
const VENDOR: u32 = u32::from_le_bytes(*b"QEMU");
const CONFIG: u64 = 0x100;

const FEATURE_INDIRECT: u64 = 1 << 28;
const FEATURE_VERSION_1: u64 = 1 << 32;

/// Alignment in bytes of a legacy queue if the driver does not set it: a page, as on other machines.
const LEGACY_ALIGNMENT: u32 = 4096;

/// Maximum number of bytes in replies that are not due yet: beyond it, no more requests are taken.
const OUTSTANDING_MAX: usize = 64 << 20;

/// Bits of the device status.
mod status {
    pub(crate) const DRIVER_OK: u32 = 4;
    pub(crate) const FEATURES_OK: u32 = 8;
    pub(crate) const NEEDS_RESET: u32 = 64;
    pub(crate) const FAILED: u32 = 128;
}

/// Bits of the interrupt status.
mod interrupt {
    pub(crate) const USED: u32 = 1;
    pub(crate) const CONFIG: u32 = 2;
}

/// The reply to an executed request, delivered at cycle `due`.
#[derive(Default)]
struct Reply {
    due: u64,
    queue: usize,
    chain: Chain,
    bytes: Vec<u8>,
}

/// Registers of the legacy interface. A reset by the driver does not change them: Linux sets the page size only
/// once, before it.
#[derive(Default)]
struct LegacyState {
    page_size: u32,
    /// Alignment of the queue that the driver places next, in bytes.
    alignment: u32,
}

/// A virtio device on the bus.
pub struct VirtioMmio {
    backend: Box<dyn Backend>,
    latency: Latency,
    queues: Box<[Queue]>,
    replies: VecDeque<Reply>,
    outstanding: usize,
    /// Cycle at which the last transfer ends.
    transfer_end: u64,
    poll_at: u64,
    status: u32,
    interrupt: u32,
    queue_select: usize,
    device_features_select: u32,
    driver_features_select: u32,
    driver_features: u64,
    /// `Some` if the interface is the legacy one.
    legacy: Option<LegacyState>,
    /// A warning about a driver that needs the legacy interface was logged.
    legacy_warned: bool,
}

snapshot::snapshot!(LegacyState { page_size, alignment });
snapshot::snapshot!(Reply { due, queue, chain, bytes });
impl Snapshot for VirtioMmio {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self {
            backend,
            queues,
            replies,
            outstanding,
            transfer_end,
            poll_at,
            status,
            interrupt,
            queue_select,
            device_features_select,
            driver_features_select,
            driver_features,
            legacy,
            latency: _,
            legacy_warned: _,
        } = self;
        archive.same("virtio device type", &backend.device_type().to_string())?;
        let version = if legacy.is_some() { LEGACY_VERSION } else { VERSION };
        archive.same("virtio-mmio version", &version.to_string())?;
        backend.snapshot(archive)?;
        queues.snapshot(archive)?;
        archive.check(queues.iter().all(Queue::is_possible), || {
            "a virtio queue that is ready with an impossible size".to_owned()
        })?;
        replies.snapshot(archive)?;
        outstanding.snapshot(archive)?;
        transfer_end.snapshot(archive)?;
        poll_at.snapshot(archive)?;
        status.snapshot(archive)?;
        interrupt.snapshot(archive)?;
        queue_select.snapshot(archive)?;
        device_features_select.snapshot(archive)?;
        driver_features_select.snapshot(archive)?;
        driver_features.snapshot(archive)?;
        legacy.as_mut().map_or(Ok(()), |legacy| legacy.snapshot(archive))
    }
}

impl VirtioMmio {
    /// The transport of a device whose requests take `latency`.
    pub fn new(backend: Box<dyn Backend>, latency: Latency) -> Self {
        let queues = (0..backend.queues()).map(|_| Queue::default()).collect();
        Self {
            backend,
            latency,
            queues,
            replies: VecDeque::new(),
            outstanding: 0,
            transfer_end: 0,
            poll_at: u64::MAX,
            status: 0,
            interrupt: 0,
            queue_select: 0,
            device_features_select: 0,
            driver_features_select: 0,
            driver_features: 0,
            legacy: None,
            legacy_warned: false,
        }
    }

    /// With the legacy interface, for drivers that know no other.
    pub fn legacy(mut self) -> Self {
        self.legacy = Some(LegacyState { page_size: 0, alignment: LEGACY_ALIGNMENT });
        self
    }

    fn features(&self) -> u64 {
        let version = match self.legacy {
            Some(_) => 0,
            None => FEATURE_VERSION_1,
        };
        self.backend.features() | version | FEATURE_INDIRECT
    }

    fn read_register(&self, register: Register) -> u32 {
        let queue = self.queues.get(self.queue_select);
        match register {
            Register::Magic => MAGIC,
            Register::Version if self.legacy.is_some() => LEGACY_VERSION,
            Register::Version => VERSION,
            Register::DeviceType => self.backend.device_type(),
            Register::Vendor => VENDOR,
            Register::DeviceFeatures => match self.device_features_select {
                0 => self.features() as u32,
                1 => (self.features() >> 32) as u32,
                _ => 0,
            },
            Register::QueueSizeMax => queue.map_or(0, |_| QUEUE_MAX.into()),
            Register::QueueReady => queue.is_some_and(|q| q.ready).into(),
            Register::QueuePage if self.legacy.is_some() => queue.map_or(0, |q| q.page),
            Register::InterruptStatus => self.interrupt,
            Register::Status => self.status,
            // All ones is the length of a shared memory region that does not exist (section 4.2.2).
            Register::SharedMemory => u32::MAX,
            _ => 0,
        }
    }

    fn write_register(&mut self, register: Register, value: u32, cx: &mut Cx<'_>) {
        match register {
            Register::DeviceFeaturesSelect => self.device_features_select = value,
            Register::DriverFeaturesSelect => self.driver_features_select = value,
            Register::DriverFeatures if self.driver_features_select < 2 => {
                set_half(&mut self.driver_features, self.driver_features_select == 1, value);
            }
            Register::QueueSelect => self.queue_select = value as usize,
            Register::QueueNotify => self.notify(value as usize, cx),
            Register::InterruptAck => self.interrupt &= !value,
            Register::Status if value == 0 => self.reset(cx),
            Register::Status => self.write_status(value, cx),
            register if register.is_legacy() => self.write_legacy(register, value, cx),
            Register::QueueReady if self.legacy.is_some() => {}
            Register::QueueReady => self.write_queue_ready(value, cx),
            _ => self.write_queue_register(register, value),
        }
    }

    /// The registers of a queue can only be written while it is not ready.
    fn write_queue_register(&mut self, register: Register, value: u32) {
        let Some(queue) = self.queues.get_mut(self.queue_select).filter(|q| !q.ready) else {
            return;
        };
        match register {
            Register::QueueSize => queue.size = value.try_into().unwrap_or(0),
            Register::QueueDescriptorsLow => set_half(&mut queue.descriptors, false, value),
            Register::QueueDescriptorsHigh => set_half(&mut queue.descriptors, true, value),
            Register::QueueDriverLow => set_half(&mut queue.driver, false, value),
            Register::QueueDriverHigh => set_half(&mut queue.driver, true, value),
            Register::QueueDeviceLow => set_half(&mut queue.device, false, value),
            Register::QueueDeviceHigh => set_half(&mut queue.device, true, value),
            _ => {}
        }
    }

    fn write_queue_ready(&mut self, value: u32, cx: &mut Cx<'_>) {
        let Some(queue) = self.queues.get_mut(self.queue_select) else {
            return;
        };
        if value & 1 == 0 {
            queue.ready = false;
        } else if !queue.ready
            && let Err(broken) = queue.enable()
        {
            self.fail(broken, cx);
        }
    }

    fn write_legacy(&mut self, register: Register, value: u32, cx: &mut Cx<'_>) {
        let Some(legacy) = &mut self.legacy else {
            if !std::mem::replace(&mut self.legacy_warned, true) {
                tracing::warn!(
                    device_type = self.backend.device_type(),
                    "virtio: expected a driver for version 2, found one that sets {register:?} of the legacy interface, \
                     version 1: nothing is done (`boot --virtio-legacy` has that version)"
                );
            }
            return;
        };
        match register {
            Register::GuestPageSize => legacy.page_size = value,
            Register::QueueAlign => legacy.alignment = value,
            _ => {
                let Some(queue) = self.queues.get_mut(self.queue_select) else {
                    return;
                };
                if value == 0 {
                    // Page 0 disables the queue and clears its state.
                    *queue = Queue::default();
                } else if !queue.ready
                    && let Err(broken) = queue.enable_at(value, legacy.page_size, legacy.alignment)
                {
                    self.fail(broken, cx);
                }
            }
        }
    }

    fn write_status(&mut self, value: u32, cx: &mut Cx<'_>) {
        let mut value = value | self.status & status::NEEDS_RESET;
        // A driver that does not accept VERSION_1 is tolerated, as by other machines (section 6.2 lets the device decide):
        // small systems clear unknown feature bits, but use the rings as VERSION_1 defines them.
        if self.driver_features & !self.features() != 0 {
            value &= !status::FEATURES_OK;
        }
        let started = value & !self.status & status::DRIVER_OK != 0;
        // Legacy drivers do not set FEATURES_OK.
        if value & status::FEATURES_OK != 0 || started && self.legacy.is_some() {
            self.backend.negotiated(self.driver_features & self.features());
        }
        self.status = value;
        if started && self.backend.poll_hz() != 0 {
            self.poll_at = cx.now.saturating_add(self.poll_period(cx));
            self.schedule(cx);
        }
    }

    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.backend.reset();
        self.queues.fill_with(Queue::default);
        self.replies.clear();
        self.outstanding = 0;
        self.poll_at = u64::MAX;
        (self.status, self.interrupt, self.queue_select) = (0, 0, 0);
        (self.device_features_select, self.driver_features_select) = (0, 0);
        self.driver_features = 0;
        cx.schedule(u64::MAX);
    }

    /// The driver broke a rule: the device stops until it is reset (section 2.1.2).
    fn fail(&mut self, RuleViolation(rule): RuleViolation, _cx: &mut Cx<'_>) {
        tracing::warn!(device_type = self.backend.device_type(), "virtio device stops: {rule}");
        self.status |= status::NEEDS_RESET;
        self.interrupt |= interrupt::CONFIG;
    }

    fn live(&self) -> bool {
        let stopped = status::NEEDS_RESET | status::FAILED;
        self.status & status::DRIVER_OK != 0 && self.status & stopped == 0
    }

    fn notify(&mut self, queue: usize, cx: &mut Cx<'_>) {
        if let Err(broken) = self.serve(queue, cx) {
            self.fail(broken, cx);
        }
        self.schedule(cx);
    }

    /// Carries out the requests that wait in a queue.
    fn serve(&mut self, index: usize, cx: &mut Cx<'_>) -> Result<(), RuleViolation> {
        if !self.live() {
            return Ok(());
        }
        let Some(queue) = self.queues.get_mut(index).filter(|q| q.ready) else {
            return Ok(());
        };
        let mut taken = self.replies.iter().filter(|r| r.queue == index).count();
        while self.outstanding < OUTSTANDING_MAX
            && let Some(chain) = queue.peek(cx.ram, self.backend.request_max())?
        {
            taken += 1;
            if taken > usize::from(queue.size) {
                return Err(RuleViolation(
                    "more requests are under way than the queue has descriptors",
                ));
            }
            let (request, room) = (chain.gather(cx.ram), chain.room());
            let nanos = cx.clock.nanos(cx.now);
            let Some(mut bytes) =
                self.backend.serve(Request { queue: index, bytes: &request, room, nanos })
            else {
                break;
            };
            *cx.pause |= self.backend.pauses();
            queue.advance();
            bytes.truncate(room);
            let transfer = self.latency.transfer(request.len() + bytes.len());
            self.transfer_end = self.transfer_end.max(cx.now).saturating_add(transfer);
            self.outstanding += bytes.len();
            let due = self.transfer_end.saturating_add(self.latency.fixed).max(cx.now + 1);
            self.replies.push_back(Reply { due, queue: index, chain, bytes });
        }
        Ok(())
    }

    /// Delivers the replies that are due.
    fn deliver(&mut self, cx: &mut Cx<'_>) -> Result<(), RuleViolation> {
        while self.replies.front().is_some_and(|r| r.due <= cx.now) {
            let Some(reply) = self.replies.pop_front() else {
                break;
            };
            self.outstanding = self.outstanding.saturating_sub(reply.bytes.len());
            let Some(queue) = self.queues.get_mut(reply.queue) else {
                continue;
            };
            // A queue that the driver disabled meanwhile no longer belongs to the device.
            if !queue.ready {
                continue;
            }
            let written = reply.chain.scatter(cx.ram, &reply.bytes);
            queue.complete(cx.ram, reply.chain.head, written)?;
            if queue.wants_interrupt(cx.ram) {
                self.interrupt |= interrupt::USED;
            }
        }
        Ok(())
    }

    fn poll_period(&self, cx: &Cx<'_>) -> u64 {
        (cx.clock.clock_hz() / self.backend.poll_hz().max(1)).max(1)
    }

    fn schedule(&self, cx: &mut Cx<'_>) {
        let reply = self.replies.front().map_or(u64::MAX, |r| r.due);
        cx.schedule(if self.live() { reply.min(self.poll_at) } else { u64::MAX });
    }
}

impl Device for VirtioMmio {
    fn read(&mut self, offset: u64, size: u8, _cx: &mut Cx<'_>) -> Result<u64, AccessFault> {
        if let Some(at) = offset.checked_sub(CONFIG) {
            let mut bytes = [0; 8];
            let config = self.backend.config();
            let field = config.iter().skip(at as usize).take(size.into());
            bytes.iter_mut().zip(field).for_each(|(to, from)| *to = *from);
            return Ok(u64::from_le_bytes(bytes));
        }
        if size != 4 {
            return Err(AccessFault);
        }
        Ok(self.read_register(Register::at(offset)).into())
    }

    fn write(
        &mut self,
        offset: u64,
        size: u8,
        value: u64,
        cx: &mut Cx<'_>,
    ) -> Result<(), AccessFault> {
        if let Some(at) = offset.checked_sub(CONFIG) {
            self.backend.write_config(at, value as u32);
            return Ok(());
        }
        if size != 4 {
            return Err(AccessFault);
        }
        self.write_register(Register::at(offset), value as u32, cx);
        Ok(())
    }

    fn event(&mut self, cx: &mut Cx<'_>) {
        let mut result = self.deliver(cx);
        if cx.now >= self.poll_at {
            self.backend.poll(cx.clock.nanos(cx.now));
            self.poll_at = cx.now.saturating_add(self.poll_period(cx));
        }
        for queue in 0..self.queues.len() {
            result = result.and_then(|()| self.serve(queue, cx));
        }
        if let Err(broken) = result {
            self.fail(broken, cx);
        }
        self.schedule(cx);
    }

    fn irq_level(&self) -> bool {
        self.interrupt != 0
    }
}

fn set_half(word: &mut u64, high: bool, value: u32) {
    let shift = if high { 32 } else { 0 };
    *word = *word & !(0xffff_ffff << shift) | u64::from(value) << shift;
}

#[cfg(test)]
mod tests;
