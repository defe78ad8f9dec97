"""Inputs that something else writes to: a message that names the file, status 1, and nothing under a final name."""

from __future__ import annotations

import os
import shutil
import zipfile
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.transfer import extract_archives
from rocwheel.demo import SAMPLE_SDK
from tests.support.changing_files import CHANGES, changed_at_read, kept_changing
from tests.support.command_line import rocwheel
from tests.support.libraries import needs_compiler
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

MIB = 1 << 20


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    """Return artifacts in folders, one of which has a file of 20 MiB."""
    folder = tmp_path / "artifacts"
    extract_archives(sorted(SAMPLE_SDK.glob("*.tar.xz")), folder)
    return folder


@pytest.fixture
def data(artifacts: Path) -> Path:
    stage = next(path for path in sorted(artifacts.glob("core-hip_lib_generic/**/lib")) if path.is_dir())
    path = stage / "data.bin"
    path.write_bytes(os.urandom(1 * MIB) * 20)
    return path


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def check(status: int, message: str, path: Path) -> None:
    assert status == 1, message
    assert f"{path}: " in message
    assert "while it was being read" in message
    assert "Traceback" not in message


@pytest.mark.deep
@pytest.mark.parametrize("after", [1, 3, 5])
@pytest.mark.parametrize("way", CHANGES)
def test_build_refuses_a_file_that_changes_while_it_is_packed(
    run: Run, artifacts: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, after: int
) -> None:
    reads = changed_at_read(monkeypatch, data, CHANGES[way], after=after)
    done = run("build", "--artifact-dir", artifacts, "--dest-dir", tmp_path / "out", "--quiet")
    check(done.status, done.stderr, data)
    assert len(reads) >= after
    for wheel in (tmp_path / "out").rglob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            assert archive.testzip() is None
    assert not [name for name in files_in(tmp_path / "out") if name.startswith(".")]


@pytest.mark.parametrize("way", CHANGES)
def test_archive_refuses_a_file_that_changes(
    run: Run, artifacts: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    changed_at_read(monkeypatch, data, CHANGES[way])
    arguments = ("artifacts", "archive", artifacts, "core-hip_lib_generic", "--output", tmp_path / "out", "-q")
    done = run(*arguments)
    check(done.status, done.stderr, data)
    assert files_in(tmp_path / "out") == []


@pytest.mark.deep
@pytest.mark.parametrize("after", [1, 3, 5])
@pytest.mark.parametrize("way", CHANGES)
def test_promote_refuses_a_candidate_that_changes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, after: int
) -> None:
    make_wheel(tmp_path / "in", "other", {"other/data.bin": b"x"}, version="1.0rc1")
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/data.bin": os.urandom(20 * MIB)}, version="1.0rc1")
    reads = changed_at_read(monkeypatch, wheel, CHANGES[way], after=after)
    done = run("promote", tmp_path / "in", "--to", "1.0", "--output", tmp_path / "out", "--quiet")
    assert len(reads) >= after
    assert done.status in {1, 2}
    assert f"{wheel}" in done.stderr
    assert "Traceback" not in done.stderr
    assert files_in(tmp_path / "out") == []


EDITS = {
    "compress": ("device", "compress"),
    "prune": ("device", "prune", "--targets", "gfx906"),
    "retarget": ("device", "retarget", "gfx1030=gfx1031", "--compress"),
}


@pytest.mark.deep
@pytest.mark.parametrize("way", CHANGES)
@pytest.mark.parametrize("place", ["elsewhere", "in place"])
@pytest.mark.parametrize("command", EDITS)
def test_device_edits_refuse_a_file_that_changes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, place: str, way: str
) -> None:
    library = tmp_path / "in" / "libtwo.so"
    library.parent.mkdir()
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", library)
    monkeypatch.setattr("rocwheel.core.reading._READ_WHOLE", 0)
    monkeypatch.setattr("rocwheel.core.reading._BLOCK", 4096)
    last = len(_reads_of(run, library, tmp_path, monkeypatch, command))
    changed_at_read(monkeypatch, library, CHANGES[way], after=last - 1)
    changed = {"overwritten": 46592, "truncated": 23296, "replaced": 46592}[way]
    output = library if place == "in place" else tmp_path / "out.so"
    done = run(*EDITS[command], library, "-o", output, "-q")
    check(done.status, done.stderr, library)
    assert library.stat().st_size == changed
    assert files_in(tmp_path) == ["libtwo.so", "probe.so"]


def _reads_of(run: Run, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> list[int]:
    with monkeypatch.context() as patched:
        reads = changed_at_read(patched, library, CHANGES["overwritten"], after=0)
        assert run(*EDITS[command], library, "-o", tmp_path / "probe.so", "-q").status == 0
    return reads


@needs_compiler
@pytest.mark.parametrize("way", CHANGES)
def test_repair_refuses_a_wheel_that_changes(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    arguments = ("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out", "-q")
    with monkeypatch.context() as patched:
        reads = changed_at_read(patched, plugin_wheel, CHANGES["overwritten"], after=0)
        assert run(*arguments).status == 0
    shutil.rmtree(tmp_path / "out")
    changed_at_read(monkeypatch, plugin_wheel, CHANGES[way], after=len(reads) - 1)
    done = run(*arguments)
    check(done.status, done.stderr, plugin_wheel)
    assert files_in(tmp_path / "out") == []


@needs_compiler
def test_runpath_set_refuses_a_file_that_changes(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "libtwo.so"
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", library)
    monkeypatch.setattr("rocwheel.core.reading._READ_WHOLE", 0)
    changed_at_read(monkeypatch, library, CHANGES["overwritten"], after=2)
    done = run("runpath", "set", "$ORIGIN", library, "--output", tmp_path / "out")
    check(done.status, done.stderr, library)
    assert files_in(tmp_path) == ["libtwo.so"]


@pytest.fixture
def large(artifacts: Path, data: Path) -> Iterator[Path]:
    """Return the file, now of 200 MiB; one that large is packed in blocks."""
    with data.open("wb") as file:
        for _ in range(200):
            file.write(os.urandom(MIB // 4) * 4)
    yield data
    data.unlink()


@pytest.mark.parametrize("way", ["overwritten", "truncated"])
@pytest.mark.parametrize("command", ["build", "archive"])
def test_a_file_that_is_written_continuously_is_detected(
    artifacts: Path, large: Path, tmp_path: Path, command: str, way: str
) -> None:
    output = tmp_path / "out"
    arguments = {
        "build": ("build", "--artifact-dir", artifacts, "--dest-dir", output),
        "archive": ("artifacts", "archive", artifacts, "core-hip_lib_generic", "--output", output),
    }[command]
    with kept_changing(large, way):
        done = rocwheel(*arguments, "--quiet")
    check(done.returncode, done.stderr, large)
    assert not [name for name in files_in(output) if name.startswith(".")]
