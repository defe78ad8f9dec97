"""Calls of rocm-jax's build.py in the files that people have: Makefiles, scripts, workflows, Python."""
