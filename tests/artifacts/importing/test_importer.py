"""The folder of an import: it appears whole, and one that can't be used is reported before anything is copied."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.importing.importer import importing
from rocwheel.artifacts.importing.table import load_table
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

ROCM = load_table("prefix.toml")


def test_a_symlink_to_an_empty_folder_stays_and_leads_to_the_artifacts(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    dest = tmp_path / "artifacts"
    dest.symlink_to("disk")
    with importing(ROCM, dest) as importer:
        assert importer
    assert dest.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["artifacts", "disk"]


def test_the_current_folder_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expected = f"{tmp_path}: is the current folder, and the result would take its place. Name a new folder below it."
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"), importing(ROCM, tmp_path):
        pytest.fail("the sources are read")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk")
def test_a_mount_point_is_refused_at_once(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from rocwheel.artifacts.importing.table import load_table
from rocwheel.artifacts.importing.importer import importing
from rocwheel.core.errors import InputError
try:
    with importing(load_table("prefix.toml"), Path(sys.argv[1])):
        print("the sources are read")
except InputError as e:
    print(e)
"""
    command = f"mount -t tmpfs tmpfs {tmp_path} && exec {sys.executable} -B -c '{program}' {tmp_path}"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", command], capture_output=True, text=True, check=False)
    if "ermitted" in done.stderr:
        pytest.skip(f"no mount here: {done.stderr.strip()}")
    assert done.stdout == (
        f"{tmp_path}: is a mount point, and the result would take its place. Name a new folder below it.\n"
    )
