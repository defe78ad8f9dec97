"""Checkouts of rocm-jax's kind, moved from build.py and patchelf to Bazel's own settings and rocwheel."""
