"""Libraries that Bazel links with JAX's macros, before and after the patch of `rocwheel jax patch`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.frameworks.bazel_workspace import NEEDS_BAZEL, ROOT, Workspace
from tests.support.command_line import rocwheel
from tests.support.jax_checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXTURES = ROOT / "tests/fixtures"
RPATH_FILE = "jaxlib/rocm/rocm_rpath.bzl"
EXTENSION, PLUGIN = "jaxlib/rocm/_solver.so", "jax_plugins/rocm/pjrt_c_api_gpu_plugin.so"
FOLDERS = [
    "_rocm_sdk_libraries/lib",
    "_rocm_sdk_core/lib",
    "_rocm_sdk_core/lib/rocm_sysdeps/lib",
    "_rocm_sdk_core/lib/host-math/lib",
    "_rocm_sdk_core/lib/llvm/lib",
]
ENTRIES_BEFORE = 79 if CHECKOUT in os.environ else 17
"""The number of entries that every library has. JAX's own file adds 79."""

pytestmark = [
    pytest.mark.slow,
    *NEEDS_BAZEL,
    *(pytest.mark.skipif(shutil.which(tool) is None, reason=f"no {tool}") for tool in ("git", "readelf")),
]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Return a workspace with JAX's own file for run paths if there is a checkout, or with the stand-in."""
    folder = tmp_path_factory.mktemp("jax")
    source = shutil.copytree(FIXTURES / "jax_run_paths", folder / "source")
    shutil.copytree(FIXTURES / "jax_rules/third_party/bazel_skylib", source / "third_party/bazel_skylib")
    for name in ("rules_cc", "rules_java"):
        shutil.copytree(ROOT / "examples/bazel/third_party" / name, source / "third_party" / name)
    if CHECKOUT in os.environ:
        shutil.copy(Path(os.environ[CHECKOUT], RPATH_FILE), source / RPATH_FILE)
    written = rocwheel("jax", "bazelrc", "--output", "rocm.bazelrc", cwd=source)
    assert written.returncode == 0, written.stderr
    (source / ".bazelrc.user").write_text("import %workspace%/rocm.bazelrc\n")
    made = Workspace(source, folder / "bazel", folder)
    yield made
    made.bazel("shutdown")


def run_paths(workspace: Workspace, *options: str) -> dict[str, list[str]]:
    """Build both libraries and return their run paths, as ``readelf -d`` prints them."""
    workspace.build(*options, "//jaxlib/rocm:_solver.so", "//jax_plugins/rocm:pjrt_c_api_gpu_plugin.so")
    found = {}
    for name in (EXTENSION, PLUGIN):
        path = workspace.folder / "bazel-bin" / name
        printed = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
        match = re.search(r"\((?P<tag>RUNPATH|RPATH)\).*\[(?P<value>.*)\]", printed)
        assert match is None or match["tag"] == "RUNPATH"
        found[name] = match["value"].split(":") if match else []
    return found


def test_the_patch_keeps_the_entries_each_library_needs_to_load(workspace: Workspace, tmp_path: Path) -> None:
    before = run_paths(workspace, "--config=rocm_build")
    assert before[EXTENSION] == before[PLUGIN]
    assert len(before[EXTENSION]) == ENTRIES_BEFORE
    assert {"$ORIGIN/../_rocm_sdk_core/lib", "$ORIGIN/../../_rocm_sdk_core/lib"} <= set(before[EXTENSION])
    # The PJRT plugin also needs a library in rocm_sysdeps/lib, to which no entry leads.
    missing = "librocm_sysdeps_drm.so.2: cannot open shared object file: No such file or directory"
    assert load_errors(workspace, tmp_path / "before") == ["", missing]

    patch = workspace.rocwheel("jax", "patch", ".").stdout
    git = ["git", "apply", "-"]
    subprocess.run(git, cwd=workspace.folder, input=patch, text=True, check=True)
    assert run_paths(workspace, "--config=rocm_build") == {
        EXTENSION: [*(f"$ORIGIN/../{folder}" for folder in FOLDERS), "/opt/rocm/lib"],
        PLUGIN: [*(f"$ORIGIN/../../{folder}" for folder in FOLDERS), "/opt/rocm/lib"],
    }
    assert load_errors(workspace, tmp_path / "after") == ["", ""]
    assert run_paths(workspace) == {EXTENSION: [], PLUGIN: []}


def load_errors(workspace: Workspace, site: Path) -> list[str]:
    """Install both libraries and the libraries that they need, as pip does, and load each in a new process."""
    built = workspace.folder / "bazel-bin"
    files = {
        "jax_rocm7_plugin/_solver.so": EXTENSION,
        "jax_plugins/xla_rocm7/xla_rocm_plugin.so": PLUGIN,
        "_rocm_sdk_core/lib/libamdhip64.so.7": "stubs/libamdhip64.so.7",
        "_rocm_sdk_core/lib/rocm_sysdeps/lib/librocm_sysdeps_drm.so.2": "stubs/librocm_sysdeps_drm.so.2",
    }
    for path, source in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(built / source, site / path)
    errors = []
    for path in list(files)[:2]:
        load = ["python3", "-c", f"import ctypes; ctypes.CDLL({str(site / path)!r})"]
        loaded = subprocess.run(load, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})
        errors.append(loaded.stderr.rstrip().rpartition("OSError: ")[2])
    return errors
