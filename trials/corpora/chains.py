"""Chains of edits of libraries with device code: each unit keeps the code that it should have, and the file loads.

A chain does each edit once, in an order and at levels of zstd that the library's name settles.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.code_objects import parse_target_id
from rocwheel.core.errors import RocwheelError
from rocwheel.core.reading import FileRange, join_data
from rocwheel.device.edit_bundles import Prune, bundle_parts
from rocwheel.device.edit_file import rewrite_device_code
from rocwheel.device.retarget import Retarget
from rocwheel.device.split.join_tree import join_tree
from rocwheel.device.split.joining import JoinStorage
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.targets.retarget_pairs import parse_pairs
from tests.support.hip_runtime import runtime_source
from tests.support.places import CACHE
from trials.corpora.files import find
from trials.corpora.opening import is_library
from trials.corpora.row import Difference, Row
from trials.corpora.wheels import local_wheels, unpack_all

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS: Final = ("prune", "compress", "trim", "retarget", "split and join", "split and join compressed")
_CPU_SECONDS: Final = 120
_LARGE: Final = 30_000_000
_PAIRS: Final = {"gfx1030": "gfx1031", "gfx1010": "gfx1012", "gfx900": "gfx902"}
_ABSENT = re.compile(r"(\S+): cannot open shared object file")
_LOAD = "import ctypes, sys; ctypes.CDLL(sys.argv[1], 257); ctypes.CDLL(sys.argv[2], 1); ctypes.CDLL(None).fflush(None)"

Units: TypeAlias = "list[dict[str, str]]"
"""The digest of the code of each unit, by target."""


def edit_in_chains() -> Row:
    """Edit each library of the wheels for Linux, and of the packages of Debian that are unpacked in the cache."""
    found: list[Difference] = []
    files = answers = 0
    for name, folder in _folders():
        for path in sorted(find("elf", [folder])):
            if is_library(path) and has_units(path):
                done, wrong = check_library(path, f"{name}!{path.relative_to(folder)}")
                files, answers = files + 1, answers + len(done)
                found += wrong
    return Row("chains", files, answers, tuple(sorted(found)))


def _folders() -> Iterator[tuple[str, Path]]:
    for wheel, folder in unpack_all(local_wheels("linux")):
        yield "-".join(wheel.name.split("-")[:2]), folder
    yield from ((path.name, path) for path in sorted(CACHE.glob("lib*")))


def check_library(path: Path, label: str) -> tuple[list[str], list[Difference]]:
    """Do a library's chain in a process of its own, and return the steps that were done, and what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = (_CPU_SECONDS, _CPU_SECONDS + 5)  # SIGXCPU, and SIGKILL for what goes on
        chain = get_context("fork").Process(target=_write_chain, args=(path, label, Path(folder), seconds))
        chain.start()
        chain.join()
        lines = [line.split("\t") for line in (Path(folder) / "said").read_text().splitlines()]
    done = [step for kind, step, _ in lines if kind == "done"]
    wrong = [Difference("chains", label, "rocwheel", step, text) for kind, step, text in lines if kind == "wrong"]
    if chain.exitcode:
        wrong.append(Difference("chains", label, "rocwheel", "ended", f"{chain.exitcode} after {', '.join(done)}"))
    return done, wrong


def _write_chain(path: Path, label: str, folder: Path, seconds: tuple[int, int]) -> None:
    """Do a chain, and write a line for each step that was done, and for what went wrong."""
    with (folder / "said").open("w", buffering=1) as said:
        resource.setrlimit(resource.RLIMIT_CPU, seconds)
        dice = random.Random(label)
        before, opened = units_of(path), _open(path, folder)
        levels = range(1, 20 if path.stat().st_size < _LARGE else 10)
        for number, step in enumerate(dice.sample(STEPS, len(STEPS))):
            level, place = dice.choice(levels), folder / str(number)
            place.mkdir()
            name = f"{step} at level {level}"
            try:
                made, before = _do(step, level, path, place, before, dice)
            except RocwheelError as e:
                said.write(f"wrong\t{step}\trefused: {' '.join(str(e).replace(str(path), path.name).split())}\n")
                continue
            if made == path:
                continue
            after, now = units_of(made), _open(made, folder)
            if _agrees(before, after) and now == opened:
                said.write(f"done\t{name}\t{made.stat().st_size}\n")
            else:
                said.write(f"wrong\t{step}\tcode is the same: {_agrees(before, after)}; {opened!r} and {now!r}\n")
            if path.parent.is_relative_to(folder):
                path.unlink()
            path, before = made, after


def _do(step: str, level: int, source: Path, place: Path, before: Units, dice: random.Random) -> tuple[Path, Units]:
    """Do one step; return the new library and what each unit should have, ``""`` for any code; the old one for none."""
    output, storage = place / source.name, Storage(compress=step in {"compress", "trim"}, level=level)
    targets = sorted({target for unit in before for target in unit})
    if step == "prune" and len(targets) > 1:
        kept = dice.sample(targets, len(targets) - 1)
        rewrite_device_code(source, output, Prune(tuple(map(parse_target_id, kept))), storage)
        return output, [{target: code for target, code in unit.items() if target in kept} for unit in before]
    if step == "retarget" and (code := next((one for one in _PAIRS if one in targets), "")):
        rewrite_device_code(source, output, Retarget(parse_pairs(f"{code}={_PAIRS[code]}")), storage)
        return output, [({_PAIRS[code]: ""} if code in unit else {}) | unit for unit in before]
    if step.startswith("split"):
        split_tree(source, place / "split", SplitOrder(choice=SplitChoice()))
        devices = [path for path in (place / "split").iterdir() if path.name != "host"]
        join_tree(place / "split/host", devices, place / "fat", JoinStorage(compress="compressed" in step, level=level))
        shutil.rmtree(place / "split")
        return place / "fat" / source.name, before
    if step in {"compress", "trim"}:
        rewrite_device_code(source, output, None, storage, trim=step == "trim")
        return output, before
    return source, before


def _agrees(expected: Units, found: Units) -> bool:
    pairs = zip(expected, found, strict=False)
    same = all(old.keys() == new.keys() and all(old[one] in {"", new[one]} for one in old) for old, new in pairs)
    return same and len(expected) == len(found)


def has_units(path: Path) -> bool:
    """Return whether a library has device code that wrappers lead to."""
    with FileRange.whole(path).view() as data:
        return read_fat_binary(data, name=str(path)) is not None


def units_of(path: Path) -> Units:
    """Return the digest of each unit's code by its target, unit by unit."""
    with FileRange.whole(path).view() as data:
        fat = read_fat_binary(data, name=str(path))
        if fat is None:
            return []
        view, found = fat.view(data), {}
        for bundle in fat.iter_bundles(data):
            parts = ((str(part.target), part.payload) for part in bundle_parts(view, bundle) if part.target)
            found[bundle.start] = {target: hashlib.sha256(join_data(code)).hexdigest() for target, code in parts}
        return [found[fat.start_of(wrapper)] for wrapper in fat.wrappers]


def _open(library: Path, folder: Path) -> str:
    """Return what the loader says of a library, and how many wrappers it hands over to stand-ins."""
    runtime = folder / "stubs/runtime.so"
    if not runtime.exists():
        runtime.parent.mkdir()
        (folder / "runtime.c").write_text(runtime_source('printf("%x ", w->magic);', "0"))
        command = ["gcc", "-w", "-shared", "-fPIC", "-o", str(runtime), str(folder / "runtime.c")]
        subprocess.run(command, check=True)
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "LD_LIBRARY_PATH": str(runtime.parent)}
    while True:
        command = [sys.executable, "-c", _LOAD, str(runtime), str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        said = done.stderr.strip().rpartition("\n")[2].replace(str(library), library.name)
        absent = _ABSENT.search(said)
        if absent is None or "/" in absent[1] or (runtime.parent / absent[1]).exists():
            return f"{len(done.stdout.split())} wrappers {said}"
        (runtime.parent / absent[1]).hardlink_to(runtime)
