"""An index is whole at any moment: while it is rewritten, and after its process was killed anywhere."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from rocwheel.index.families import change_marks, write_indexes
from rocwheel.index.placing import FilePlacement
from rocwheel.index.write_index import IndexOptions, write_index
from rocwheel.index.yanked import Yanking

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.index.conftest import AddWheel

pytestmark = pytest.mark.slow

CHECKS = """
import hashlib, json, os, re
from pathlib import Path
from urllib.parse import unquote

def pages(output, name):
    # Not by Path.rglob, which fails at a project that goes meanwhile.
    return [Path(folder, name) for folder, _, names in sorted(os.walk(output)) if name in names]

def read(page):
    for _ in range(2):
        try:
            return page.read_bytes()
        except FileNotFoundError:
            pass  # its project has gone
    return None

def faults(output):
    found = []
    for page in pages(output, "index.json"):
        data = read(page)
        if data is None:
            continue
        document = json.loads(data)
        names = [one["name"] for one in document.get("projects", ())]
        wrong = [name for name in names if not (page.parent / name / "index.html").exists()]
        for file in document.get("files", ()):
            path = page.parent / unquote(file["url"])
            pairs = [(path, file["hashes"]["sha256"])]
            if "core-metadata" in file:
                pairs.append((path.with_name(path.name + ".metadata"), file["core-metadata"]["sha256"]))
            for one, digest in pairs:
                content = read(one)
                if content is None or hashlib.sha256(content).hexdigest() != digest:
                    wrong.append(str(one))
        if wrong and read(page) == data:  # else it is another page by now
            found.append(f"{page} lists {wrong}")
    for page in pages(output, "index.html"):
        data = read(page)
        if data is not None and not data.endswith(b"</html>\\n"):
            found.append(f"{page} is not whole")
    for page in [*pages(output, "index.html"), *pages(output, "packages.html")]:
        data = read(page) or b""
        ways = re.findall(rb'(?:action|href)="([^"./#]+/packages[.]html)', data)
        dead = [way for way in map(bytes.decode, ways) if not (page.parent / unquote(way)).exists()]
        if dead and read(page) == data:
            found.append(f"{page} leads to {dead}")
    return found
"""

READER = (
    CHECKS
    + """
import sys
from pathlib import Path

output, stop, rounds, found = Path(sys.argv[1]), Path(sys.argv[2]), 0, []
print("ready", flush=True)
while not stop.exists():
    found += faults(output)
    rounds += 1
print(rounds, json.dumps(found))
"""
)


@pytest.mark.deep
@pytest.mark.parametrize("placement", [FilePlacement.RELATIVE, FilePlacement.COPY], ids=["relative", "copy"])
def test_a_reader_never_sees_a_page_that_lists_a_missing_file(
    add_wheel: AddWheel, dist_dir: Path, tmp_path: Path, placement: FilePlacement
) -> None:
    output, stop = dist_dir.parent / "simple", tmp_path / "stop"
    for name in "abc":
        add_wheel(name)
    write_index(dist_dir, output, options=IndexOptions(placement=placement))
    command = [sys.executable, "-c", READER, str(output), str(stop)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout
        assert reader.stdout.readline() == "ready\n"
        for number in range(25):
            new = add_wheel(f"d{number % 3}", f"1.{number}")
            write_index(
                dist_dir, output, options=IndexOptions(placement=placement, yanking=Yanking({new.name: str(number)}))
            )
            if placement is FilePlacement.COPY and number % 2:  # where pages link to it, to remove it is up to users
                new.unlink()
                write_index(dist_dir, output, options=IndexOptions(placement=placement))
        stop.touch()
        rounds, _, found = reader.stdout.read().partition(" ")
    assert (reader.returncode, found) == (0, "[]\n")
    assert int(rounds) > 5


WEB_READER = """
import hashlib, json, sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urljoin
from urllib.request import urlopen

def read(url):
    try:
        with urlopen(url, timeout=30) as answer:
            return answer.read()
    except HTTPError:
        return b""

stop, urls, rounds, found = Path(sys.argv[1]), sys.argv[2:], 0, []
print("ready", flush=True)
while not stop.exists():
    rounds += 1
    for url in urls:
        for project in json.loads(read(url + "index.json"))["projects"]:
            address = f"{url}{project['name']}/index.json"
            page = read(address)
            for file in json.loads(page)["files"]:
                data = read(urljoin(address, file["url"]))
                if hashlib.sha256(data).hexdigest() != file["hashes"]["sha256"] and read(address) == page:
                    found.append(file["filename"])
print(rounds, json.dumps(found))
"""


@pytest.mark.deep
@pytest.mark.parametrize("placement", [FilePlacement.HARDLINK, FilePlacement.COPY], ids=["hardlink", "copy"])
def test_a_served_page_never_lists_a_file_whose_bytes_have_changed(
    add_wheel: AddWheel, dist_dir: Path, tmp_path: Path, placement: FilePlacement
) -> None:
    # Given an index that is served, whose reader looks at each file of each page
    output, stop = dist_dir.parent / "simple", tmp_path / "stop"
    wheel = add_wheel("a")
    write_index(dist_dir, output, options=IndexOptions(placement=placement))
    with _read_by_web(output, stop, [""]) as told:
        # When a file gets other bytes again and again
        for number in range(40):
            wheel.unlink()  # where the index links to it, to write into it would change the index
            add_wheel("a", "1.0", f"Keywords: {number}")
            write_index(dist_dir, output, options=IndexOptions(placement=placement))
    # Then no page that stood meanwhile lists other bytes than there were
    assert told[1] == "[]\n"
    assert int(told[0]) > 5


@pytest.mark.deep
@pytest.mark.parametrize("placement", [FilePlacement.HARDLINK, FilePlacement.COPY], ids=["hardlink", "copy"])
def test_a_served_family_page_stays_correct_while_files_change_and_are_yanked(
    add_wheel: AddWheel, dist_dir: Path, tmp_path: Path, placement: FilePlacement
) -> None:
    # Given an index with those of two families, which are served and read all the time
    output, stop = dist_dir.parent / "simple", tmp_path / "stop"

    def bring(folder: Path, *fields: str) -> None:
        made = add_wheel("rocm", "1.0", *fields)
        folder.mkdir(exist_ok=True)
        made.replace(folder / made.name)

    families = [dist_dir / name for name in ("gfx90x", "gfx94x")]
    for family in families:
        bring(family)
    shared = add_wheel("a")
    write_indexes([dist_dir], output, options=IndexOptions(placement=placement))
    with _read_by_web(output, stop, ["", "gfx90x/", "gfx94x/"]) as told:
        # When files of families get other bytes, and one that all share is yanked, and no longer
        for number in range(12):
            bring(families[number % 2], f"Keywords: {number}")
            write_indexes([dist_dir], output, options=IndexOptions(placement=placement))
            change_marks(output, Yanking({shared.name: str(number)}))
            change_marks(output, Yanking({}, (shared.name,)))
    # Then no page that stood meanwhile lists other bytes than there were
    assert told[1] == "[]\n"
    assert int(told[0]) > 2


@contextmanager
def _read_by_web(output: Path, stop: Path, indexes: list[str]) -> Iterator[list[str]]:
    """Have a reader look at each file of indexes by a web server; give how often it did, and what was wrong."""
    told: list[str] = []
    with _served(output) as url:
        command = [sys.executable, "-c", WEB_READER, str(stop), *(f"{url}{index}" for index in indexes)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
            assert reader.stdout
            try:
                assert reader.stdout.readline() == "ready\n"
                yield told
            finally:
                stop.touch()
                rounds, _, found = reader.stdout.read().partition(" ")
                told += [rounds, found]
    assert reader.returncode == 0


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout
            yield f"http://127.0.0.1:{server.stdout.readline().split()[5]}/"
        finally:
            server.terminate()


KILLED = (
    CHECKS
    + """
import gc, os, random, shutil, signal, sys, time
from pathlib import Path
from rocwheel.index.families import change_marks, write_indexes
from rocwheel.index.folder_notes import NOTES
from rocwheel.index.write_index import IndexOptions
from rocwheel.index.placing import FilePlacement
from rocwheel.index.yanked import Yanking
from rocwheel.index.front_content import front_page

start, placement, command, first = Path(sys.argv[1]), FilePlacement(sys.argv[2]), sys.argv[3], int(sys.argv[4])
work = start.with_name(f"work{first}")
gc.freeze()  # children have little to copy then
os.fsync = lambda _: None  # which only an end of the whole machine would ask for

def index(kill_at):
    left = [kill_at]
    def counting(do):
        def counted(*arguments, **more):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return do(*arguments, **more)
        return counted
    for name in ("replace", "unlink", "mkdir", "rmdir"):
        setattr(Path, name, counting(getattr(Path, name)))
    marks = Yanking({"a-1.0-py3-none-any.whl": "bad"})
    if command == "yank":
        change_marks(work / "simple", marks, keep=lambda _: front_page())
    else:
        options = IndexOptions(placement=placement, yanking=marks, extras=front_page())
        write_indexes([work / "dist", work / "more"], work / "simple", options=options)

def in_child(kill_at, moment=None):
    child = os.fork()
    if not child:
        index(kill_at)
        os._exit(0)
    if moment is not None:
        time.sleep(moment)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]

def fresh():
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(start, work, symlinks=True)

def tree():
    return {str(path.relative_to(work)): path.read_bytes() for path in work.rglob("*")
            if path.is_file() and path.name not in NOTES}

def look(name):
    global found
    found += [f"{name}: {fault}" for fault in faults(work / "simple")]
    assert in_child(0) == 0
    now = tree()
    if now != expected:
        differ = {name for name in {*now, *expected} if now.get(name) != expected.get(name)}
        found.append(f"{name} leaves {sorted(differ)}")

fresh()
begun = time.perf_counter()
assert in_child(0) == 0
took = time.perf_counter() - begun
expected, kill_at, kills, found = tree(), first, 0, []
while True:
    fresh()
    status = in_child(kill_at)
    if status == 0:
        break
    assert status == signal.SIGKILL, status
    look(f"kill {kill_at}")
    kills += 1
    kill_at += 3  # other runs look at those between
for moment in range(4):
    fresh()
    in_child(0, random.uniform(0, took))
    look(f"kill at moment {moment}")
print(kills, json.dumps(found))
"""
)


KILLS = [("relative", "index"), ("hardlink", "index"), ("copy", "index"), ("copy", "yank")]


@pytest.mark.corpus
@pytest.mark.parametrize(("placement", "command"), KILLS)
def test_a_run_killed_at_any_change_leaves_a_complete_index_and_nothing_stale(
    add_wheel: AddWheel, tmp_path: Path, placement: str, command: str
) -> None:
    kill_everywhere(add_wheel, tmp_path, placement, command, "123")


@pytest.mark.deep
@pytest.mark.parametrize(("kill", "first"), list(zip(KILLS, "1231", strict=True)))
def test_a_run_killed_at_every_third_change_leaves_a_complete_index_and_nothing_stale(
    add_wheel: AddWheel, tmp_path: Path, kill: tuple[str, str], first: str
) -> None:
    """Each placement, whose runs are much alike, is killed at other changes."""
    kill_everywhere(add_wheel, tmp_path, *kill, first)


def kill_everywhere(add_wheel: AddWheel, tmp_path: Path, placement: str, command: str, firsts: str) -> None:
    # Given two folders, one of them with a family's, in an index from before files came and were yanked, and some went
    start = tmp_path / "start"
    for folder in ("dist/gfx94x", "dist/gfx90x", "more"):
        (start / folder).mkdir(parents=True)
    for name, folder in [("a", "dist"), ("b", "more"), ("rocm", "dist/gfx94x"), ("rocm", "dist/gfx90x"), ("c", "dist")]:
        made = add_wheel(name, "1.0", f"Keywords: {folder}")
        made.rename(start / folder / made.name)
    program = (
        "import sys\nfrom pathlib import Path\nfrom rocwheel.index.families import write_indexes\n"
        "from rocwheel.index.write_index import IndexOptions\n"
        "from rocwheel.index.placing import FilePlacement\n"
        "start, options = Path(sys.argv[1]), IndexOptions(placement=FilePlacement(sys.argv[2]))\n"
        "write_indexes([start / 'dist', start / 'more'], start / 'simple', options=options)"
    )
    subprocess.run([sys.executable, "-c", program, str(start), placement], check=True)
    made = add_wheel("new")
    made.rename(start / "dist" / made.name)
    if placement != "relative":  # where pages link to files, what goes or gets other bytes has done so before the run
        (start / "dist/c-1.0-py3-none-any.whl").unlink()
        (start / "dist/gfx90x/rocm-1.0-py3-none-any.whl").unlink()
        made = add_wheel("a", "1.0", "Keywords: other bytes")
        made.replace(start / "dist" / made.name)
    # When it is killed before each change that it makes to a folder, and at some other moments
    commands = [[sys.executable, "-c", KILLED, str(start), placement, command, first] for first in firsts]
    runs = [subprocess.Popen(one, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for one in commands]
    told = [run.communicate() for run in runs]
    # Then what pages list is there each time, and the next run brings everything in order
    assert [run.returncode for run in runs] == [0 for _ in firsts], told
    counts, found = zip(*(out.split(" ", 1) for out, _ in told), strict=True)
    assert set(found) == {"[]\n"}
    assert sum(map(int, counts)) > 5 * len(firsts)
