"""``scripts/enter-chroot.sh``: what a command in a chroot sees, and that nothing stays mounted."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.places import ROOT

MOUNTS = os.geteuid() == 0 and bool(shutil.which("unshare")) and not subprocess.call(["unshare", "--mount", "true"])

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MOUNTS, reason="mounts take root and the right to unshare"),
]


def enter(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    # The machine's own root is as good a chroot as any: it is mounted over in other namespaces alone.
    command = ["bash", ROOT / "scripts/enter-chroot.sh", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("end", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)])
def test_a_command_has_no_network_or_outer_variables_and_leaves_no_mount(tmp_path: Path, end: str, status: int) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist/a.whl").touch()
    (tmp_path / "other").mkdir()
    script = (
        "env | cut -d= -f1 | sort | tr '\\n' ' '; ls /mnt/dist /mnt | tr '\\n' ' '\n"
        "cut -d: -sf1 /proc/net/dev | tr -d ' \\n'\ntouch /mnt/dist/new 2>/dev/null && echo written\n"
        f"touch /mnt/home/new\n{end}\n"
    )
    before = Path("/proc/self/mountinfo").read_text()
    done = enter("-s", f"dist={tmp_path}/dist", "-s", f"other={tmp_path}/other", "/", "root", "sh", "-c", script)
    assert done.returncode == status
    words = done.stdout.split()
    assert {"HOME", "LANG", "PATH", "PIP_DISABLE_PIP_VERSION_CHECK", "a.whl", "dist", "home", "other"} <= set(words)
    assert not {"USER", "written", "PYTEST_CURRENT_TEST", "VIRTUAL_ENV"} & set(words)
    assert words[-1] == "lo"
    assert not Path("/mnt/home/new").exists()
    assert Path("/proc/self/mountinfo").read_text() == before


def test_a_home_on_disk_belongs_to_the_user_and_keeps_files(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    done = enter("-h", home, "/", "nobody", "sh", "-c", "id -u; pwd; echo kept >file")
    assert (done.returncode, done.stdout) == (0, "65534\n/mnt/home\n"), done.stderr
    assert (home / "file").read_text() == "kept\n"


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    done = enter("-s", f"dist={tmp_path}/none", "/", "root", "echo", "began")
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert f"{tmp_path}/none" in done.stderr
