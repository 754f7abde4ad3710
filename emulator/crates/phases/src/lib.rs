//! Phases of a program: what it executes in each interval, and which intervals stand for all.
//!
//! A [`BlockCounter`] takes the path that a hart logs ([`isa::PathSegment`]) and counts, interval by interval, the instructions of each basic
//! block: the *basic-block vectors* of Sherwood et al. (*Basic Block Distribution Analysis*, PACT 2001). A [`Survey`] keeps of each vector a
//! random projection to some numbers, [`DIMENSIONS`] by default, as SimPoint does, which keeps distances (Sherwood et al., *Automatically Characterizing Large
//! Scale Program Behavior*, ASPLOS 2002). [`Phases`] are intervals that execute about the same; intervals that stand for all are chosen by [`ranked_set`],
//! [`representatives`] (SimPoint) and [`stratified`], or elsewhere ([`points`]).
//!
//! The crate knows nothing of simulated machines, and of a hart's path alone what the log says.

mod cluster;
mod count;
mod mean;
mod points;
mod ranked_set;
mod stratified;
mod survey;

pub use cluster::{MeanPages, Phase, Phases};
pub use count::{BlockCounter, PageAccess};
pub use mean::Random;
pub use points::{Point, PointsError, points};
pub use ranked_set::ranked_set;
pub use stratified::{ChosenInterval, ChosenIntervals, representatives, stratified};
pub use survey::{DIMENSIONS, IntervalPages, MOST_DIMENSIONS, Survey, Vector};
