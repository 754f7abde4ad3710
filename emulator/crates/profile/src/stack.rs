//! Cycle stacks: what an instruction's cycles were spent on.

use commit_trace::{Class, CycleClass, TeaEvents};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A component of a cycle stack, as fine as the stream tells.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Component {
    /// Instructions commit.
    Execution = 0,
    /// The oldest waits for an execution unit or an operand of one.
    Alu,
    /// The oldest is a load that hits in the L1 or is forwarded, but for [`Self::LoadTlb`].
    LoadL1,
    /// The oldest is a load served by the L2.
    LoadL2,
    /// The oldest is a load served by the last-level cache.
    LoadLlc,
    /// The oldest is a load served by memory.
    LoadDram,
    /// The oldest is a load or an atomic whose line another hart's cache supplied or had to give up.
    LoadPeer,
    /// The oldest is a store.
    Store,
    /// The oldest waits for a divider.
    Divider,
    /// The oldest serialises.
    Serialize,
    /// The oldest accesses a device.
    Device,
    /// Drained: the front end delivers nothing.
    FrontEnd,
    /// Drained by an L1 instruction cache miss.
    FrontEndCache,
    /// Drained by an instruction TLB miss.
    FrontEndTlb,
    /// Drained because a full store queue holds up dispatch (TEA's DR-SQ): the instructions are
    /// there, and the front end is not at fault.
    FrontEndStores,
    /// The ROB is empty after a mispredicted branch.
    Mispredict,
    /// The ROB is empty after a pipeline flush at commit.
    Flush,
    /// The ROB is empty after a memory-ordering failure.
    MemoryOrdering,
    /// The ROB is empty after an exception.
    Exception,
    /// The ROB is empty after an interrupt.
    Interrupt,
    /// The oldest is a load that missed in the data TLB and hits in the L1 or is forwarded: the time is the translation's. A load of a line from
    /// further away counts as that, whether it missed in the TLB or not, as the stream does not tell the two waits apart.
    LoadTlb,
}

/// The published cycle stacks' categories (TIP, MICRO'21, figure 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// At least one instruction commits.
    Execution,
    /// Stalled on anything but memory.
    AluStall,
    /// Stalled on a load (or an atomic, which waits as a load does).
    LoadStall,
    /// Stalled on a store.
    StoreStall,
    /// Drained.
    FrontEnd,
    /// Flushed by a mispredicted branch.
    Mispredict,
    /// Flushed by anything else.
    MiscFlush,
}

/// The seven categories of the published cycle stacks, in the order of [`Category::ALL`].
pub const CATEGORIES: [&str; 7] = [
    "Execution",
    "ALU stall",
    "Load stall",
    "Store stall",
    "Front-end",
    "Mispredict",
    "Misc. flush",
];

impl Component {
    /// Number of components.
    pub const COUNT: usize = 21;

    /// All components, in numeric order.
    pub const ALL: [Self; Self::COUNT] = {
        use Component::*;
        [
            Execution,
            Alu,
            LoadL1,
            LoadL2,
            LoadLlc,
            LoadDram,
            LoadPeer,
            Store,
            Divider,
            Serialize,
            Device,
            FrontEnd,
            FrontEndCache,
            FrontEndTlb,
            FrontEndStores,
            Mispredict,
            Flush,
            MemoryOrdering,
            Exception,
            Interrupt,
            LoadTlb,
        ]
    };

    /// Returns the component of a stall of the given class of an instruction that incurred `tea`.
    #[inline]
    pub fn stall(class: CycleClass, tea: TeaEvents) -> Self {
        match class {
            CycleClass::LoadL1 if tea.contains(TeaEvents::ST_TLB) => Self::LoadTlb,
            CycleClass::Alu => Self::Alu,
            CycleClass::LoadL1 => Self::LoadL1,
            CycleClass::LoadL2 => Self::LoadL2,
            CycleClass::LoadLlc => Self::LoadLlc,
            CycleClass::LoadDram => Self::LoadDram,
            CycleClass::LoadPeer => Self::LoadPeer,
            CycleClass::Store => Self::Store,
            CycleClass::Divider => Self::Divider,
            CycleClass::Serialize => Self::Serialize,
            CycleClass::Device => Self::Device,
        }
    }

    /// Returns the published category. The class of the instruction decides where the component does not:
    /// a device access is a load or a store, an atomic serialises but waits as a load does.
    pub fn category(self, class: Class) -> Category {
        self.category_of(|| class)
    }

    /// Returns the published category, as [`Self::category`] does; `class` is called only where the class decides.
    #[inline]
    pub(crate) fn category_of(self, class: impl FnOnce() -> Class) -> Category {
        match self {
            Self::Execution => Category::Execution,
            Self::Alu | Self::Divider => Category::AluStall,
            Self::LoadL1
            | Self::LoadTlb
            | Self::LoadL2
            | Self::LoadLlc
            | Self::LoadDram
            | Self::LoadPeer => Category::LoadStall,
            Self::Store => Category::StoreStall,
            Self::Serialize | Self::Device => match class() {
                Class::Load | Class::Atomic => Category::LoadStall,
                Class::Store => Category::StoreStall,
                _ => Category::AluStall,
            },
            Self::FrontEnd | Self::FrontEndCache | Self::FrontEndTlb | Self::FrontEndStores => {
                Category::FrontEnd
            }
            Self::Mispredict => Category::Mispredict,
            Self::Flush | Self::MemoryOrdering | Self::Exception | Self::Interrupt => {
                Category::MiscFlush
            }
        }
    }
}

impl Category {
    /// All categories, in the order of the published figures.
    pub const ALL: [Self; 7] = [
        Self::Execution,
        Self::AluStall,
        Self::LoadStall,
        Self::StoreStall,
        Self::FrontEnd,
        Self::Mispredict,
        Self::MiscFlush,
    ];
}

/// Units (of [`crate::Profile::units_per_cycle`]) per component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleStack(pub [u64; Component::COUNT]);

impl CycleStack {
    /// Units of all components.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Units per published category, in the order of [`Category::ALL`], for an instruction of `class`.
    pub fn categories(&self, class: Class) -> [u64; 7] {
        let mut units = [0; 7];
        for (component, amount) in Component::ALL.iter().zip(self.0) {
            units[component.category(class) as usize] += amount;
        }
        units
    }
}

impl std::ops::Index<Component> for CycleStack {
    type Output = u64;
    fn index(&self, component: Component) -> &u64 {
        &self.0[component as usize]
    }
}

impl std::ops::IndexMut<Component> for CycleStack {
    fn index_mut(&mut self, component: Component) -> &mut u64 {
        &mut self.0[component as usize]
    }
}

impl std::ops::AddAssign for CycleStack {
    fn add_assign(&mut self, other: Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_indices() {
        for (n, component) in Component::ALL.into_iter().enumerate() {
            assert_eq!(component as usize, n);
        }
        for (n, category) in Category::ALL.into_iter().enumerate() {
            assert_eq!(category as usize, n);
        }
    }

    #[test]
    fn categories_keep_the_total() {
        let mut stack = CycleStack::default();
        for (n, component) in Component::ALL.into_iter().enumerate() {
            stack[component] = n as u64 + 1;
        }
        for class in Class::ALL {
            assert_eq!(stack.categories(class).iter().sum::<u64>(), stack.total());
        }
    }
}
