"""Writes a Makefile for developers, as a template of it does; a text of the project's own."""

import argparse
import os

RECIPES = r"""
# One GPU is enough for a developer.
GPUS ?= "$(shell rocminfo | grep -o -m 1 'gfx.*')"

DEBUG=--config=debug --copt=-O0

ALL_OPTIONS="--override_repository=xla=%(xla)s%(more)s"
JAX_OPTION="%(jax_option)s"

.PHONY: plugin pjrt

plugin:
	python3 ./build/build.py build \
            --use_clang=true \
            --wheels=jax-rocm-plugin \
            --target_cpu_features=native \
            --rocm_path=%(rocm)s \
            --rocm_version=%(major)s \
            --rocm_amdgpu_targets=${GPUS} \
            --bazel_options=${ALL_OPTIONS} \
            --bazel_options=${JAX_OPTION} \
            --verbose \
            --clang_path=%(clang)s

pjrt:
	@python3 ./build/build.py build --wheels=jax-rocm-pjrt --rocm_amdgpu_targets=${GPUS}

jaxlib:
	(cd %(jax)s && python3 ./build/build.py build \
            --wheels=jaxlib \
            --bazel_options=${ALL_OPTIONS} \
	)
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rocm", default="/opt/rocm")
    values = vars(parser.parse_args())
    with open(os.path.join("jax_rocm_plugin", "Makefile"), "w", encoding="utf-8") as file:
        file.write(RECIPES % values)
