"""Runs a matrix of run specs, on this machine or on a Slurm cluster, and puts the results beside each other (scripts/fleet)."""
