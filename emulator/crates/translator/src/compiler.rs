//! What compiles functions for this host, by Cranelift.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;

use crate::discover::Block;
use crate::frame::Fallback;
use crate::{CodeKind, Layout, TranslatorError, emit};

/// Addresses of code by which regions call functions of the hart so that every register is preserved
/// ([`preserving_call`](crate::interpret::preserving_call)).
#[derive(Clone, Copy, Default)]
pub(crate) struct PreservingCalls {
    /// Calls [`Frame::execute`](crate::Frame::execute).
    pub execute: usize,
    /// Calls [`Frame::warm_fetch`](crate::Frame::warm_fetch).
    pub warm_fetch: usize,
}

/// Compiles functions; keeps nothing of them.
pub(crate) struct Compiler {
    layout: Layout,
    /// What compiles code of each [`CodeKind`].
    targets: [OwnedTargetIsa; CodeKind::COUNT],
    context: Context,
    builder: FunctionBuilderContext,
    /// What regions call.
    pub preserving_calls: PreservingCalls,
    has_fma: bool,
}

/// A region as the host's code, which may lie anywhere.
pub(crate) struct Compiled {
    /// The code.
    pub code: Vec<u8>,
    /// Instructions that the code gives to the interpreter: it has their addresses.
    pub fallbacks: Box<[Fallback]>,
}

impl Compiler {
    /// Returns one for harts of this layout.
    ///
    /// # Errors
    /// Cranelift has no code for this host.
    pub(crate) fn new(layout: Layout) -> Result<Self, TranslatorError> {
        // Runs, warming and logs write much that has nothing in common: the optimiser takes a third of the time for code that is no faster.
        let targets = [target("speed")?, target("none")?, target("none")?, target("none")?];
        let has_fma = targets[0]
            .isa_flags()
            .iter()
            .any(|flag| flag.name == "has_fma" && flag.as_bool() == Some(true));
        Ok(Self {
            layout,
            targets,
            context: Context::new(),
            builder: FunctionBuilderContext::new(),
            preserving_calls: PreservingCalls::default(),
            has_fma,
        })
    }

    /// Returns another one that compiles the same code.
    pub(crate) fn another(&self) -> Self {
        let Self { layout, ref targets, preserving_calls, has_fma, .. } = *self;
        Self {
            layout,
            targets: targets.clone(),
            context: Context::new(),
            builder: FunctionBuilderContext::new(),
            preserving_calls,
            has_fma,
        }
    }

    /// Compiles a function that `build` builds; `None` if it cannot be compiled.
    pub(crate) fn function(
        &mut self,
        build: impl FnOnce(&mut Function, &mut FunctionBuilderContext),
    ) -> Option<Vec<u8>> {
        self.context.clear();
        build(&mut self.context.func, &mut self.builder);
        self.compile(CodeKind::Untimed)
    }

    /// Compiles the region of `blocks`, which are of the page at physical address `page`; `None` if it cannot be compiled.
    pub(crate) fn region(
        &mut self,
        blocks: &[Block],
        kind: CodeKind,
        page: u64,
    ) -> Option<Compiled> {
        self.context.clear();
        let fallbacks = emit::region(
            &self.layout,
            &mut self.context.func,
            &mut self.builder,
            blocks,
            (kind, page),
            self.preserving_calls,
            self.has_fma,
        );
        Some(Compiled { code: self.compile(kind)?, fallbacks })
    }

    /// Compiles the function in the context.
    fn compile(&mut self, kind: CodeKind) -> Option<Vec<u8>> {
        let target = &*self.targets[kind as usize];
        match self.context.compile(target, &mut ControlPlane::default()) {
            Ok(code) if code.buffer.relocs().is_empty() => Some(code.code_buffer().to_vec()),
            Ok(_) => None,
            Err(e) => {
                tracing::debug!("translator: {}", e.inner);
                None
            }
        }
    }
}

/// The host, for code that is optimised so.
fn target(opt_level: &str) -> Result<OwnedTargetIsa, TranslatorError> {
    let error = |e: &dyn std::fmt::Display| TranslatorError::Isa(e.to_string());
    let verifies = cfg!(debug_assertions).to_string();
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", opt_level),
        ("preserve_frame_pointers", "true"),
        ("enable_probestack", "false"),
        ("enable_verifier", &verifies),
    ] {
        flags.set(name, value).map_err(|e| error(&e))?;
    }
    cranelift_native::builder()
        .map_err(|e| error(&e))?
        .finish(settings::Flags::new(flags))
        .map_err(|e| error(&e))
}
