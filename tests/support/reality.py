"""What the real dynamic loader answers, to compare the model with."""

from __future__ import annotations

import functools
import platform
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.audit.rules.undefined_symbols import Definitions, Scope, unmet_references
from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.binary.elf.facts import ElfKind, read_elf_traits
from rocwheel.core.reading import FileRange
from rocwheel.environment.installed_paths import SITE
from rocwheel.environment.loader import Loader, SystemLibraries
from rocwheel.environment.read_tree import read_tree
from rocwheel.environment.run_path_entries import CpuLevel, hwcaps_folders

if TYPE_CHECKING:
    from rocwheel.binary.elf.symbols import Linkage
    from tests.support.host import FileSystem

__all__ = [
    "LOADER",
    "audited_libraries",
    "has_cpu_level",
    "list_libraries",
    "loadable_files",
    "loaded_libraries",
    "model_libraries",
    "model_undefined_symbols",
    "undefined_symbols",
]

LOADER = Path({"x86_64": "/lib64/ld-linux-x86-64.so.2"}.get(platform.machine(), "/lib/ld-linux-aarch64.so.1"))
_LINE = re.compile(r"\t(?P<name>\S+)(?: => (?P<path>.+?))?(?: \(0x[0-9a-f]+\))?")
_UNDEFINED = re.compile(r"undefined symbol: (?P<name>[^,\t]+)(?:, version \S+)?\t\((?P<file>.*)\)")
_MASKS = {"x86-64": "none", "x86-64-v2": "x86-64-v2", "x86-64-v3": "x86-64-v3:x86-64-v2"}
_MASKS["x86-64-v4"] = f"x86-64-v4:{_MASKS['x86-64-v3']}"
_KERNEL = "linux-vdso.so.1"


def list_libraries(path: Path, level: str = "") -> dict[str, str] | None:
    """Return name to path (empty where not found) as the loader tells them in an otherwise empty environment.

    The variable does what ``ld.so --list`` does, but goes on where a library is missing. With a ``level`` the loader
    takes no library for better processors.
    """
    environment = {"LD_TRACE_LOADED_OBJECTS": "1"}
    mask = ["--glibc-hwcaps-mask", _MASKS[level]] if level else []
    done = subprocess.run([LOADER, *mask, path], env=environment, capture_output=True, text=True, check=False, cwd="/")
    if not done.stdout or "statically linked" in done.stdout:
        return None
    answer: dict[str, str] = {}
    for line in filter(None, map(_LINE.fullmatch, done.stdout.splitlines())):
        found = "" if line["path"] == "not found" else line["path"] or line["name"]
        # What is missing for one requester and found for another is listed twice.
        answer.setdefault(line["name"], found)
    return _without_kernel_and_loader(answer)


def has_cpu_level(level: str) -> bool:
    """Return whether the loader takes libraries for a level on this machine."""
    done = subprocess.run([LOADER, "--help"], capture_output=True, text=True, check=False)
    return level == "x86-64" or f"{level} (supported, searched)" in done.stdout


def model_libraries(
    path: Path, disk: FileSystem, system: SystemLibraries, level: CpuLevel = "x86-64-v4"
) -> dict[str, str] | None:
    """Return the same from the model: a needed path as the path that it became, none where it stops at a file."""
    library = disk.open(path)
    assert library is not None
    loader = Loader(disk, system, hwcaps_folders(level))
    loader.load(library)
    return None if any(search.stop for search in loader.searches) else _answer(loader)


def audited_libraries(root: Path) -> dict[Path, dict[str, str]]:
    """Return the same for each file below a folder as the audit has it, with the system's libraries by name alone."""
    answers = {}
    for process in Subject(read_tree([root]), AuditSettings()).processes:
        is_stopped = any(search.stop for search in process.loader.searches)
        found = {} if is_stopped else _answer(process.loader)
        answers[root / process.file.path] = {
            name.replace(SITE, str(root)): path.replace(SITE, str(root)) for name, path in found.items()
        }
    return answers


def loaded_libraries(root: Path, path: Path) -> dict[str, str]:
    """Return the loader's answer for a file below ``root`` as the audit can know it.

    The system's libraries are there by name alone, and without those that only they need.
    """
    real = list_libraries(path) or {}
    needed = _needed(root)
    inside = {name: found for name, found in real.items() if found.startswith(f"{root}/")}
    return inside | {name: found and name for name, found in real.items() if name in needed - inside.keys()}


@functools.cache
def _needed(root: Path) -> frozenset[str]:
    return frozenset(name for file in read_tree([root]).files if file.elf for name in file.elf.needed)


def _answer(loader: Loader) -> dict[str, str]:
    answer: dict[str, str] = {}
    listed: set[int | None] = {0}
    for search in loader.searches:
        where = "" if search.found is None else loader.objects[search.found].library.path
        if search.found is None or search.found not in listed:
            answer.setdefault(where if "/" in search.name and where else search.name, where)
        listed.add(search.found)
    return _without_kernel_and_loader(answer)


def _without_kernel_and_loader(answer: dict[str, str]) -> dict[str, str]:
    # The loader lists itself only where it is needed or the interpreter, under one of two names.
    return {name: path for name, path in answer.items() if Path(name).name not in {_KERNEL, LOADER.name}}


def loadable_files(folder: Path, disk: FileSystem) -> list[Path]:
    """Return the dynamically linked programs and libraries of this machine below a folder, without symlinks."""
    machine = {"x86_64": 62, "aarch64": 183}[platform.machine()]
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or not (library := disk.open(path)) or not library.elf:
            continue
        elf = library.elf
        if elf.machine == machine and elf.is_dynamic and elf.kind in (ElfKind.SHARED_OBJECT, ElfKind.EXECUTABLE):
            found.append(path)
    return found


def undefined_symbols(path: Path) -> set[str]:
    """Return the symbols of a file itself that ``ldd -r`` tells to be undefined.

    It names their versions, too, but not where the library of a version is missing.
    """
    environment = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_WARN": "yes", "LD_BIND_NOW": "yes"}
    done = subprocess.run([LOADER, path], env=environment, capture_output=True, text=True, check=False, cwd="/")
    lines = map(_UNDEFINED.fullmatch, (done.stdout + done.stderr).splitlines())
    return {line["name"] for line in lines if line and line["file"] == str(path)}


def model_undefined_symbols(path: Path, disk: FileSystem, system: SystemLibraries) -> set[str]:
    """Return the same from the model, whose libraries are all at hand."""
    library = disk.open(path)
    assert library is not None
    loader = Loader(disk, system)
    loader.load(library)
    linkages = {member.library.path: _linkage(member.library.path) for member in loader.objects}
    linkage = _linkage(library.path)
    scope = Scope(Definitions(linkages, linkage.references), frozenset(linkages))
    return {reference.name for reference in unmet_references(linkage, scope)}


@functools.cache
def _linkage(path: str) -> Linkage:
    with FileRange.whole(Path(path)).view() as data:
        return read_elf_traits(data, name=path).linkage
