"""What holds for all tests."""

from __future__ import annotations

import atexit
import gc
import logging
import os
import re
import shutil
import signal
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from rocwheel.cli import progress

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = [
    "tests.support.audited_wheels",
    "tests.support.command_line",
    "tests.support.dask_clusters",
    "tests.support.device_files",
    "tests.support.faulty_server",
    "tests.support.machines",
    "tests.support.repair_wheels",
    "tests.support.reply_server",
    "tests.support.s3_server",
    "tests.support.sample_sdk",
    "tests.support.tools",
    "tests.support.wine",
]

# Hundreds of tests start processes; each would compile all that it imports anew, for seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Collecting makes a million values that stay: every search for garbage, then and later, would go through them.
gc.disable()

# A deadline would make a busy machine fail a property that holds.
settings.register_profile("rocwheel", deadline=None, max_examples=50)
settings.load_profile("rocwheel")
# For make test-deep.
settings.register_profile("deep", deadline=None, max_examples=1000)

# On a busy machine, every command takes long enough to show its progress: what tests expect of standard error has none.
progress._LINES_AFTER = 3600.0

# What a shell runs in the background ignores interrupts, and its children do: interrupted commands would go on.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Nothing of a test goes into the cache of the user who runs it, or comes from there.
_CACHE = tempfile.mkdtemp(prefix="rocwheel-tests-")
atexit.register(shutil.rmtree, _CACHE, ignore_errors=True)
os.environ["ROCWHEEL_CACHE_DIR"] = f"{_CACHE}/shared"


@pytest.fixture(autouse=True)
def _own_cache() -> Iterator[None]:
    """Have a cache for each test: what others have packed is packed again, and folders are new to the process."""
    own = tempfile.mkdtemp(dir=_CACHE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROCWHEEL_CACHE_DIR", own)
        patch.setattr("rocwheel.core.scratch._visited", set())
        yield
    shutil.rmtree(own, ignore_errors=True)


@pytest.fixture(autouse=True)
def _same_folder() -> Iterator[None]:
    """Have a test fail that leaves the working directory changed: those after it would, once its folder is gone."""
    here = Path.cwd()
    yield
    there = Path.cwd()
    os.chdir(here)
    assert there == here


@pytest.fixture(autouse=True)
def _same_interrupts() -> Iterator[None]:
    """Have a test fail that leaves Ctrl-C ignored: whatever later tests start would ignore it, too."""
    before = signal.getsignal(signal.SIGINT)
    yield
    after = signal.signal(signal.SIGINT, before)
    assert after == before


@pytest.fixture(autouse=True)
def _same_log_level() -> Iterator[None]:
    """Have no command that was run with ``--quiet`` keep later tests from seeing what is logged."""
    root = logging.getLogger()
    before = root.level
    yield
    root.setLevel(before)


_DEEP = re.compile(
    r"kill|ended_commands|hostile|wine|browser|bazel|installers|^faults/|attacks|interrupts|uninstall"
    r"|link_flags|regression_prop|chains|_run\.py$|test_demo"
)
"""In names of test files: kills, hostile input, and tools that take long. `make test-deep` runs all of their cases."""
_STRIDE = 11
"""A prime: of cases that are made of two lists, those that are kept have each entry of both."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make test-deep`."""
    parser.addoption("--deep", action="store_true", help="run all cases of kills, hostile input and real tools")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep some cases of what `make test-deep` runs whole, unless cases are named one by one.

    These are slow tests of files by their names, and functions with the marker ``deep``: the first case of each, and
    each eleventh. Marked functions of one case count together, and so do files of one kind in one folder.
    """
    if config.getoption("--deep") or any("::" in one for one in config.args):
        return
    position: Counter[tuple[Path, str]] = Counter()
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        path = item.path.relative_to(Path(__file__).parent).as_posix()
        kind = _DEEP.search(path) if item.get_closest_marker("slow") else None
        is_deep = kind or item.get_closest_marker("deep")
        function, _, case = item.name.partition("[")
        whole = (item.path.parent, kind[0]) if kind else (item.path, function) if case else (Path(), "")
        (left if is_deep and position[whole] % _STRIDE else kept).append(item)
        position[whole] += 1
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def pytest_collection_finish() -> None:
    """Look for garbage from here on, in what tests make."""
    gc.collect()
    gc.freeze()
    gc.enable()
