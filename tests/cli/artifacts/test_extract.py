"""``rocwheel artifacts extract``, run as users run it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.support.command_line import rocwheel

pytestmark = pytest.mark.slow


run = partial(rocwheel, "artifacts")


def test_archive_and_extract_print_what_they_made(artifacts: Path, tmp_path: Path) -> None:
    packed = run("archive", artifacts, "blas_dev_generic", "--dest-dir", tmp_path / "out", "--format", "xz")
    archive = tmp_path / "out/blas_dev_generic.tar.xz"
    assert (packed.returncode, packed.stdout) == (0, f"{archive}\n")
    unpacked = run("extract", archive, "--dest-dir", tmp_path / "again", "--json")
    assert json.loads(unpacked.stdout) == {
        "schema": "rocwheel.artifact-folders/1",
        "paths": [str(tmp_path / "again/blas_dev_generic")],
    }
    assert (tmp_path / "again/blas_dev_generic/math/stage/lib/y").readlink() == Path("x")
