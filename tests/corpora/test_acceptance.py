"""Packages that rocwheel writes, as tools that are not all in every environment take them."""

from __future__ import annotations

import importlib.util
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel
from tests.support.places import ROOT
from tests.support.wheels import make_wheel
from trials.corpora.acceptance import TOOLS, ask, write_own
from trials.corpora.row import is_explained

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _only_tools_that_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for tool in ("wheel unpack", "check-wheel-contents", "twine check"):
        if shutil.which(tool.partition(" ")[0]) is None:
            monkeypatch.delitem(TOOLS, tool)
    monkeypatch.setattr("trials.corpora.acceptance._FOR_SDISTS", tuple(one for one in ("twine check",) if one in TOOLS))


def test_other_tools_accept_a_sample_package(tmp_path: Path) -> None:
    build = rocwheel("build", "--artifact-dir", ROOT / "src/rocwheel/sample", "--dest-dir", tmp_path, "--quiet")
    assert build.returncode == 0, build.stderr
    (wheel,) = (tmp_path / "dist").glob("rocm_sdk_libraries-*.whl")
    assert [one for one in ask(wheel) if not is_explained(one)] == []


@pytest.mark.corpus
def test_every_tool_accepts_the_packages_rocwheel_writes(tmp_path: Path) -> None:
    assert {"pip", "uv", "installer", "auditwheel show"} <= TOOLS.keys()
    assert importlib.util.find_spec("auditwheel")
    written = write_own(tmp_path)
    assert len(written) >= 12
    assert [one for path in written for one in ask(path) if not is_explained(one)] == []


def test_a_wheel_that_installers_reject_is_detected(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/__init__.py": b""}, tag="py3-none-any")
    bad = wheel.rename(tmp_path / "other-1.0-py3-none-any.whl")
    found = {one.tool for one in ask(bad)}
    assert {"pip", "uv"} <= found
