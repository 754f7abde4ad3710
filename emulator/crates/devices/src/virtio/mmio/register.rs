//! The transport's registers (virtio 1.2, section 4.2.2; those of the legacy interface: section 4.2.4).

#[derive(Clone, Copy, Debug)]
pub(super) enum Register {
    Magic,
    Version,
    DeviceType,
    Vendor,
    DeviceFeatures,
    DeviceFeaturesSelect,
    DriverFeatures,
    DriverFeaturesSelect,
    /// Legacy.
    GuestPageSize,
    QueueSelect,
    QueueSizeMax,
    QueueSize,
    /// Legacy.
    QueueAlign,
    /// Legacy: where the queue is, in pages.
    QueuePage,
    QueueReady,
    QueueNotify,
    InterruptStatus,
    InterruptAck,
    Status,
    QueueDescriptorsLow,
    QueueDescriptorsHigh,
    QueueDriverLow,
    QueueDriverHigh,
    QueueDeviceLow,
    QueueDeviceHigh,
    SharedMemory,
    ConfigGeneration,
    Reserved,
}

impl Register {
    /// Only the legacy interface has it.
    pub(super) fn is_legacy(self) -> bool {
        matches!(self, Self::GuestPageSize | Self::QueueAlign | Self::QueuePage)
    }

    /// The register at an offset below the configuration space.
    pub(super) fn at(offset: u64) -> Self {
        match offset {
            0x000 => Self::Magic,
            0x004 => Self::Version,
            0x008 => Self::DeviceType,
            0x00c => Self::Vendor,
            0x010 => Self::DeviceFeatures,
            0x014 => Self::DeviceFeaturesSelect,
            0x020 => Self::DriverFeatures,
            0x024 => Self::DriverFeaturesSelect,
            0x028 => Self::GuestPageSize,
            0x030 => Self::QueueSelect,
            0x034 => Self::QueueSizeMax,
            0x038 => Self::QueueSize,
            0x03c => Self::QueueAlign,
            0x040 => Self::QueuePage,
            0x044 => Self::QueueReady,
            0x050 => Self::QueueNotify,
            0x060 => Self::InterruptStatus,
            0x064 => Self::InterruptAck,
            0x070 => Self::Status,
            0x080 => Self::QueueDescriptorsLow,
            0x084 => Self::QueueDescriptorsHigh,
            0x090 => Self::QueueDriverLow,
            0x094 => Self::QueueDriverHigh,
            0x0a0 => Self::QueueDeviceLow,
            0x0a4 => Self::QueueDeviceHigh,
            0x0b0..0x0c0 => Self::SharedMemory,
            0x0fc => Self::ConfigGeneration,
            _ => Self::Reserved,
        }
    }
}
