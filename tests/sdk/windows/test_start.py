"""Console scripts on Windows: which program they run, with which words, and how they end."""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.sdk.rocm_sdk_core._start import PosixStarter, WindowsStarter, end_together
from tests.sdk.sets import SDK, render_literals

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import ModuleType

    from tests.support.wine import Compiler

pytestmark = pytest.mark.usefixtures("restored_interrupts")

AWKWARD = ["two words", "", 'a "quoted" word', "back\\slash\\", "blank and slash \\", '\\"', "ä", "*"]


class Starter(WindowsStarter):
    """Runs nothing, and ends with a code that was given."""

    def __init__(self, code: int = 0) -> None:
        self.code = code
        self.command: list[str] = []

    def run(self, command: Sequence[str]) -> int:
        """Write a command down."""
        self.command = list(command)
        return self.code


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the entry points of a core with ``hipcc.exe``, and of one that its package lacks."""
    rows = {
        name: {"path": f"bin/{path}", "expands": False} for name, path in {"hipcc": "hipcc.exe", "gone": "x"}.items()
    }
    info = {
        "PLATFORM_MODULE": "_rocm_sdk_core",
        "DEVEL_MODULE": "",
        "DEVEL_PACKAGE": "",
        "SDK_MODULE": "",
        "SCRIPTS": rows,
    }
    package = tmp_path / "rocm_sdk_core"
    package.mkdir()
    for name in ("__init__", "_cli", "_start"):
        (package / f"{name}.py").write_bytes((SDK / f"rocm_sdk_core/{name}.py").read_bytes())
    (package / "_build_info.py").write_bytes(render_literals(info))
    (tmp_path / "_rocm_sdk_core/bin").mkdir(parents=True)
    (tmp_path / "_rocm_sdk_core/bin/hipcc.exe").touch()
    for name in [name for name in sys.modules if name.partition(".")[0] == "rocm_sdk_core"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module("rocm_sdk_core._cli")


def run(scripts: ModuleType, name: str, starter: Starter, monkeypatch: pytest.MonkeyPatch, *words: str) -> object:
    monkeypatch.setattr(scripts, "this_starter", lambda: starter)
    monkeypatch.setattr(sys, "argv", [name, *words])
    with pytest.raises(SystemExit) as ended:
        getattr(scripts, name)()
    return ended.value.code


def test_a_script_runs_the_program_of_its_package_with_unchanged_arguments(
    scripts: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starter = Starter()
    assert run(scripts, "hipcc", starter, monkeypatch, *AWKWARD) == 0
    assert starter.command == [str(tmp_path / "_rocm_sdk_core/bin/hipcc.exe"), *AWKWARD]


def test_a_program_missing_from_its_package_is_reported(
    scripts: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"gone: {tmp_path}/_rocm_sdk_core/bin/x is missing. Reinstall the package."
    assert run(scripts, "gone", Starter(), monkeypatch) == text


@pytest.mark.parametrize(
    ("code", "passed_on"),
    [
        (0, 0),
        (42, 42),
        (259, 259),
        (65536, 65536),
        (0xC0000005, -1073741819),
        (0xFFFFFFFF, -1),
        (0xC000013A, -1073741510),
    ],
)
def test_the_complete_exit_code_of_the_program_is_returned(code: int, passed_on: int, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        Starter(code).start(tmp_path / "x.exe", [])
    assert ended.value.code == passed_on
    assert passed_on & 0xFFFFFFFF == code


def test_ctrl_c_is_left_to_the_program(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        Starter().start(tmp_path / "x.exe", [])
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.parametrize(("name", "found"), [("hipcc", "hipcc.exe"), ("hipcc.exe", "hipcc.exe"), ("X.EXE", "X.EXE")])
def test_programs_end_with_exe(name: str, found: str, tmp_path: Path) -> None:
    assert WindowsStarter().spellings(tmp_path / name) == [tmp_path / found]
    assert PosixStarter().spellings(tmp_path / name) == [tmp_path / name]


@pytest.mark.slow
def test_the_windows_starter_avoids_importing_subprocess() -> None:
    code = f"import sys; sys.path.append({str(SDK)!r}); from rocm_sdk_core._start import this_starter; this_starter()"
    shown = f"{code}; print('subprocess' in sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", shown], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.slow
def test_the_process_waits_for_its_program() -> None:
    # Given the starter of Windows, which runs programs in the same way here
    code = "import time, sys; time.sleep(0.2); print('done', *sys.argv[1:]); sys.exit(7)"
    starter = (
        "import sys; from pathlib import Path; from rocwheel.sdk.rocm_sdk_core._start import WindowsStarter as W; "
    )
    words = f"W.bind = lambda *_: None; W().start(Path(sys.executable), ['-c', {code!r}, 'a b', ''])"
    done = subprocess.run([sys.executable, "-c", starter + words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "done a b \n")


class Kernel:
    """The functions of jobs, of which those in ``failing`` fail."""

    def __init__(self, *failing: str) -> None:
        self.failing = failing
        self.called: list[str] = []
        self.limits = b""

    def _call(self, name: str) -> int:
        self.called.append(name)
        return 0 if name in self.failing else 77

    def CreateJobObjectW(self, security: None, name: None) -> int:  # noqa: ARG002, N802
        """Make a job."""
        return self._call("create")

    def SetInformationJobObject(self, job: int, kind: int, limits: Any, size: int) -> int:  # noqa: N802
        """Keep the limits of a job."""
        assert (job, kind, size) == (77, 9, 144)
        self.limits = bytes(limits)
        return self._call("limit")

    def AssignProcessToJobObject(self, job: int, process: int) -> int:  # noqa: N802
        """Put a process into a job."""
        assert (job, process) == (77, 5)
        return self._call("assign")


def test_the_program_ends_if_the_script_is_killed() -> None:
    kernel = Kernel()
    assert end_together(5, kernel)
    assert kernel.called == ["create", "limit", "assign"]
    assert kernel.limits == bytes(16) + b"\x00\x30\x00\x00" + bytes(124)


@pytest.mark.parametrize(
    ("failing", "called"),
    [("create", ["create"]), ("limit", ["create", "limit"]), ("assign", ["create", "limit", "assign"])],
)
def test_the_program_continues_if_windows_refuses_a_job(failing: str, called: list[str]) -> None:
    kernel = Kernel(failing)
    assert not end_together(5, kernel)
    assert kernel.called == called


LAYOUT = """
#include <stddef.h>
#include <windows.h>
_Static_assert(sizeof(JOBOBJECT_EXTENDED_LIMIT_INFORMATION) == 144, "size");
_Static_assert(offsetof(JOBOBJECT_EXTENDED_LIMIT_INFORMATION, BasicLimitInformation.LimitFlags) == 16, "flags");
_Static_assert(JobObjectExtendedLimitInformation == 9, "kind");
_Static_assert((JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK) == 0x3000, "limits");
int main(void) { return 0; }
"""


@pytest.mark.slow
def test_the_layout_of_the_job_limits_matches_the_windows_headers(
    compile_for_windows: Compiler, tmp_path: Path
) -> None:
    (tmp_path / "layout.c").write_text(LAYOUT)
    assert compile_for_windows.program(tmp_path / "layout.c", tmp_path / "layout.exe").exists()
