//! Sampling of the region of interest: phases change where the sampler says.

use commit_trace::Event;
use machine::Hart;

use super::Session;
use crate::cores::TimingCores;
use crate::engine::{BetweenUnits, KeptWarm, MAX_HARTS, Rest};
use crate::error::SimulationError;
use crate::sampling::{HartPosition, MachinePosition, Phase, Progress, SampledHarts, Sampler};

impl Session {
    /// Begins or ends a stretch of the region that is sampled, or begins the region anew.
    pub(super) fn sample_region(&mut self, event: &Event) -> Result<(), SimulationError> {
        if *event != Event::Region(true) {
            self.change_phase(Sampler::close)?;
        }
        if let (Event::RegionAnew, Some(sampler)) = (event, &mut self.sampler) {
            sampler.restart();
            self.sampled_harts.iter_mut().for_each(SampledHarts::restart);
        }
        match event {
            Event::Region(false) => Ok(()),
            _ => self.change_phase(Sampler::open),
        }
    }

    /// Goes on to the phase of sampling that is due, if one is.
    pub(super) fn sample(&mut self) -> Result<(), SimulationError> {
        let retired = self.system.harts.instructions();
        while self.sampler.as_ref().is_some_and(|sampler| sampler.is_to_decide(retired)) {
            let now = self.progress();
            self.sampler.iter_mut().for_each(|sampler| sampler.decide(now));
        }
        match &self.sampler {
            Some(sampler) if sampler.left(retired) == 0 => self.change_phase(Sampler::advance),
            _ => Ok(()),
        }
    }

    /// Changes the phase of sampling with `change`, which gets the progress of all harts, and lets the functional harts or the timing cores
    /// execute, as the new phase says. After the region has begun, caches are kept warm outside of its stretches, too.
    fn change_phase(
        &mut self,
        change: impl FnOnce(&mut Sampler, Progress),
    ) -> Result<(), SimulationError> {
        self.pass_sleep();
        let now = self.progress();
        let position = self.sampled_harts.is_some().then(|| self.machine_position());
        let Some(sampler) = &mut self.sampler else { return Ok(()) };
        let before = sampler.phase();
        change(sampler, now);
        let phase = sampler.phase();
        if let (Some(harts), Some(position)) = (&mut self.sampled_harts, position) {
            harts.change(before, phase, position);
        }
        let is_anew = phase == Phase::Unit && sampler.take_anew();
        if before == Phase::Unit {
            self.record_region(&Event::Region(false), self.position())?;
        }
        self.end_timed_stretch(before, phase);
        match phase {
            Phase::FastForward => self.rest_between_units(KeptWarm::Nothing),
            Phase::Outside | Phase::Warming => self.rest_between_units(KeptWarm::Caches),
            Phase::Learning => self.rest_between_units(KeptWarm::CachesAndPredictors),
            Phase::Reference | Phase::WarmUp => self.begin_timed_phase(before, phase),
            Phase::Unit => {
                self.begin_timed_phase(before, phase)?;
                self.weigh_unit();
                self.record_region(&Event::Region(true), self.position())?;
                match is_anew {
                    true => self.record_region(&Event::RegionAnew, self.position()),
                    false => Ok(()),
                }
            }
        }
    }

    /// Returns what all harts together have done.
    fn progress(&self) -> Progress {
        Progress {
            retired: self.system.harts.instructions(),
            cycles: self.awake_cycles(),
            misses: self.engine.cores().map(TimingCores::misses).unwrap_or_default(),
        }
    }

    /// Records the weight of the next unit, if it is not that of the last unit.
    fn weigh_unit(&mut self) {
        let Some(weight) = self.sampler.as_ref().map(Sampler::weight) else { return };
        if std::mem::replace(&mut self.weight, weight) != weight {
            if let Some(cores) = self.engine.cores_mut() {
                cores.weigh(weight);
            }
            self.counts.weigh(weight);
        }
    }

    /// Lets the timing cores execute from now on. Forks the core at the begin of a timed stretch of which more is to be found than its cycles.
    fn begin_timed_phase(&mut self, before: Phase, phase: Phase) -> Result<(), SimulationError> {
        self.timing()?;
        let asks_for_misses = self.sampler.as_ref().is_some_and(Sampler::asks_for_misses);
        let Some(cores) = self.engine.cores_mut() else { return Ok(()) };
        match before {
            Phase::Reference | Phase::WarmUp => cores.mark_phase(phase),
            _ if asks_for_misses || phase == Phase::Reference => cores.fork(phase),
            _ => {}
        }
        Ok(())
    }

    /// Ends a timed stretch, if one has ended with a change of phases, and takes what was found of it beside its cycles.
    fn end_timed_stretch(&mut self, before: Phase, phase: Phase) {
        let (Some(sampler), Some(cores)) = (&mut self.sampler, self.engine.cores_mut()) else {
            return;
        };
        let was_timed = matches!(before, Phase::Reference | Phase::WarmUp | Phase::Unit);
        if before == Phase::Unit || was_timed && phase == Phase::Outside {
            // A unit that a stretch of the region cuts is not timed twice.
            let is_whole = before == Phase::Unit && phase != Phase::Outside;
            let found = cores.end_fork(sampler.plan(), is_whole);
            if let Some(cycles) = found.cycles {
                sampler.checked(cycles);
            }
            sampler.missed(found.misses);
        }
    }

    /// Ends the sampling of the region. What was recorded before the region began anew is dropped, even if there was no unit since.
    pub(super) fn end_sampling(&mut self) -> Result<(), SimulationError> {
        if self.sampler.as_ref().is_some_and(|sampler| sampler.phase() != Phase::Outside) {
            self.sample_region(&Event::Region(false))?;
        }
        if self.sampler.as_mut().is_some_and(Sampler::take_anew) {
            for event in [Event::Region(true), Event::RegionAnew, Event::Region(false)] {
                self.record_region(&event, self.position())?;
            }
        }
        Ok(())
    }

    /// Lets the functional hart execute from now on, and keep the timing core warm as far as `kept_warm` says.
    fn rest_between_units(&mut self, kept_warm: KeptWarm) -> Result<(), SimulationError> {
        self.laps.lap(&self.system, self.engine.is_timing());
        if self.engine.cores().is_none() {
            self.start_cores()?;
        }
        let rates = match (&self.sampled_harts, &self.sampler) {
            (Some(harts), _) => harts.rates(kept_warm),
            (None, Some(sampler)) => [sampler.rate(); MAX_HARTS],
            (None, None) => [1 << 16; MAX_HARTS],
        };
        self.engine.rest(Rest::BetweenUnits(BetweenUnits { rates, kept_warm }));
        Ok(())
    }

    /// Tells the timing cores of sleeping harts how much time has passed, if there are several harts, so that the sleep counts in the phase in which
    /// it happened.
    fn pass_sleep(&mut self) {
        if self.sampled_harts.is_none() || !self.engine.is_timing() {
            return;
        }
        let harts = &mut self.system.harts;
        let awake = harts.iter().filter(|hart| !hart.is_asleep()).map(Hart::cycle).min();
        let cycle = awake.unwrap_or_else(|| harts.latest_cycle());
        if let Some(cores) = self.engine.cores_mut() {
            cores.pass_sleep(&mut harts.all(), cycle);
        }
    }

    /// Returns how far several harts have come.
    fn machine_position(&self) -> MachinePosition {
        let stats = self.stats();
        let harts = self.system.harts.iter().enumerate().map(|(number, hart)| HartPosition {
            instructions: hart.instructions(),
            awake: stats.get(number).map_or(0, |stats| stats.cycles - stats.cycles_idle),
            waited: self.engine.cores().map_or(0, |cores| cores.waited_between_units(number)),
        });
        MachinePosition {
            harts: harts.collect(),
            cycle: self.system.harts.latest_cycle(),
            slept: self.engine.cores().map_or(0, TimingCores::slept_between_units),
        }
    }
}
