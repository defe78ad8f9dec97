"""Publishers that are killed: the index stays whole, what is left is known, and the next run completes it."""

from __future__ import annotations

import hashlib
import json
import random
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin

import pytest

from rocwheel.index.front_content import next_front_page
from rocwheel.index.publish import PublishOptions, publish
from rocwheel.stores.open import open_store
from tests.support.s3_server import BUCKET
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.stores.store import Store
    from tests.support.s3_server import S3Server

pytestmark = pytest.mark.slow

OPTIONS = PublishOptions(make_front=next_front_page)
_PUBLISH = """
import sys
from pathlib import Path
from rocwheel.index.publish import PublishOptions, publish
from rocwheel.stores.open import open_store
from rocwheel.index.front_content import next_front_page
store = open_store(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
publish(Path(sys.argv[1]), store, PublishOptions(make_front=next_front_page))
"""
_KILLS = 4
_LONGEST = 1.5
"""Seconds until a kill; a whole run takes about as long."""


def add(folder: Path, name: str, version: str) -> str:
    return make_wheel(folder, name, {}, version=version, tag="py3-none-any", is_purelib=True).name


def links(store: Store, page: str) -> dict[str, str]:
    """Return the hash of each file that a page links to, by its name on the store."""
    data = store.read(page).decode()
    if page.endswith(".json"):
        found = [(file["url"], file["hashes"]["sha256"]) for file in json.loads(data)["files"]]
    else:
        found = re.findall(r'href="([^"]+)#sha256=(\w+)"', data)
    return {unquote(urljoin(f"/{page}", url)).lstrip("/"): sha256 for url, sha256 in found}


def check_links(store: Store) -> set[str]:
    """Check that all that any page links to is there with its hash; return the names of the files."""
    names = {file.name for file in store.list()}
    seen: dict[str, str] = {}
    for root in {"simple/index.html", "simple/index.json"} & names:
        projects = re.findall(r'(?:href="|"name": ")([a-z0-9]+)', store.read(root).decode())
        for page in [f"simple/{project}/index.{root.rpartition('.')[2]}" for project in projects]:
            seen |= links(store, page)
    for name, sha256 in seen.items():
        assert hashlib.sha256(store.read(name)).hexdigest() == sha256
    return {name.rpartition("/")[2] for name in seen}


def test_the_index_stays_complete_when_one_of_two_publishers_is_killed(s3: S3Server, tmp_path: Path) -> None:
    url = f"s3://{BUCKET}/rocm"
    chance = random.Random(7)  # the moment differs all the same, with the machine
    wanted = set()
    for kill in range(_KILLS):
        folders = [tmp_path / f"{kill}-{number}" for number in range(2)]
        for number, folder in enumerate(folders):
            wanted |= {add(folder, "same", f"{kill}.{number}.{patch}") for patch in range(3)}
            wanted |= {add(folder, f"own{kill}x{number}x{index}", "1.0") for index in range(4)}
        command = [sys.executable, "-c", _PUBLISH]
        running = [
            subprocess.Popen([*command, folder, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for folder in folders
        ]
        for process in running:
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
        for process in running:
            assert process.stdin
            process.stdin.write(b"go\n")
            process.stdin.flush()
        time.sleep(chance.uniform(0, _LONGEST))
        running[0].kill()
        running[0].communicate()
        assert check_links(open_store(url)) <= wanted
        running[1].communicate(timeout=120)
        assert running[1].returncode == 0
        publish(folders[0], open_store(url), OPTIONS)
        assert check_links(open_store(url)) == wanted
    page = open_store(url).read("simple/packages.html").decode()
    assert [name for name in wanted if name.partition("-")[0] not in page] == []


_LARGE = """
import os, signal, sys
from pathlib import Path
import rocwheel.stores.objects as module
from rocwheel.stores.open import open_store
original = getattr(module.obstore, {method!r})
def kill(*words, **more):
    if {after}:
        original(*words, **more)
    if {always} or more.get("use_multipart"):
        os.kill(os.getpid(), signal.SIGKILL)
    return None if {after} else original(*words, **more)
setattr(module.obstore, {method!r}, kill)
open_store(sys.argv[2]).put("dist/x", Path(sys.argv[1]), sha256="ab" * 32)
"""


@pytest.mark.parametrize(
    ("method", "after", "always"), [("put", False, False), ("put", True, False), ("copy", True, True)]
)
def test_leftovers_of_a_killed_upload_are_reported_until_the_file_is_uploaded(
    s3: S3Server, tmp_path: Path, method: str, after: bool, always: bool
) -> None:
    url = f"s3://{BUCKET}/rocm"
    large = tmp_path / "large"
    large.write_bytes(bytes(33 << 20))
    script = _LARGE.format(method=method, after=after, always=always)
    assert subprocess.run([sys.executable, "-c", script, large, url], check=False).returncode == -9
    store = open_store(url)
    add(tmp_path / "dist", "alpha", "1.0")
    assert publish(tmp_path / "dist", store).leftovers == (f".rocwheel-uploads/{'ab' * 32}",)
    if method == "put":
        store.put("dist/x", large, sha256="ab" * 32)
        assert list(store.list(".rocwheel-uploads")) == []
    assert store.read("dist/x") == bytes(33 << 20)
