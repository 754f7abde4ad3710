"""Tests of fleets, on this machine and on a Slurm cluster that lives as long as the test."""
