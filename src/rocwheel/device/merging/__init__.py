"""Artifacts of several builds, one per family of GPUs, as one set: host files once, device files of all."""
