//! A server for GDB's remote protocol: `--gdb PORT` of `tipsim boot`, `exec` and `run`. Every hart is a thread.

mod description;
mod monitor;
mod points;
mod registers;
mod target;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use anyhow::Context;
use devices::Exit;
use gdbstub::stub::{DisconnectReason, GdbStub};
use machine::RunExit;
use simulation::{Flow, Mode, Observer, Session, SimulationError};

use target::{Debugged, EventLoop};

/// Instructions between two looks at the connection, or for one: what a few harts under the timing core do in some tenths
/// of a second. GDB waits for two seconds.
pub(crate) const POLL_INSTRUCTIONS: u64 = 100_000;

/// How a debugged run ended.
pub(crate) enum End {
    /// The guest ended it.
    Guest(Exit),
    /// The caller did, who was told why a slice came back.
    Caller,
    /// The debugger killed it.
    Killed,
    /// The debugger went away: the guest goes on.
    Detached,
}

/// Who watches a session that a debugger may take over.
pub(crate) type Watching<'a> = dyn Observer<Error = anyhow::Error> + 'a;

/// What a machine was before its first instruction, to begin anew.
pub(crate) struct Beginning {
    state: Vec<u8>,
    mode: Mode,
}

/// Where debuggers come from, one after another.
pub(crate) struct Debugger {
    streams: Receiver<TcpStream>,
    /// Whether a debugger is connected: others are refused.
    busy: Arc<AtomicBool>,
    next: Option<TcpStream>,
    beginning: Result<Beginning, String>,
}

impl Debugger {
    /// Listens on a port of the loopback interface.
    pub(crate) fn listen(port: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port))
            .with_context(|| format!("--gdb: port {port}"))?;
        let port = listener.local_addr()?.port();
        eprintln!("tipsim: waiting for GDB: target remote localhost:{port}");
        let (sender, streams) = channel();
        let busy = Arc::new(AtomicBool::new(false));
        let taken = Arc::clone(&busy);
        std::thread::spawn(move || accept(&listener, &taken, &sender));
        Ok(Self {
            streams,
            busy,
            next: None,
            beginning: Err("here the machine cannot begin anew".to_owned()),
        })
    }

    /// Keeps what the machine is now, for `monitor reset`; it begins anew in `mode`.
    pub(crate) fn keep_beginning(&mut self, session: &mut Session, mode: Mode) {
        let state = session.state();
        self.beginning = state
            .map(|state| Beginning { state, mode })
            .map_err(|e: SimulationError| e.to_string());
    }

    /// Waits for the first debugger.
    pub(crate) fn wait(&mut self) -> anyhow::Result<()> {
        self.next = Some(self.streams.recv()?);
        Ok(())
    }

    /// If a debugger has connected, runs the machine under its control until it goes; `None` if none has.
    pub(crate) fn serve(
        &mut self,
        session: &mut Session,
        watching: &mut Watching<'_>,
    ) -> anyhow::Result<Option<End>> {
        let Some(stream) = self.next.take().or_else(|| self.streams.try_recv().ok()) else {
            return Ok(None);
        };
        stream.set_nodelay(true)?;
        let beginning = self.beginning.as_ref().map_err(String::as_str);
        let mut target = Debugged::new(session, watching, beginning, stream.try_clone()?);
        let reason = GdbStub::new(stream).run_blocking::<EventLoop<'_>>(&mut target);
        let (ended, failed) = target.leave();
        self.busy.store(false, Ordering::Release);
        if let Some(error) = failed {
            return Err(error);
        }
        Ok(Some(match (reason, ended) {
            (_, Some(end)) => end,
            (Ok(DisconnectReason::Kill), None) => End::Killed,
            (Ok(_), None) => End::Detached,
            (Err(error), None) => {
                tracing::info!("GDB: {error}");
                End::Detached
            }
        }))
    }
}

/// Watches a session, which a debugger takes over whenever one is connected.
pub(crate) struct UnderDebugger<'a, O> {
    debugger: Option<&'a mut Debugger>,
    observer: &'a mut O,
    /// How a debugged run ended, if it did under a debugger.
    pub end: Option<End>,
}

impl<'a, O> UnderDebugger<'a, O> {
    /// Lets `debugger`, if there is one, take over what `observer` watches.
    pub(crate) fn new(debugger: Option<&'a mut Debugger>, observer: &'a mut O) -> Self {
        Self { debugger, observer, end: None }
    }
}

impl<O: Observer<Error = anyhow::Error>> Observer for UnderDebugger<'_, O> {
    type Error = anyhow::Error;

    fn slice(&mut self, session: &Session) -> u64 {
        self.observer.slice(session)
    }

    fn before_slice(&mut self, session: &mut Session) -> anyhow::Result<Flow> {
        if let Some(debugger) = &mut self.debugger {
            match debugger.serve(session, self.observer)? {
                Some(End::Guest(exit)) => {
                    self.end = Some(End::Guest(exit));
                    self.observer.after_slice(session, RunExit::Exit(exit))?;
                    return Ok(Flow::End);
                }
                Some(end @ (End::Killed | End::Caller)) => {
                    self.end = Some(end);
                    return Ok(Flow::End);
                }
                Some(End::Detached) | None => {}
            }
        }
        self.observer.before_slice(session)
    }

    fn after_slice(&mut self, session: &mut Session, exit: RunExit) -> anyhow::Result<Flow> {
        self.observer.after_slice(session, exit)
    }
}

/// Takes connections: one at a time, the others are told so.
fn accept(listener: &TcpListener, busy: &AtomicBool, sender: &Sender<TcpStream>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Out of descriptors, or a connection that was gone before it was taken.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        if busy.swap(true, Ordering::AcqRel) {
            refuse(stream);
        } else if sender.send(stream).is_err() {
            return;
        }
    }
}

fn refuse(mut stream: TcpStream) {
    const WHY: &str = "E.tipsim: another debugger is connected";
    let sum = WHY.bytes().fold(0u8, u8::wrapping_add);
    let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
    // The answer to its first packet; unread bytes would have the answer dropped.
    let _ = stream.read(&mut [0; 1024]);
    let _ = write!(stream, "+${WHY}#{sum:02x}");
    eprintln!("tipsim: GDB: a second debugger was refused: another one is connected");
}
