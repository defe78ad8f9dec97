"""What uv says, as far as people have to know it. The texts are those of uv 0.13."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.index.lock import lacking_extras, why_not
from rocwheel.index.write_index import write_index
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

FORBIDDEN = """\
warning: The requested Python version 3.9 is not available
error: Failed to fetch: `http://me:word@127.0.0.1:1/simple/rocm/?token=SECRET`
  cause: HTTP status client error (403 Forbidden) for url (http://127.0.0.1:1/simple/rocm/?token=SECRET)
"""
NO_GPU = """\
error: Failed to build `rocm==7.0.0`
  cause: The build backend returned an error
  cause: Call to `selector.prepare_metadata_for_build_wheel` failed (exit status: 1)

[stderr]
rocm: ROCM_SDK_TARGET_FAMILY=gfx1100: ROCm 7.0.0 has no packages for gfx1100 on linux. Available: gfx906, gfx90a. \
Choose one of these, or unset the variable to have the GPU detected.

hint: Build failures usually indicate a problem with the package or the build environment
"""


def test_no_secret_of_a_url_is_told() -> None:
    why, remedy = why_not(FORBIDDEN)
    assert why == (
        "error: Failed to fetch: `http://127.0.0.1:1/simple/rocm/` cause: HTTP status client error (403 Forbidden) "
        "for url (http://127.0.0.1:1/simple/rocm/)"
    )
    assert remedy == "Check the requirements and where packages are looked for (--index-url, --find-links)."


def test_gpus_without_packages_are_told_in_the_words_of_the_selector() -> None:
    assert why_not(NO_GPU) == (
        "ROCm 7.0.0 has no packages for gfx1100 on linux. Available: gfx906, gfx90a",
        "Name GPUs that it has packages for: --targets.",
    )


def test_only_extras_that_are_asked_for_count() -> None:
    said = (
        "warning: The package `rocm==7.0.0` does not have an extra named `profilr`\n"
        "warning: The package `rocm-sdk==7.0.0` does not have an extra named `other`\n"
    )
    problems = lacking_extras(said, ["ROCm[libraries,Profilr]", "rocm_sdk"])
    assert list(map(str, problems)) == ["rocm[profilr]: no such extra is there. Correct its name, or leave it out."]


@pytest.mark.slow
def test_an_extra_that_no_package_has_locks_nothing(run: Run, tmp_path: Path) -> None:
    make_wheel(tmp_path / "dist", "alpha", {}, tag="py3-none-any", extras=("libraries",))
    write_index(tmp_path / "dist", tmp_path / "simple")
    index = ("--index-url", (tmp_path / "simple").as_uri())
    done = run("lock", "alpha[libraries,profilr]", *index, "-o", tmp_path / "pylock.toml")
    assert (done.status, "alpha[profilr]: no such extra is there" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "pylock.toml").exists()
