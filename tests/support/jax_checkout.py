"""A checkout of JAX, for tests that compare with JAX's own files."""

from __future__ import annotations

CHECKOUT = "ROCWHEEL_JAX_CHECKOUT"
"""The variable with the folder of a checkout of JAX at the commit in ``jax_tree.toml``. Nothing downloads it."""
