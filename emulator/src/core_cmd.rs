//! `tipsim core`.

use serde_json::json;
use timing::Preset;

use crate::cli::{CoreCommand, CoreFormat, Format};
use crate::core_events;
use crate::failure::BadInput;
use crate::terminal::say_json;

/// Loads a preset and applies `KEY=VALUE` overrides.
pub fn load(name: &str, set: &[String]) -> Result<Preset, BadInput> {
    let mut preset = Preset::load(name).map_err(|e| BadInput(e.to_string()))?;
    apply(&mut preset, set)?;
    Ok(preset)
}

/// Applies `KEY=VALUE` overrides.
pub fn apply(preset: &mut Preset, set: &[String]) -> Result<(), BadInput> {
    let pairs = set.iter().map(|assignment| {
        let (key, value) = assignment.split_once('=').ok_or_else(|| {
            BadInput(format!(
                "--set {assignment}: expected KEY=VALUE, e.g. rob.entries=128"
            ))
        })?;
        // As a spec calls it.
        Ok((key.strip_prefix("core.").unwrap_or(key), value))
    });
    let pairs = pairs.collect::<Result<Vec<_>, BadInput>>()?;
    preset.set_all(pairs).map_err(|e| BadInput(e.to_string()))
}

/// The `[core]` section of a spec.
pub fn of_spec(core: &crate::spec::Core) -> Result<Preset, BadInput> {
    let mut set = Vec::new();
    for (key, value) in &core.set {
        flatten(key, value, &mut set);
    }
    load(&core.preset, &set)
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
pub fn core(command: &CoreCommand) -> anyhow::Result<()> {
    match command {
        CoreCommand::List { format } => {
            let presets = timing::preset::names()
                .map(|name| Preset::load(name).map(|p| p.describe()))
                .collect::<Result<Vec<_>, _>>()?;
            if *format == Format::Json {
                let list: Vec<_> = presets
                    .iter()
                    .map(|p| json!({"name": p.name, "summary": p.summary}))
                    .collect();
                say_json(&(serde_json::to_string_pretty(&list)? + "\n"));
            } else {
                for preset in presets {
                    println!("{:12} {}", preset.name, preset.summary);
                }
            }
        }
        CoreCommand::Events { format } => core_events::print(*format)?,
        CoreCommand::Show {
            preset,
            set,
            format,
        } => {
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
