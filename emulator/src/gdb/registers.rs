//! Registers and memory, of each hart as a thread.

use gdbstub::common::Tid;
use gdbstub::target::ext::base::multithread::{MultiThreadBase, MultiThreadResumeOps};
use gdbstub::target::ext::base::single_register_access::{
    SingleRegisterAccess, SingleRegisterAccessOps,
};
use gdbstub::target::ext::target_description_xml_override::TargetDescriptionXmlOverride;
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{TargetError, TargetResult};
use gdbstub_arch::riscv::reg::RiscvCoreRegs;
use gdbstub_arch::riscv::reg::id::RiscvRegId;

use super::target::{Debugged, thread};

impl TargetDescriptionXmlOverride for Debugged<'_> {
    fn target_description_xml(
        &self,
        annex: &[u8],
        offset: u64,
        length: usize,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        if annex != b"target.xml" {
            return Err(TargetError::NonFatal);
        }
        let rest = self.description.as_bytes().get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(length).min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

impl MultiThreadBase for Debugged<'_> {
    fn read_registers(
        &mut self,
        registers: &mut RiscvCoreRegs<u64>,
        tid: Tid,
    ) -> TargetResult<(), Self> {
        let (hart, _) = self.hart(tid);
        registers.x = std::array::from_fn(|n| hart.reg(n as u8));
        registers.pc = hart.pc();
        Ok(())
    }

    fn write_registers(
        &mut self,
        registers: &RiscvCoreRegs<u64>,
        tid: Tid,
    ) -> TargetResult<(), Self> {
        let (hart, _) = self.hart(tid);
        for (n, &value) in registers.x.iter().enumerate() {
            hart.set_reg(n as u8, value);
        }
        hart.set_pc(registers.pc);
        Ok(())
    }

    fn support_single_register_access(&mut self) -> Option<SingleRegisterAccessOps<'_, Tid, Self>> {
        Some(self)
    }

    fn read_addrs(&mut self, start: u64, data: &mut [u8], tid: Tid) -> TargetResult<usize, Self> {
        let (hart, bus) = self.hart(tid);
        match hart.debug_read(bus, start, data) {
            0 if !data.is_empty() => Err(TargetError::NonFatal),
            count => Ok(count),
        }
    }

    fn write_addrs(&mut self, start: u64, data: &[u8], tid: Tid) -> TargetResult<(), Self> {
        let (hart, bus) = self.hart(tid);
        let written = hart.debug_write(bus, start, data);
        written.then_some(()).ok_or(TargetError::NonFatal)
    }

    fn list_active_threads(
        &mut self,
        register_thread: &mut dyn FnMut(Tid),
    ) -> Result<(), Self::Error> {
        (0..self.session.system().harts.len()).for_each(|hart| register_thread(thread(hart)));
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl ThreadExtraInfo for Debugged<'_> {
    fn thread_extra_info(&self, tid: Tid, buffer: &mut [u8]) -> Result<usize, Self::Error> {
        let (text, _) = self.session.system().harts.describe(tid.get() - 1);
        let count = text.len().min(buffer.len());
        buffer[..count].copy_from_slice(&text.as_bytes()[..count]);
        Ok(count)
    }
}

/// The hart's number of a register that GDB names.
fn number(id: RiscvRegId<u64>) -> Option<u8> {
    match id {
        RiscvRegId::Gpr(n) => Some(n),
        RiscvRegId::Fpr(n) => Some(32 + n),
        _ => None,
    }
}

impl SingleRegisterAccess<Tid> for Debugged<'_> {
    fn read_register(
        &mut self,
        tid: Tid,
        id: RiscvRegId<u64>,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        let (hart, bus) = self.hart(tid);
        let value = match id {
            RiscvRegId::Pc => hart.pc(),
            RiscvRegId::Priv => hart.privilege() as u64,
            RiscvRegId::Csr(csr) => {
                let value = hart.debug_csr(bus, csr);
                value.ok_or(TargetError::NonFatal)?
            }
            _ => hart.reg(number(id).ok_or(TargetError::NonFatal)?),
        };
        let bytes = value.to_le_bytes();
        let bytes = match id {
            RiscvRegId::Priv => &bytes[..1],
            _ => &bytes[..],
        };
        let buffer = buffer.get_mut(..bytes.len()).ok_or(TargetError::NonFatal)?;
        buffer.copy_from_slice(bytes);
        Ok(bytes.len())
    }

    fn write_register(
        &mut self,
        tid: Tid,
        id: RiscvRegId<u64>,
        bytes: &[u8],
    ) -> TargetResult<(), Self> {
        let (hart, bus) = self.hart(tid);
        let value = u64::from_le_bytes(bytes.try_into().map_err(|_| TargetError::NonFatal)?);
        match id {
            RiscvRegId::Pc => hart.set_pc(value),
            RiscvRegId::Csr(csr) => {
                if !hart.set_debug_csr(bus, csr, value) {
                    return Err(TargetError::NonFatal);
                }
            }
            _ => hart.set_reg(number(id).ok_or(TargetError::NonFatal)?, value),
        }
        Ok(())
    }
}
