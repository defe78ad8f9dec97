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

NOBODY = 65534
"""A user who owns nothing."""

ATTACK = """
import json, os, shutil, stat, sys
from pathlib import Path

site, victim, scenario = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
sys.path.insert(0, str(site))
import lzma, tarfile, rocm_sdk._devel, rocm_sdk._devel_expansion
from rocm_sdk._devel import DevelError, get_devel_root

NOBODY = 65534
NAMES = (
    "_rocm_sdk_devel",
    *(f"rocm_sdk_devel/{name}" for name in (".tree", "_record.new", "_record.scratch", "__init__.py")),
)
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
def test_no_folder_outside_the_tree_is_changed(environment: Installed, place: Path, scenario: str) -> None:
    victim = place / "victim"
    (victim / "keep").mkdir(parents=True)
    for name in (".expanded.json", "keep/file", "_record.new", "_record.scratch"):
        (victim / name).write_text("precious")
    victim.chmod(0o700)
    before = {"."} | {path.relative_to(victim).as_posix() for path in victim.rglob("*")}
    modes = {name: (victim / name).stat().st_mode & 0o7777 for name in before}
    ends = list(attacks(environment, place, victim, scenario))
    assert len(ends) > 50
    assert {end for _, end, _ in ends} <= {"whole", "refused"}
    assert [number for number, _, seen in ends if seen != modes] == []
    assert (victim / "keep/file").read_text() == "precious"


GET_ROOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); from rocm_sdk._devel import get_devel_root as get; print(get())"
)


def get_root(site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", GET_ROOT, str(site)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def give_away(*paths: Path) -> None:
    for path in paths:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def test_a_record_linked_by_another_user_is_not_written(environment: Installed, place: Path) -> None:
    # Given metadata whose folder comes before the installer's, with a link to a list of root's
    site, victim = place / "site", place / "accounts"
    renew(environment, site)
    victim.write_text("root:x:0:0\n")
    folder = site / "rocm_sdk_devel-0.dist-info"
    folder.mkdir()
    (folder / "RECORD").symlink_to(victim)
    (folder / "METADATA").write_text("")
    give_away(folder, folder / "RECORD", folder / "METADATA")
    # When root expands the tree
    done = get_root(site)
    # Then only the installer's RECORD lists it
    assert (done.stdout, done.stderr) == (f"{site}/_rocm_sdk_devel\n", "")
    assert victim.read_text() == "root:x:0:0\n"
    assert (folder / "RECORD").is_symlink()
    assert "\n_rocm_sdk_devel,,\n" in (site / "rocm_sdk_devel-7.2.0.dist-info/RECORD").read_text()


@pytest.mark.parametrize("mode", [0o755, 0o775], ids=["package of root", "package of root's group"])
def test_a_tree_made_by_another_user_from_the_correct_archive_is_expanded_again(
    environment: Installed, place: Path, mode: int
) -> None:
    # Given a tree with the hash of the archive, in which the folder of notes is a link to settings of root
    site, victim = place / "site", place / "settings"
    renew(environment, site)
    (site / "rocm_sdk_devel").chmod(mode)
    victim.mkdir()
    (victim / "daemon.json").write_text("[]")
    rows = (site / "rocm_sdk_devel-7.2.0.dist-info/RECORD").read_text().splitlines()
    listed = next(row.split(",")[1] for row in rows if row.startswith("rocm_sdk_devel/_devel.tar"))
    tree = site / "_rocm_sdk_devel"
    tree.mkdir()
    state = tree / ".expanded.json"
    state.write_text(json.dumps({"archive": listed, "packages": [], "devices": {"gone": [1, 1]}}))
    (tree / ".device_links").symlink_to(victim)
    give_away(tree, state, tree / ".device_links")
    # When root asks for it
    done = get_root(site)
    # Then it is root's own, and nothing of the settings is gone
    assert (done.stdout, done.stderr) == (f"{tree}\n", "")
    assert [path.name for path in victim.iterdir()] == ["daemon.json"]
    assert (tree / "bin/hipcc").exists()
    assert tree.stat().st_uid == os.geteuid()


@pytest.mark.parametrize("theirs", ["tree", "site/_rocm_sdk_devel"], ids=["their tree", "their link to root's"])
def test_a_tree_that_another_user_puts_in_place_of_a_removed_tree_is_refused(
    environment: Installed, place: Path, theirs: str
) -> None:
    site = place / "site"
    renew(environment, site)
    get_root(site)
    (site / "_rocm_sdk_devel").rename(place / "tree")
    (site / "_rocm_sdk_devel").symlink_to(place / "tree")
    give_away(place / theirs)
    done = get_root(site)
    assert done.returncode == 1
    assert "the tree is incomplete, and its archive is gone" in done.stderr


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
