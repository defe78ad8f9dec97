"""Which commands say how far they are: all that can take longer than two seconds."""

from __future__ import annotations

import inspect
import re
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.cli import progress
from rocwheel.demo import SAMPLE_SDK
from rocwheel.index.write_index import write_index
from tests.support.commands import COMMANDS
from tests.support.places import ROOT
from tests.support.two_versions import make_two_versions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

PROGRESS = {
    "artifacts archive",
    "artifacts extract",
    "artifacts fetch",
    "artifacts import",
    "artifacts list",
    "artifacts merge",
    "attest",
    "audit",
    "build",
    "cache info",
    "demo",
    "device bundle",
    "device compress",
    "device extract",
    "device join",
    "device list",
    "device prune",
    "device retarget",
    "device split",
    "diff",
    "index",
    "index mirror",
    "index yank",
    "inspect",
    "jax wheel",
    "jax wheel-binary",
    "lock",
    "promote",
    "publish",
    "repair",
    "report",
    "runpath for",
    "runpath set",
    "runpath show",
    "targets coherent",
    "targets runs-on",
    "verify",
    "wheel",
}
"""Commands that may take longer than two seconds."""
LINES = {
    "artifacts list SAMPLE": ["reading artifacts"],
    "audit DIST": ["reading rocm_sdk_core-"],
    "build --artifact-dir SAMPLE --dest-dir OUT": ["reading artifacts", "building"],
    "cache info --verify": ["reading the cache"],
    "device bundle CODE --output OUT": ["bundling"],
    "device extract WHEEL --output OUT": ["extracting"],
    "device list DIST": ["reading device code"],
    "device list --kernels DIST": ["reading"],
    "diff OLDER NEWER": ["comparing"],
    "index mirror INDEX --project rocm* --output OUT": ["reading the index", "fetching"],
    "inspect --deep DIST": ["inspecting"],
    "build --dry-run SAMPLE": ["reading artifacts"],
    "promote DIST --to 7.0.1 --output OUT": ["promoting"],
    "repair DIST --output OUT": ["reading rocm_sdk_core-"],
    "runpath for PROGRAM --at site-packages/demo/ --with rocm-sdk-core": ["reading packages"],
    "runpath set $ORIGIN PROGRAM --output OUT": ["writing"],
    "runpath show DIST": ["reading"],
    "targets coherent DIST": ["reading"],
    "targets runs-on gfx906 DIST": ["reading device code"],
}
"""Command lines, and some of the steps that they show."""
QUICK = {
    "about",
    "cache prune",
    "jax bazelrc",
    "jax commands",
    "jax migrate",
    "jax patch",
    "jax starlark",
    "jax translate",
    "jax wheel-targets",
    "selector merge",
    "targets detect",
    "targets flags",
    "targets list",
    "torch init",
    "torch requirements",
    "torch runpath",
}
"""Those that read no more than metadata, tables, sources or the machine."""


def test_every_command_has_progress_or_is_quick() -> None:
    assert sorted([*PROGRESS, *QUICK]) == sorted(COMMANDS)


def test_each_command_module_passes_progress_to_the_work() -> None:
    modules = {name: inspect.getsource(sys.modules[COMMANDS[name].callback.__module__]) for name in sorted(PROGRESS)}
    given = ("out.progress", "assembly.run(", "make_progress(", "rewriting.progress", "self.progress", "how.progress")
    assert [name for name, text in modules.items() if not any(words in text for words in given)] == []


@pytest.fixture(scope="module")
def places(sample_dist: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what stands for the words in capitals."""
    folder = tmp_path_factory.mktemp("progress")
    older, newer = make_two_versions(folder)
    shutil.copytree(sample_dist, folder / "dist")
    write_index(folder / "dist", folder / "simple")
    elf = ROOT / "tests/fixtures/elf"
    found: dict[str, object] = {"SAMPLE": SAMPLE_SDK, "DIST": sample_dist, "OLDER": older, "NEWER": newer}
    found |= {"PROGRAM": elf / "program-lld", "CODE": elf / "gfx906.co", "INDEX": (folder / "simple").as_uri()}
    found |= {"WHEEL": next(sample_dist.glob("rocm_sdk_device_gfx906-*.whl"))}
    return {name: str(path) for name, path in found.items()}


@pytest.mark.parametrize("line", LINES)
def test_a_command_reports_its_steps_unless_quiet(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, places: dict[str, str], line: str
) -> None:
    (tmp_path / "quiet").mkdir()
    begun: list[str] = []
    monkeypatch.setattr(progress._Delayed, "begin", lambda _, label, __: begun.append(label))
    named = places | {"OUT": str(tmp_path / "out")}
    words = [re.sub("[A-Z]{3,}", lambda found: named.get(found[0], found[0]), word) for word in line.split()]
    finished = run(*words)
    assert finished.status in {0, 1}, finished.stderr
    assert [label for label in LINES[line] if not any(one.startswith(label) for one in begun)] == [], begun
    begun.clear()
    run(*(word.replace(str(tmp_path), f"{tmp_path}/quiet") for word in words), "--quiet")
    assert begun == []
