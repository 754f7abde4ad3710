//! `tipsim core`.

use serde_json::json;
use timing::{Preset, PresetError};

use crate::cli::{CoreCommand, CoreFormat, Format};
use crate::commands::core_events;
use crate::failure::{BadInput, nearest};
use crate::host::terminal::say_json;

/// Loads a preset and applies `KEY=VALUE` overrides of `--set`.
pub(crate) fn load(name: &str, set: &[String]) -> Result<Preset, BadInput> {
    let mut preset = Preset::load(name).map_err(|e| BadInput(not_loaded(name, &e)))?;
    apply(&mut preset, set)?;
    Ok(preset)
}

/// Says why there is no such preset, and which one may be meant.
pub(crate) fn not_loaded(name: &str, error: &PresetError) -> String {
    let base = name.rsplit('/').next().unwrap_or(name);
    match (error, nearest(base, timing::preset::names(), 0.8)) {
        (PresetError::NotFound { .. }, Some(nearest)) => {
            format!("{error}; did you mean `{nearest}`?")
        }
        _ => error.to_string(),
    }
}

/// Applies `KEY=VALUE` overrides of `--set`, which an error names.
pub(crate) fn apply(preset: &mut Preset, set: &[String]) -> Result<(), BadInput> {
    apply_all(preset, set).map_err(|BadInput(error)| {
        let is_of = |assignment: &&String| {
            let key = assignment.split('=').next().unwrap_or_default();
            let key = key.strip_prefix("core.").unwrap_or(key);
            error.contains(&format!("`{key}`"))
        };
        match set.iter().rev().find(is_of) {
            Some(assignment) => BadInput(format!("--set {assignment}: {error}")),
            None if error.starts_with("--set") => BadInput(error),
            None => BadInput(format!("--set: {error}")),
        }
    })
}

fn apply_all(preset: &mut Preset, set: &[String]) -> Result<(), BadInput> {
    let pairs = set.iter().map(|assignment| {
        let (key, value) = assignment.split_once('=').ok_or_else(|| {
            BadInput(format!("--set {assignment}: expected KEY=VALUE, e.g. rob.entries=128"))
        })?;
        // The key may begin with `core.`, as in a run spec.
        Ok((key.strip_prefix("core.").unwrap_or(key), value))
    });
    let pairs = pairs.collect::<Result<Vec<_>, BadInput>>()?;
    preset.set_all(pairs).map_err(|e| {
        let error = e.to_string();
        // A preset says that its parameters were set by someone; a change of them here does, too.
        BadInput(error.strip_prefix("override: ").unwrap_or(&error).to_owned())
    })
}

/// Loads the preset that the `[core]` section of a spec names, with the parameters that the section sets.
pub(crate) fn of_spec(core: &crate::spec::Core) -> Result<Preset, BadInput> {
    let mut set = Vec::new();
    for (key, value) in &core.set {
        flatten(key, value, &mut set);
    }
    let name = &core.preset;
    // The error names the key, not a place in the spec, since an option may have set the key.
    let not_loaded = |e: PresetError| BadInput(format!("core.preset: {}", not_loaded(name, &e)));
    let mut preset = Preset::load(name).map_err(not_loaded)?;
    apply_all(&mut preset, &set).map_err(|BadInput(why)| BadInput(format!("core: {why}")))?;
    Ok(preset)
}

fn flatten(key: &str, value: &toml::Value, out: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) => {
            for (k, v) in table {
                flatten(&format!("{key}.{k}"), v, out);
            }
        }
        value => out.push(format!("{key}={value}")),
    }
}

/// `tipsim core list`, `events` and `show`.
pub(crate) fn core(command: &CoreCommand) -> anyhow::Result<()> {
    match command {
        CoreCommand::List { format } => {
            let presets = timing::preset::names()
                .map(|name| Preset::load(name).map(|p| p.describe()))
                .collect::<Result<Vec<_>, _>>()?;
            if *format == Format::Json {
                let list: Vec<_> =
                    presets.iter().map(|p| json!({"name": p.name, "summary": p.summary})).collect();
                say_json(&(serde_json::to_string_pretty(&list)? + "\n"));
            } else {
                for preset in presets {
                    println!("{:12} {}", preset.name, preset.summary);
                }
            }
        }
        CoreCommand::Events { format } => core_events::print(*format)?,
        CoreCommand::Show { preset, set, format } => {
            let preset = load(preset, set)?;
            let description = preset.describe();
            match format {
                CoreFormat::Text => print!("{description}"),
                CoreFormat::Json => {
                    say_json(&(serde_json::to_string_pretty(&description)? + "\n"));
                }
                CoreFormat::Svg => print!("{}", preset.picture()),
            }
        }
    }
    Ok(())
}
