//! `[run.sampling]`: what a plan of sampled simulation needs of the rest of a spec, and keys that would say nothing.

use simulation::{Mode, Region, Scheme};

use super::{Net, Spec};

impl Spec {
    /// Checks the plan of sampled simulation, and what it needs. The message goes on after the key's name.
    pub(super) fn check_sampling(&self) -> Result<(), String> {
        let Some(plan) = &self.run.sampling else { return Ok(()) };
        if let Some((field, expected, found)) = plan.fault() {
            return Err(format!(".{field}: expected {expected}, found {found}"));
        }
        if plan.has_passes() && self.guest.net != Net::None {
            return Err(
                ".units, .error and schemes that choose units: expected guest.net = \"none\" with them, as the program runs more than once"
                    .into(),
            );
        }
        if self.run.boot != Mode::Functional {
            return Err(": expected run.boot = \"functional\" with it, found \"timing\"".into());
        }
        if !self.run.region.is_marked() {
            return Err(
                ": expected run.region = \"command\" or \"marked\" with it, found \"run\"".into()
            );
        }
        if self.guest.program.is_some() && self.run.region != Region::Marked {
            return Err(
                ": expected run.region = \"marked\" with it and guest.program, which has no command; found \"command\"".into(),
            );
        }
        let found = self.guest.harts;
        if found > 1 && plan.store {
            return Err(format!(".store: expected guest.harts = 1 with it, found {found}"));
        }
        if found > 1 && plan.scheme == Scheme::Live {
            return Err(format!(
                ".scheme: expected guest.harts = 1 with \"live\", as the misses of one hart's caches tell phases; found {found}"
            ));
        }
        if found > 1 && (plan.surveys().is_some() || plan.points.is_some()) {
            return Err(format!(
                ".units, points and schemes that choose units: expected guest.harts = 1 with them, as one hart is surveyed; found {found}"
            ));
        }
        Ok(())
    }

    /// Returns the spec as a file, without the keys of a plan that others overrule.
    ///
    /// # Errors
    /// If the spec has what TOML has not.
    pub(crate) fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let mut table = toml::Table::try_from(self)?;
        let plan = table.get_mut("run").and_then(|run| run.get_mut("sampling"));
        if let (Some(plan), Some(table)) =
            (&self.run.sampling, plan.and_then(toml::Value::as_table_mut))
        {
            for (key, _) in plan.overruled() {
                table.remove(key);
            }
        }
        toml::to_string(&table)
    }

    /// Checks that a spec, whose keys the table has that somebody gave, gives none for the plan of sampled simulation that others overrule.
    pub(super) fn check_given(&self, table: &toml::Table) -> Result<(), String> {
        let given = table.get("run").and_then(|run| run.get("sampling"));
        let (Some(plan), Some(given)) = (&self.run.sampling, given) else { return Ok(()) };
        plan.overruled().into_iter().try_for_each(|(key, why)| match given.get(key) {
            Some(found) => Err(format!("run.sampling.{key}: expected none {why}; found {found}")),
            None => Ok(()),
        })
    }
}
