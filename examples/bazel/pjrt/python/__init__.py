"""A PJRT plugin for JAX: it registers the library beside this file."""

import pathlib

from jax._src import xla_bridge


def initialize():
    """Register the plugin; JAX calls this when it finds the module."""
    library = pathlib.Path(__file__).with_name("xla_rocm_plugin.so")
    xla_bridge.register_plugin("rocm_example", priority=500, library_path=str(library))
