"""Trials that load device code with an unmodified HIP on a machine without an AMD GPU."""
