"""Console scripts on Windows, in Wine: the launchers that installers write, and the command lines that ours start.

There is no Python for Windows here. So a launcher starts a program that shows its arguments in the place of Python, and
what `WindowsStarter` would start Python's way is started with the command line that Python makes of it.
"""

from __future__ import annotations

import io
import subprocess
import sysconfig
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.sdk.rocm_sdk_core._start import WindowsStarter
from tests.support.places import ROOT
from tests.support.wine import windows_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.wine import Compiler, Wine

pytestmark = pytest.mark.slow

PROGRAMS = ROOT / "tests/support/programs"
LAUNCHER = Path(sysconfig.get_path("purelib"), "installer/_scripts/t64.exe")
"""The launcher of distlib, which pip and installer have, and uv has one like it."""

AWKWARD = [
    "two words",
    'quo"te',
    "",
    "back\\",
    "two words\\",
    '\\"',
    "a\\\\b",
    "größe 日本",
    "%PATH%",
    "^&|<>",
    "-x=a b",
]


@pytest.fixture(scope="module")
def programs(compile_for_windows: Compiler, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a program that shows its arguments and one that starts it with any command line."""
    folder = tmp_path_factory.mktemp("Program Files")
    compile_for_windows.program(PROGRAMS / "show_arguments.c", folder / "python.exe", "-municode")
    for name in ("start_line", "wait_for_interrupt"):
        compile_for_windows.program(PROGRAMS / f"{name}.c", folder / f"{name}.exe")
    return folder


def write_script(path: Path, python: Path) -> Path:
    """Write a console script as installers write it: launcher, path of Python, archive with the entry point."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("__main__.py", "from rocm_sdk_core._cli import hipcc\nhipcc()\n")
    interpreter = f'#!"{windows_path(python)}"\r\n'
    path.parent.mkdir(parents=True)
    path.write_bytes(LAUNCHER.read_bytes() + interpreter.encode() + packed.getvalue())
    return path


def test_a_console_script_passes_awkward_arguments_and_returns_the_exit_code(
    wine: Wine, programs: Path, tmp_path: Path
) -> None:
    script = write_script(tmp_path / "an environment/Scripts/hipcc.exe", programs / "python.exe")
    done = wine.run(script, *AWKWARD, "37")
    _, _, _, called, *arguments = done.stdout.decode().splitlines()
    assert called == windows_path(script)
    assert (arguments, done.returncode) == ([*AWKWARD, "37"], 37)


def test_ctrl_c_is_left_to_python(wine: Wine, programs: Path, tmp_path: Path) -> None:
    script = write_script(tmp_path / "Scripts/hipcc.exe", programs / "wait_for_interrupt.exe")
    assert wine.interrupt(script, after="ready")[0] == 42


class Recorded(WindowsStarter):
    """Writes down what would be run."""

    def run(self, command: Sequence[str]) -> int:
        """Keep a command."""
        self.command = list(command)
        return 0


def start(wine: Wine, programs: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    """Have our console script start a program, by the command line that Python's `subprocess` makes on Windows."""
    starter, program = Recorded(), programs / "python.exe"
    with pytest.raises(SystemExit):
        starter.start(program, arguments)
    line = subprocess.list2cmdline(starter.command)
    return wine.run(programs / "start_line.exe", variables={"PROGRAM": windows_path(program), "LINE": line})


@pytest.mark.usefixtures("restored_interrupts")
def test_the_program_of_a_console_script_receives_awkward_arguments(wine: Wine, programs: Path) -> None:
    done = start(wine, programs, [*AWKWARD, "37"])
    assert (done.stdout.decode().splitlines()[3:], done.returncode) == ([*AWKWARD, "37"], 37)
