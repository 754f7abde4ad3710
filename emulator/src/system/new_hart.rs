//! Harts of a new machine.

use isa::Extensions;
use machine::Hart;

use crate::failure::BadInput;
use crate::spec::Translator;

/// A hart at rest.
pub(super) fn new_hart(
    id: usize,
    extensions: Extensions,
    translator: Translator,
) -> anyhow::Result<Hart> {
    let mut hart = Hart::new(id);
    hart.set_extensions(extensions);
    translate(&mut hart, translator)?;
    Ok(hart)
}

/// Sets what of its code is translated; a host that cannot is told of only if it has to.
pub(super) fn translate(hart: &mut Hart, translator: Translator) -> anyhow::Result<()> {
    match (hart.set_translate(translator.into()), translator) {
        (Err(e), Translator::Eager) => Err(BadInput(format!("translator: {e}")).into()),
        (Err(e), _) => {
            tracing::info!("translator: {e}");
            Ok(())
        }
        (Ok(()), _) => Ok(()),
    }
}
