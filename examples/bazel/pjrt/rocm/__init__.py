"""A PJRT plugin for JAX: it registers the library beside this file."""

import pathlib

import jax._src.xla_bridge as xla_bridge


def initialize():
    library = pathlib.Path(__file__).with_name("xla_rocm_plugin.so")
    xla_bridge.register_plugin("rocm_example", priority=500, library_path=str(library))
