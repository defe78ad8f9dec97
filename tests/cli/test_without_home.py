"""Commands of a user whom the system doesn't know, as in a container that was started with another user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.demo import SAMPLE_SDK
from tests.support.loopback import served
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

SAID = (
    "error: ROCWHEEL_CACHE_DIR: isn't set, and this user has no home folder; expected a folder for the "
    "rocwheel cache. Set ROCWHEEL_CACHE_DIR to the path of a folder."
)


@pytest.fixture(autouse=True)
def _without_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROCWHEEL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])


@pytest.mark.parametrize(
    "words",
    [
        ("cache", "info"),
        ("cache", "prune"),
        ("cache", "info", "--verify"),
        ("build", "--cache", "--artifact-dir", str(SAMPLE_SDK), "--dest-dir", "made"),
    ],
    ids=" ".join,
)
def test_a_command_that_needs_a_cache_says_what_to_set(run: Run, words: tuple[str, ...]) -> None:
    done = run(*words)
    assert (done.status, done.stdout, " ".join(done.stderr.split())) == (2, "", SAID)


def test_fetching_from_a_url_requires_a_cache(run: Run, tmp_path: Path) -> None:
    make_wheel(tmp_path / "dist", "alpha", {"alpha.py": b""})
    with served(tmp_path) as address:
        done = run("audit", f"{address}/dist/")
    assert (done.status, " ".join(done.stderr.split())) == (2, SAID)


def test_publishing_works_without_a_cache(run: Run, tmp_path: Path) -> None:
    make_wheel(tmp_path / "dist", "alpha", {"alpha.py": b""})
    done = run("publish", tmp_path / "dist", tmp_path / "site", "--quiet")
    assert (done.status, done.stderr) == (0, "")
