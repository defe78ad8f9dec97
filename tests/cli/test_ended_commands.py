"""Commands that end from outside, killed or interrupted: nothing half-made, and nothing that stays behind."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.kpack.archive import Scheme
from rocwheel.demo import SAMPLE_SDK
from tests.support.command_line import rocwheel
from tests.support.core_prefix import make_core_prefix
from tests.support.debs import write_deb
from tests.support.kpack_files import make_kpack
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

# What comes last before an output gets its name: it says so, and waits for the signal, and then for it to arrive.
_STOPPED = """
import os, pathlib, sys, time
passes, signalled = int(sys.argv[1]), os.dup(0)
def stop(*_, **__):
    global passes
    passes -= 1
    if passes < 0:
        print("stopped", flush=True)
        os.read(signalled, 1)
        time.sleep(0.3)
def stop_before(function):
    def stopping(*words):
        stop()
        return function(*words)  # in another thread than the one that is interrupted
    return stopping
os.fsync, pathlib.Path.rename = stop, stop_before(pathlib.Path.rename)
if not passes:  # a folder gets its name by this, and so does a file, right after its fsync
    pathlib.Path.replace = stop_before(pathlib.Path.replace)
sys.argv = ["rocwheel", *sys.argv[2:]]
from rocwheel.cli import main
main()
"""

COMMANDS = [
    "archive",
    "build",
    "compress",
    "compress kpack",
    "extract",
    "extract code",
    "from-deb",
    "from-prefix",
    "extract kernels",
    "index",
    "join",
    "join wheel",
    "merge",
    "promote",
    "prune",
    "repair",
    "retarget",
    "split",
    "split wheel",
]


_LIBRARY = FIXTURES / "v22/libtwo.plain.so"


def make_tree(folder: Path) -> Path:
    """Make a folder with a fat library."""
    (folder / "in").mkdir(exist_ok=True)
    shutil.copy(_LIBRARY, folder / "in")
    return folder / "in"


def make_archive(folder: Path) -> None:
    """Make an archive whose code is not compressed."""
    kernels = {("lib/libx.so", 0, "gfx906"): (FIXTURES / "elf/gfx906.co").read_bytes()}
    (folder / "x.kpack").write_bytes(make_kpack(kernels, scheme=Scheme.NONE))


def make_wheel_in(folder: Path) -> Path:
    """Make a wheel with a fat library."""
    return make_wheel(folder / "in", "demo", {"demo/libtwo.so": _LIBRARY})


def split_off(folder: Path, source: Path) -> None:
    """Split a folder or a wheel."""
    rocwheel("device", "split", source, "--output", folder / "parts")


def make_shards(folder: Path) -> None:
    """Make two builds with a host file, and a database for a GPU each."""
    for shard, target in (("a", "gfx906"), ("b", "gfx1030")):
        files = {"generic/stage/lib/librocblas.so": "host", f"{target}/stage/share/miopen/db/{target}.kdb": target}
        for path, text in files.items():
            place = folder / shard / f"blas_lib_{path}"
            place.parent.mkdir(parents=True)
            place.write_text(text)
            (folder / shard / f"blas_lib_{path.partition('/')[0]}" / "artifact_manifest.txt").write_text("stage\n")


INPUTS: dict[str, Callable[[Path], object]] = {
    "index": lambda folder: make_wheel(folder / "in", "demo", {"demo/__init__.py": b""}),
    "repair": lambda folder: make_wheel(folder / "in", "demo", {"demo/__init__.py": b""}),
    "promote": lambda folder: make_wheel(folder / "in", "demo", {"demo/__init__.py": b""}, version="1.0rc1"),
    "from-deb": lambda folder: write_deb(folder, "hipcc", {"./usr/bin/hipcc": b"program"}),
    "from-prefix": lambda folder: make_core_prefix(folder / "in", "7.14.0"),
    "compress kpack": make_archive,
    "extract kernels": make_archive,
    "prune": make_tree,
    "retarget": make_tree,
    "split": make_tree,
    "split wheel": make_wheel_in,
    "join": lambda folder: split_off(folder, make_tree(folder)),
    "join wheel": lambda folder: split_off(folder, make_wheel_in(folder)),
    "merge": make_shards,
}
"""What a command reads, if that is not at hand."""


def arguments(command: str, folder: Path) -> list[str | Path]:
    """Return a command line that writes to ``folder``/out; what it reads is made next to that."""
    INPUTS.get(command, bool)(folder)
    out, library = folder / "out", _LIBRARY
    lines: dict[str, list[str | Path]] = {
        "archive": ["artifacts", "archive", SAMPLE_SDK, "base_run_generic", "--output", out],
        "build": ["build", "--artifact-dir", SAMPLE_SDK, "--dest-dir", out],
        "compress": ["device", "compress", library, "-o", out / "lib.so"],
        "compress kpack": ["device", "compress", folder / "x.kpack", "-o", out / "x.kpack"],
        "extract kernels": ["device", "extract", folder / "x.kpack", "--output", out],
        "extract": ["artifacts", "extract", SAMPLE_SDK / "base_run_generic.tar.xz", "--output", out],
        "extract code": ["device", "extract", library, "--output", out],
        "from-deb": ["artifacts", "import", folder / "hipcc.deb", "--output", out],
        "from-prefix": ["artifacts", "import", folder / "in/core-7.14", "--output", out],
        "index": ["index", folder / "in", "--output", out],
        "join": ["device", "join", folder / "parts/host", folder / "parts/gfx906", "--output", out / "fat"],
        "join wheel": ["device", "join", *sorted((folder / "parts").glob("*.whl")), "--output", out],
        "merge": ["artifacts", "merge", folder / "a", folder / "b", "--primary", folder / "a", "-o", out / "all"],
        "promote": ["promote", folder / "in", "--to", "1.0", "--output", out],
        "prune": ["device", "prune", folder / "in", "--targets", "gfx906", "-o", out / "tree"],
        "retarget": ["device", "retarget", "gfx1030=gfx1031", folder / "in", "-o", out / "tree"],
        "repair": ["repair", *(folder / "in").glob("*.whl"), "--output", out],
        "split": ["device", "split", folder / "in", "--output", out / "parts"],
        "split wheel": ["device", "split", *(folder / "in").glob("*.whl"), "--output", out],
    }
    return lines[command]


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*") if path.name.endswith(".rocwheel")]


def end(number: signal.Signals, *words: str | Path, passes: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command until it is about to name its first output after ``passes`` others, and send it a signal then."""
    command = [sys.executable, "-c", _STOPPED, str(passes), *map(str, words), "--quiet"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "stopped\n"
        process.send_signal(number)
        _, messages = process.communicate(timeout=60)  # which closes the standard input
    return subprocess.CompletedProcess(command, process.returncode, "", messages)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_next_run_removes_the_leftovers_of_a_killed_run(tmp_path: Path, command: str) -> None:
    words = arguments(command, tmp_path)
    assert end(signal.SIGKILL, *words).returncode == -signal.SIGKILL
    assert hidden(tmp_path) != []
    again = rocwheel(*words, "--quiet")
    assert (again.returncode, again.stderr) == (0, "")
    assert hidden(tmp_path) == []
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_index_removes_leftovers_even_if_it_writes_nothing(tmp_path: Path) -> None:
    """When the wheel is gone whose page a killed run was about to write."""
    words = arguments("index", tmp_path)
    assert rocwheel(*words, "--quiet").returncode == 0
    other = make_wheel(tmp_path / "in", "other", {"other/__init__.py": b""})
    killed = end(signal.SIGKILL, *words, passes=2)
    assert killed.returncode == -signal.SIGKILL
    assert [path.parent.name for path in (tmp_path / "out").rglob(".*.rocwheel")] == ["other"]
    for path in (other, other.with_name(f"{other.name}.metadata")):
        path.unlink(missing_ok=True)
    assert rocwheel(*words, "--quiet").returncode == 0
    assert hidden(tmp_path) == []
    assert not (tmp_path / "out/other").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupted_command_leaves_no_temporary_files(tmp_path: Path, command: str) -> None:
    done = end(signal.SIGINT, *arguments(command, tmp_path))
    assert (done.returncode, done.stderr) == (130, "")
    assert hidden(tmp_path) == []


def limited(limit: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return rocwheel(*words, "--quiet", before=["sh", "-c", f'ulimit {limit} && exec "$@"', "sh"])


@pytest.mark.parametrize("kilobytes", [30_000, 60_000, 100_000, 120_000])
def test_insufficient_memory_is_reported_on_one_line(tmp_path: Path, kilobytes: int) -> None:
    done = limited(f"-v {kilobytes}", *arguments("build", tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert (done.stderr.count("\n"), "ulimit -v" in done.stderr) == (1, True)
    assert hidden(tmp_path) == []


def test_too_few_open_files_are_reported_with_a_remedy(tmp_path: Path) -> None:
    done = limited("-n 12", *arguments("build", tmp_path))
    assert done.returncode in {1, 2}
    assert "(Too many open files). Allow more open files, for example with 'ulimit -n 1024'." in done.stderr
    assert hidden(tmp_path) == []
