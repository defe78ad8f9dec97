"""Inputs and descriptions of small wheels."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

from rocwheel.frameworks.jax.starlark import JaxWheel, jax_wheel_description
from rocwheel.frameworks.wheel import WheelBuild, WheelJob, WheelReport

if TYPE_CHECKING:
    from pathlib import Path

    from tests.frameworks.conftest import Compile

HIP = "_rocm_sdk_core/lib/libamdhip64.so.7"
PJRT_SOURCE = "int hipGetDeviceCount(int *); int GetPjrtApi(void) { int n; return hipGetDeviceCount(&n); }"
MODULE_SOURCE = "int hipGetDeviceCount(int *); int PyInit_{name}(void) {{ int n; return hipGetDeviceCount(&n); }}"
RIGHT = "-Wl,-rpath,$ORIGIN/../../_rocm_sdk_core/lib"
MODULES = ("_hybrid", "_linalg", "_prng", "_rnn", "_solver", "_sparse", "_triton", "rocm_plugin_extension")
COMMITS = {"ROCm/rocm-jax": "0123456789abcdef0123456789abcdef01234567"}


def make_outputs(folder: Path, compile_library: Compile, hip: Path, *options: str) -> Path:
    """Make what a Bazel build of JAX leaves, small: the PJRT plugin, the extension modules, and the sources' files."""
    compile_library(folder / "pjrt/pjrt_c_api_gpu_plugin.so", PJRT_SOURCE, str(hip), *(options or (RIGHT,)))
    for name in MODULES:
        run_path = "-Wl,-rpath,$ORIGIN/../_rocm_sdk_core/lib"
        compile_library(folder / f"rocm/{name}.so", MODULE_SOURCE.format(name=name), str(hip), run_path)
    (folder / "pjrt/python").mkdir()
    (folder / "pjrt/python/__init__.py").write_text("def initialize():\n    pass\n")
    (folder / "LICENSE").write_text("Apache License\n")
    return folder


def jax_job(
    kind: JaxWheel,
    sources: Path,
    dest: Path,
    *companions: Path,
    description: dict[str, Any] | None = None,
    **build: Any,
) -> WheelJob:
    """Return the job of one of JAX's wheels, version 0.12.0."""
    options = WheelBuild(sources=(sources,), companions=companions, commits=COMMITS, **build)
    values = {"rocm": "7", "version": "0.12.0"}
    return WheelJob(kind, description or jax_wheel_description(kind), values, options, dest)


def run_job(kind: JaxWheel, sources: Path, dest: Path, *companions: Path, **options: Any) -> WheelReport:
    """Make one of JAX's wheels."""
    return jax_job(kind, sources, dest, *companions, **options).run()


def changed(kind: JaxWheel, **fields: Any) -> dict[str, Any]:
    """Return the description of one of JAX's wheels with other fields."""
    return {**jax_wheel_description(kind), **fields}


def read_member(wheel: str, member: str) -> str:
    """Return the text of the member whose name ends in a certain way."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(member)]
        return archive.read(name).decode()
