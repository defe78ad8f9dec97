"""Builds distributions from a plan on the machines of a cluster."""
