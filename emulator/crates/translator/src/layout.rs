//! Where translated code finds what it reads and writes of the hart.

/// Byte offsets within the hart, and the form of its TLBs. The hart states them as a constant.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The registers by their unified number, 8 bytes each.
    pub registers: i32,
    /// Address of the next instruction; code writes it when it is left.
    pub pc: i32,
    /// Offset of the count of instructions attempted, which translated code stores before it returns to the hart.
    pub count: i32,
    /// The [`Frame`](crate::Frame).
    pub frame: i32,
    /// Offset of a run's data accesses: how many there are so far, 8 bytes, and the first of them, an [`isa::MemAccess`].
    pub access_count: i32,
    /// See [`Self::access_count`].
    pub accesses: i32,
    /// Physical address minus host address of RAM.
    pub host_to_pa: i32,
    /// The first level of a TLB of data: direct-mapped by the page's number.
    pub tlb: TlbLayout,
}

/// A direct-mapped TLB.
#[derive(Clone, Copy, Debug)]
pub struct TlbLayout {
    /// How many entries it has; a power of two.
    pub entries: usize,
    /// Bytes of an entry; a power of two.
    pub entry_size: usize,
    /// In an entry: the page's virtual address, or one that is not aligned if it is empty.
    pub tag: i32,
    /// In an entry: the page's host address minus its virtual one.
    pub host: i32,
}

impl Layout {
    /// A field of the frame, at an offset within it.
    pub(crate) fn frame(&self, offset: usize) -> i32 {
        self.frame + offset as i32
    }

    pub(crate) fn register(&self, reg: isa::Reg) -> i32 {
        self.registers + 8 * i32::from(reg)
    }
}
