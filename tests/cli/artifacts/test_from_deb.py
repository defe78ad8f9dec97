"""``rocwheel artifacts from-deb`` as a user runs it."""

from __future__ import annotations

import shutil
import subprocess
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow


run = partial(rocwheel, "artifacts")


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb makes the package, and is not installed")
def test_packages_are_imported_with_a_table_of_ones_own(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        "Package: tool\nVersion: 3.1-2\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: text\n"
    )
    (root / "opt").mkdir()
    (root / "opt/tool").write_text("tool")
    subprocess.run(["dpkg-deb", "--build", root, tmp_path / "tool.deb"], check=True, stdout=subprocess.PIPE)
    table = tmp_path / "table.toml"
    table.write_text(
        "base_libraries = []\ncomponent = []\nversion_from = ['tool']\n"
        "[[artifact]]\nname = 'tools'\npackages = ['tool']\n[[place]]\nfrom = 'opt'\nto = 'bin'\n"
    )

    finished = run("from-deb", tmp_path / "tool.deb", "--dest-dir", tmp_path / "a", "--table", table, "--quiet")

    assert finished.returncode == 0, finished.stderr
    assert "SDK version: 3.1" in finished.stdout.splitlines()
    assert (tmp_path / "a/tools_run_generic/tools/stage/bin/tool").read_text() == "tool"


def test_file_that_is_not_a_package_fails_with_what_is_wrong(tmp_path: Path) -> None:
    bad = tmp_path / "bad.deb"
    bad.write_text("rubbish")

    finished = run("from-deb", bad, "--dest-dir", tmp_path / "artifacts")

    assert finished.returncode == 2
    assert finished.stderr == f"error: {bad}: not an ar archive; expected a Debian package (.deb)\n"
