"""What frameworks loaded, as the loader's own words (``LD_DEBUG=libs``) tell it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from scripts.framework_table import Told, absent_library, loaded_files, make_row, public_libraries, wants_gpu
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

SITE = "/env/lib/python3.14/site-packages"
TRACE = f"""\
      4242:\tfind library=libamdhip64.so.7 [0]; searching
      4242:\t search path={SITE}/jax_rocm7_plugin/../_rocm_sdk_core/lib\t\t(RUNPATH from file {SITE}/_prng.so)
      4242:\t  trying file={SITE}/jax_rocm7_plugin/../_rocm_sdk_core/lib/libamdhip64.so.7
      4242:\t
      4242:\tfind library=libgone.so.1 [0]; searching
      4242:\t  trying file=/usr/lib/x86_64-linux-gnu/libgone.so.1
      4242:\t
      4242:\tcalling init: /lib64/ld-linux-x86-64.so.2
      4242:\tcalling init: {SITE}/jax_rocm7_plugin/../_rocm_sdk_core/lib/libamdhip64.so.7
      4242:\tcalling init: {SITE}/jax_rocm7_plugin/_prng.so
      4243:\tcalling init: /lib64/ld-linux-x86-64.so.2
      4242:\tcalling fini: {SITE}/jax_rocm7_plugin/_prng.so [0]
""".splitlines()
PUBLIC = frozenset({"libamdhip64.so.7"})
STUCK = "RuntimeError: No visible GPU devices."


def test_each_file_that_the_loader_initializes_is_listed_once() -> None:
    assert list(loaded_files(TRACE)) == [
        "/lib64/ld-linux-x86-64.so.2",
        f"{SITE}/jax_rocm7_plugin/../_rocm_sdk_core/lib/libamdhip64.so.7",
        f"{SITE}/jax_rocm7_plugin/_prng.so",
    ]


def test_a_file_that_the_loader_only_tried_is_not_listed() -> None:
    assert not [path for path in loaded_files(TRACE) if path.endswith("libgone.so.1")]


def test_libraries_are_listed_by_package() -> None:
    row = make_row("jax", Told(("import jax",), (STUCK,)), TRACE, PUBLIC)
    assert row.packages == {"_rocm_sdk_core": ("libamdhip64.so.7",)}
    assert row.strays == ()
    assert row.is_expected


def test_a_packaged_library_loaded_from_the_system_is_a_fault() -> None:
    trace = ["  7:\tcalling init: /opt/rocm/lib/libamdhip64.so.7", "  7:\tcalling init: /usr/lib/libz.so.1"]
    row = make_row("jax", Told(("import jax",), (STUCK,)), trace, PUBLIC)
    assert row.strays == ("/opt/rocm/lib/libamdhip64.so.7",)
    assert not row.is_expected


GONE = "OSError: libgone.so.1: cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (Told(("import jax",), ()), True),
        (Told((), ()), False),
        (Told(("import jax",), ("ValueError: No AMD GPUs were found, skipping ROCm plugin initialization",)), True),
        (Told(("load it",), ("Error no ROCm-capable device is detected at line 99",)), True),
        (Told((), (GONE,)), True),
        (Told((), (GONE, "ModuleNotFoundError: No module named 'jax'")), False),
        (Told(("load it",), ("undefined symbol: hipFoo, version hip_4.2",)), False),
        (Told(("load it",), ("not at all: [RocmDevice(id=0)]",)), False),
    ],
)
def test_only_a_missing_gpu_or_library_may_stop_a_framework(told: Told, *, expected: bool) -> None:
    assert make_row("jax", told, TRACE, PUBLIC).is_expected is expected


def test_a_packaged_library_must_be_found() -> None:
    stopped = GONE.replace("libgone.so.1", "libamdhip64.so.7")
    row = make_row("jax", Told(("import jax",), (stopped,)), TRACE, PUBLIC)
    assert row.absent == ()
    assert row.faults == (stopped,)
    assert not row.is_expected


@pytest.mark.parametrize(
    ("stopped", "library"),
    [
        ("OSError: librocprofiler-sdk.so.1: cannot open shared object file: No such file", "librocprofiler-sdk.so.1"),
        ("_rnn: libMIOpen.so.1: cannot open shared object file: No such file or directory", "libMIOpen.so.1"),
        (STUCK, None),
    ],
)
def test_the_missing_library_is_read_from_the_loader_message(stopped: str, library: str | None) -> None:
    assert absent_library(stopped) == library


def test_a_hip_error_may_indicate_a_missing_gpu() -> None:
    assert wants_gpu("hipErrorNoDevice (0 devices)")
    assert not wants_gpu("hipErrorInvalidValue")


def test_public_libraries_are_those_directly_in_lib() -> None:
    members = [
        "_rocm_sdk_core/lib/libamdhip64.so.7",
        "_rocm_sdk_core/lib/rocm_sysdeps/lib/libz.so.1",
        "_rocm_sdk_core/lib/llvm/lib/libLLVM.so.22",
        "_rocm_sdk_core/bin/hipcc",
    ]
    assert public_libraries(members) == {"libamdhip64.so.7"}


@pytest.mark.slow
@pytest.mark.parametrize(("stopped", "status"), [(STUCK, 0), ("ImportError: something else", 1)])
def test_the_script_fails_if_something_else_stops_a_framework(tmp_path: Path, stopped: str, status: int) -> None:
    (tmp_path / "jax.json").write_text(json.dumps({"reached": ["import jax"], "stopped": [stopped]}))
    (tmp_path / "jax.libs").write_text("\n".join(TRACE))
    with ZipFile(tmp_path / "core.whl", "w") as wheel:
        wheel.writestr("_rocm_sdk_core/lib/libamdhip64.so.7", b"")
    arguments = [str(tmp_path), "--packages", str(tmp_path / "core.whl")]
    command = [sys.executable, "-m", "scripts.framework_table", *arguments]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == status, finished.stderr
    assert "_rocm_sdk_core: libamdhip64.so.7" in finished.stdout
