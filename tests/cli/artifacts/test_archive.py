"""``rocwheel artifacts archive``, run as users run it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel, with_files_up_to

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


run = partial(rocwheel, "artifacts")


def test_the_date_of_archives_can_be_set(artifacts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    done = run("archive", artifacts, "--dest-dir", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: SOURCE_DATE_EPOCH: is 'yesterday'; expected a whole number of seconds since 1970. "
        "Correct or unset it.\n"
    )


def test_a_full_disk_leaves_no_archive(artifacts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("archive", artifacts, "blas_lib_generic", "--dest-dir", out, "-q", before=with_files_up_to(1 << 20))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: {out}/blas_lib_generic.tar.zst: can't be written (File too large). "
        "Check the free space and the permissions of its folder.\n"
    )
    assert list(out.iterdir()) == []
