"""``rocm-sdk init`` by root, while another user who may write to site-packages puts links in place of its folders.

The other user acts before each call in turn that makes, opens, lists or removes a file. Who may write there may also
plant modules that root imports; this is about folders elsewhere, which stay as they are all the same.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sdk.installed import Installed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can be another user"),
]

ATTACK = """
import json, os, shutil, stat, sys
from pathlib import Path

site, victim, scenario = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
sys.path.insert(0, str(site))
import lzma, tarfile, rocm_sdk._devel, rocm_sdk._devel.expand
from rocm_sdk._devel import DevelError, get_devel_root

NOBODY = 65534
NAMES = ("_rocm_sdk_devel", "rocm_sdk_devel/.tree", "rocm_sdk_devel/_record.scratch", "rocm_sdk_devel/__init__.py")
EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.listdir", "os.chmod")
steps = None

def swap():
    os.seteuid(NOBODY)
    try:
        for name in NAMES:
            path = site / name
            try:
                if os.path.lexists(path):
                    path.rename(site / f"away-{os.urandom(4).hex()}")
                path.symlink_to(victim)
            except OSError:
                pass
    finally:
        os.seteuid(0)

def count(event, arguments):
    global steps
    if steps is None or event not in EVENTS:
        return
    steps -= 1
    if steps == 0:
        steps = None
        swap()

def prepare():
    if scenario == "a folder of theirs":
        os.seteuid(NOBODY)
        (site / "_rocm_sdk_devel/inner").mkdir(parents=True)
        (site / "_rocm_sdk_devel/.expanded.json").write_text("{}")
        os.seteuid(0)

def attempt(number):
    global steps
    steps = number
    try:
        get_devel_root()
        ended = "whole"
    except (DevelError, ModuleNotFoundError):
        ended = "refused"
    except OSError as e:
        ended = f"OSError {e.strerror}"
    reached, steps = steps is not None, None
    return ended, reached

sys.addaudithook(count)
results = {}
for number in range(1, 2000):
    child = os.fork()
    if not child:
        prepare()
        ended, reached = attempt(number)
        print(json.dumps([number, ended, reached]), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    seen = {p.relative_to(victim).as_posix(): stat.S_IMODE(p.lstat().st_mode) for p in (victim, *victim.rglob("*"))}
    print(json.dumps(["victim", number, seen]), flush=True)
    if (sys.stdin.readline() or "stop").strip() == "stop":
        break
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """Return a folder that every user can reach."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("scenario", ["nothing there", "a folder of theirs"])
def test_no_folder_elsewhere_is_changed(environment: Installed, place: Path, scenario: str) -> None:
    victim = place / "victim"
    (victim / "keep").mkdir(parents=True)
    for name in (".expanded.json", "keep/file", "_record.scratch"):
        (victim / name).write_text("precious")
    victim.chmod(0o700)
    before = {"."} | {path.relative_to(victim).as_posix() for path in victim.rglob("*")}
    modes = {name: (victim / name).stat().st_mode & 0o7777 for name in before}
    ends = list(attacks(environment, place, victim, scenario))
    assert len(ends) > 50
    assert {end for _, end, _ in ends} <= {"whole", "refused"}
    assert [number for number, _, seen in ends if seen != modes] == []
    assert (victim / "keep/file").read_text() == "precious"


def attacks(environment: Installed, place: Path, victim: Path, scenario: str) -> Iterator[tuple[int, str, Any]]:
    """Yield number, end, and what the victim's folder holds, of an attack at each step until none is left."""
    site = place / "site"
    command = [sys.executable, "-c", ATTACK, str(site), str(victim), scenario]
    renew(environment, site)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        reached = False
        while not reached:
            number, end, reached = json.loads(process.stdout.readline())
            _, _, seen = json.loads(process.stdout.readline())
            yield number, end, seen
            renew(environment, site)
            process.stdin.write("stop\n" if reached else "go\n")
            process.stdin.flush()


def renew(environment: Installed, site: Path) -> None:
    """Make a site-packages in which everybody may make files, but remove their own alone, as in ``/tmp``."""
    if site.exists():
        shutil.rmtree(site)
    shutil.copytree(environment.site, site, symlinks=True)
    site.chmod(0o1777)
