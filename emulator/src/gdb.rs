//! A server for GDB's remote protocol: `tipsim boot --gdb PORT`, `tipsim exec --gdb PORT`.

use std::marker::PhantomData;
use std::net::{TcpListener, TcpStream};

use anyhow::Context;
use gdbstub::common::Signal;
use gdbstub::conn::{Connection, ConnectionExt};
use gdbstub::stub::run_blocking::{BlockingEventLoop, Event, WaitForStopReasonError};
use gdbstub::stub::{DisconnectReason, GdbStub, SingleThreadStopReason};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::single_register_access::{
    SingleRegisterAccess, SingleRegisterAccessOps,
};
use gdbstub::target::ext::base::singlethread::{
    SingleThreadBase, SingleThreadResume, SingleThreadResumeOps, SingleThreadSingleStep,
    SingleThreadSingleStepOps,
};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps,
    SwBreakpoint, SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::target_description_xml_override::{
    TargetDescriptionXmlOverride, TargetDescriptionXmlOverrideOps,
};
use gdbstub::target::{Target, TargetError, TargetResult};
use gdbstub_arch::riscv::Riscv64;
use gdbstub_arch::riscv::reg::RiscvCoreRegs;
use gdbstub_arch::riscv::reg::id::RiscvRegId;
use machine::{DebugStop, Exit, Limit, RunExit, Watchpoint};

use crate::system::{Engine, System};

/// Instructions between two looks at the connection.
const SLICE: u64 = 1_000_000;

/// GDB's numbers of CSR 0, and of the privilege.
const FIRST_CSR: u16 = 65;
const PRIVILEGE: u16 = FIRST_CSR + (1 << 12);

/// How a debugged run ended.
pub enum End {
    /// The guest ended it.
    Guest(Exit),
    /// The debugger killed it.
    Killed,
    /// The debugger went away: the guest goes on.
    Detached,
}

/// Waits for GDB on a port of the loopback interface and runs the machine under its control.
pub fn serve(port: u16, system: &mut System, engine: &mut Engine) -> anyhow::Result<End> {
    let listener =
        TcpListener::bind(("127.0.0.1", port)).with_context(|| format!("--gdb: port {port}"))?;
    let port = listener.local_addr()?.port();
    eprintln!("tipsim: waiting for GDB: target remote localhost:{port}");
    let (stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let System { hart, board, .. } = &mut *system;
    let csrs = (0..1 << 12).filter(|&csr| hart.debug_csr(&mut board.bus, csr).is_some());
    let mut target = Debugged {
        description: description(csrs),
        system,
        engine,
        step: false,
        exit: None,
    };
    let reason = GdbStub::new(stream).run_blocking::<EventLoop>(&mut target);
    // One that did not say goodbye leaves them behind.
    target.system.hart.clear_debug();
    Ok(match (reason, target.exit) {
        (_, Some(exit)) => End::Guest(exit),
        (Ok(DisconnectReason::Kill), None) => End::Killed,
        (Ok(_), None) => End::Detached,
        (Err(error), None) => {
            tracing::warn!("GDB: {error}");
            End::Detached
        }
    })
}

struct Debugged<'a> {
    system: &'a mut System,
    engine: &'a mut Engine,
    /// One instruction, then stop.
    step: bool,
    exit: Option<Exit>,
    /// Of the target, for GDB.
    description: String,
}

type StopReason = SingleThreadStopReason<u64>;

impl Debugged<'_> {
    /// Runs a slice; `None` if nothing happened that GDB wants to know.
    fn run(&mut self) -> Option<StopReason> {
        let instructions = if self.step { 1 } else { SLICE };
        let exit = self
            .system
            .run(self.engine, Limit::instructions(instructions));
        match exit {
            RunExit::Limit | RunExit::Mount if self.step => Some(StopReason::DoneStep),
            RunExit::Limit | RunExit::Mount | RunExit::Region(_) => None,
            RunExit::Debug(DebugStop::Breakpoint) => Some(StopReason::SwBreak(())),
            RunExit::Debug(DebugStop::Watchpoint { address, write }) => Some(StopReason::Watch {
                tid: (),
                kind: if write {
                    WatchKind::Write
                } else {
                    WatchKind::Read
                },
                addr: address,
            }),
            // Nothing can wake it but the console's input, or an interrupt from the debugger.
            RunExit::Idle => {
                std::thread::sleep(std::time::Duration::from_millis(2));
                self.step.then_some(StopReason::DoneStep)
            }
            RunExit::Exit(exit) => {
                self.exit = Some(exit);
                let code = match exit {
                    Exit::PowerOff(code) => u8::try_from(code).unwrap_or(255),
                    Exit::Host(code) => u8::try_from(code).unwrap_or(255),
                    Exit::Reset => 0,
                };
                Some(StopReason::Exited(code))
            }
        }
    }
}

struct EventLoop<'a>(PhantomData<&'a ()>);

impl<'a> BlockingEventLoop for EventLoop<'a> {
    type Target = Debugged<'a>;
    type Connection = TcpStream;
    type StopReason = StopReason;

    fn wait_for_stop_reason(
        target: &mut Debugged<'a>,
        connection: &mut TcpStream,
    ) -> Result<
        Event<StopReason>,
        WaitForStopReasonError<&'static str, <TcpStream as Connection>::Error>,
    > {
        loop {
            if let Some(reason) = target.run() {
                return Ok(Event::TargetStopped(reason));
            }
            let waiting = connection.peek();
            if waiting
                .map_err(WaitForStopReasonError::Connection)?
                .is_some()
            {
                let byte = ConnectionExt::read(connection);
                return Ok(Event::IncomingData(
                    byte.map_err(WaitForStopReasonError::Connection)?,
                ));
            }
        }
    }

    fn on_interrupt(_: &mut Debugged<'a>) -> Result<Option<StopReason>, &'static str> {
        Ok(Some(StopReason::Signal(Signal::SIGINT)))
    }
}

impl Target for Debugged<'_> {
    type Arch = Riscv64;
    type Error = &'static str;

    fn base_ops(&mut self) -> BaseOps<'_, Riscv64, &'static str> {
        BaseOps::SingleThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_target_description_xml_override(
        &mut self,
    ) -> Option<TargetDescriptionXmlOverrideOps<'_, Self>> {
        Some(self)
    }
}

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
        let rest = { self.description.as_bytes() }
            .get(offset as usize..)
            .unwrap_or_default();
        let count = rest.len().min(length).min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// The registers, with these CSRs, by GDB's names and numbers (GDB manual, appendix G.5.11).
fn description(csrs: impl Iterator<Item = u16>) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target version=\"1.0\">\
         <architecture>riscv:rv64</architecture><feature name=\"org.gnu.gdb.riscv.cpu\">",
    );
    for n in 0..32 {
        let name = isa::register_name(n);
        text += &format!("<reg name=\"{name}\" bitsize=\"64\" regnum=\"{n}\"/>");
    }
    text += "<reg name=\"pc\" bitsize=\"64\" type=\"code_ptr\" regnum=\"32\"/></feature>\
             <feature name=\"org.gnu.gdb.riscv.fpu\">";
    for n in 32..64 {
        let name = isa::register_name(n);
        let number = n + 1;
        text += &format!(
            "<reg name=\"{name}\" bitsize=\"64\" type=\"ieee_double\" regnum=\"{number}\"/>"
        );
    }
    text += "</feature><feature name=\"org.gnu.gdb.riscv.csr\">";
    for (csr, name) in csrs.filter_map(|csr| Some((csr, isa::csr_name(csr)?))) {
        let number = FIRST_CSR + csr;
        text += &format!("<reg name=\"{name}\" bitsize=\"64\" regnum=\"{number}\"/>");
    }
    text += "</feature><feature name=\"org.gnu.gdb.riscv.virtual\">";
    text += &format!("<reg name=\"priv\" bitsize=\"8\" regnum=\"{PRIVILEGE}\"/>");
    text + "</feature></target>"
}

impl SingleThreadBase for Debugged<'_> {
    fn read_registers(&mut self, registers: &mut RiscvCoreRegs<u64>) -> TargetResult<(), Self> {
        let hart = &self.system.hart;
        registers.x = std::array::from_fn(|n| hart.reg(n as u8));
        registers.pc = hart.pc();
        Ok(())
    }

    fn write_registers(&mut self, registers: &RiscvCoreRegs<u64>) -> TargetResult<(), Self> {
        let hart = &mut self.system.hart;
        for (n, &value) in registers.x.iter().enumerate() {
            hart.set_reg(n as u8, value);
        }
        hart.set_pc(registers.pc);
        Ok(())
    }

    fn support_single_register_access(&mut self) -> Option<SingleRegisterAccessOps<'_, (), Self>> {
        Some(self)
    }

    fn read_addrs(&mut self, start: u64, data: &mut [u8]) -> TargetResult<usize, Self> {
        let System { hart, board, .. } = &mut *self.system;
        match hart.debug_read(&mut board.bus, start, data) {
            0 if !data.is_empty() => Err(TargetError::NonFatal),
            count => Ok(count),
        }
    }

    fn write_addrs(&mut self, start: u64, data: &[u8]) -> TargetResult<(), Self> {
        let System { hart, board, .. } = &mut *self.system;
        let written = hart.debug_write(&mut board.bus, start, data);
        written.then_some(()).ok_or(TargetError::NonFatal)
    }

    fn support_resume(&mut self) -> Option<SingleThreadResumeOps<'_, Self>> {
        Some(self)
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

impl SingleRegisterAccess<()> for Debugged<'_> {
    fn read_register(
        &mut self,
        (): (),
        id: RiscvRegId<u64>,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        let System { hart, board, .. } = &mut *self.system;
        let value = match id {
            RiscvRegId::Pc => hart.pc(),
            RiscvRegId::Priv => hart.privilege() as u64,
            RiscvRegId::Csr(csr) => {
                let value = hart.debug_csr(&mut board.bus, csr);
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
        (): (),
        id: RiscvRegId<u64>,
        bytes: &[u8],
    ) -> TargetResult<(), Self> {
        let System { hart, board, .. } = &mut *self.system;
        let value = u64::from_le_bytes(bytes.try_into().map_err(|_| TargetError::NonFatal)?);
        match id {
            RiscvRegId::Pc => hart.set_pc(value),
            RiscvRegId::Csr(csr) => {
                if !hart.set_debug_csr(&mut board.bus, csr, value) {
                    return Err(TargetError::NonFatal);
                }
            }
            _ => hart.set_reg(number(id).ok_or(TargetError::NonFatal)?, value),
        }
        Ok(())
    }
}

impl SingleThreadResume for Debugged<'_> {
    fn resume(&mut self, _: Option<Signal>) -> Result<(), &'static str> {
        self.step = false;
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<SingleThreadSingleStepOps<'_, Self>> {
        Some(self)
    }
}

impl SingleThreadSingleStep for Debugged<'_> {
    fn step(&mut self, _: Option<Signal>) -> Result<(), &'static str> {
        self.step = true;
        Ok(())
    }
}

impl Breakpoints for Debugged<'_> {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for Debugged<'_> {
    fn add_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        self.system.hart.set_breakpoint(address, true);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        self.system.hart.set_breakpoint(address, false);
        Ok(true)
    }
}

impl HwBreakpoint for Debugged<'_> {
    fn add_hw_breakpoint(&mut self, address: u64, kind: usize) -> TargetResult<bool, Self> {
        self.add_sw_breakpoint(address, kind)
    }

    fn remove_hw_breakpoint(&mut self, address: u64, kind: usize) -> TargetResult<bool, Self> {
        self.remove_sw_breakpoint(address, kind)
    }
}

impl Debugged<'_> {
    fn watch(&mut self, address: u64, length: u64, kind: WatchKind, on: bool) {
        let watchpoint = Watchpoint {
            range: address..address.saturating_add(length),
            read: kind != WatchKind::Write,
            write: kind != WatchKind::Read,
        };
        self.system.hart.set_watchpoint(watchpoint, on);
    }
}

impl HwWatchpoint for Debugged<'_> {
    fn add_hw_watchpoint(
        &mut self,
        address: u64,
        length: u64,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        self.watch(address, length, kind, true);
        Ok(true)
    }

    fn remove_hw_watchpoint(
        &mut self,
        address: u64,
        length: u64,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        self.watch(address, length, kind, false);
        Ok(true)
    }
}
