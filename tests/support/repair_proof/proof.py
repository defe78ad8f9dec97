"""Compares what the loader finds for a wheel's files before and after a repair, in one scenario after the other.

* For each place that an original run path leads to: that place alone has the libraries, next to those of the SDK's
  packages that the repaired wheel requires.
* ``new``: the SDK's packages are there, and none of those places.
* ``all``: everything is there.
* For each place that an original RPATH leads to, the wheel's own folders included: the libraries in all those places
  need one more, which is there alone. They find it by the RPATH that they inherit.

A file that calls ``dlopen`` gets a probe next to it: an empty library with the file's run path that names as needed
what the file may open.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.environment.known_libraries import allowed_libraries
from rocwheel.environment.sdk_layout import sdk_folders, sdk_selector
from tests.support.repair_proof.chroot import SITE, Answer, Chroot
from tests.support.repair_proof.places import Places, find_places, sdk_libraries, sdk_places
from tests.support.repair_proof.stubs import INHERITED
from tests.support.repair_proof.wheel_files import UnpackedFile, folders, requirements, unpack

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from tests.support.repair_proof.stubs import Stubs

__all__ = ["Loss", "Proof", "prove"]

_X86_64 = 62
_PROBE = ".opened-by-"


class Loss(msgspec.Struct, frozen=True, order=True):
    """A library that the loader found before a repair and doesn't find after it."""

    file: str
    """The file that asks for it, relative to site-packages; a probe's name ends with that of the file it stands for."""
    library: str
    found_at: str
    scenario: str
    run_path: str
    """Before the repair."""
    repaired: str
    """The run path after it."""

    @property
    def is_opened(self) -> bool:
        """Whether the file opens the library by name, and doesn't need it to be loaded itself."""
        return posixpath.basename(self.file).startswith(_PROBE)


class Proof(msgspec.Struct):
    """What the loader told for all files of a wheel in all scenarios."""

    files: int
    places: Places
    before: int = 0
    """Libraries found, one for each file and scenario."""
    after: int = 0
    gained: int = 0
    losses: list[Loss] = []


class _Scenario(msgspec.Struct, frozen=True):
    """Which libraries are where."""

    name: str
    places: Mapping[str, Sequence[str]]
    heirs: Mapping[str, Sequence[str]] = {}
    """Libraries that need `INHERITED`, by their place."""
    inherited: str = ""
    """The place of that library."""


class _Side(msgspec.Struct):
    """The wheel before or after its repair: its files, by their paths, in a root of their own."""

    root: Chroot
    files: dict[str, UnpackedFile]


def prove(original: Path, repaired: Path, folder: Path, stubs: Stubs, others: Sequence[Path] = ()) -> Proof:
    """Compare a wheel with its repaired version in roots below ``folder``; ``others`` are installed with it."""
    before = _Side(Chroot(folder / "before", stubs), {})
    after = _Side(Chroot(folder / "after", stubs), {})
    before.files = unpack(original, before.root.inside(SITE))
    after.files = unpack(repaired, after.root.inside(SITE), before.files)
    for other in others:
        unpack(other, after.root.inside(SITE), unpack(other, before.root.inside(SITE)))
    own = {posixpath.normpath(f"{SITE}/{path}") for wheel in (original, *others) for path in folders(wheel)}
    proof = Proof(len(before.files), find_places(before.files.values(), own))
    names = _names(before.files)
    asked = [*before.files, *_add_probes(before, after, _stems(names))]
    for root in before.root, after.root:
        _add_system(root, names)
    foreign = [name for name in names if not _is_system(name)]
    for scenario in _scenarios(proof, before.files.values(), foreign, _required(repaired)):
        _compare(scenario, before, after, asked, proof)
    before.root.close()
    after.root.close()
    return proof


def _names(files: Mapping[str, UnpackedFile]) -> list[str]:
    """Return every library that a wheel's files need or may open; none of its own."""
    needed = {name for file in files.values() for name in file.elf.wanted if "/" not in name}
    opened = {name for file in files.values() for name in file.opened(_stems(needed))}
    return sorted((needed | opened) - {posixpath.basename(path) for path in files})


def _stems(names: Iterable[str]) -> set[str]:
    """Return what names of libraries are made of, and those of the SDK: ``amdhip64`` for ``libamdhip64.so.7``."""
    sdk = (name for folder in sdk_folders() for name in folder.libraries)
    return {name.removeprefix("lib").partition(".so")[0] for name in (*names, *sdk)}


def _is_system(name: str) -> bool:
    return allowed_libraries().find(name, _X86_64) is not None


def _add_system(root: Chroot, names: Sequence[str]) -> None:
    for name in filter(_is_system, names):
        root.add_system_library(name)


def _add_probes(before: _Side, after: _Side, stems: Collection[str]) -> Iterator[str]:
    """Make a probe for each file that calls ``dlopen`` and whose run path changes; yield its path."""
    for path, file in before.files.items():
        repaired = after.files[path]
        names = sorted(file.opened(stems))
        if names and _run_path(file) != _run_path(repaired):
            probe = posixpath.join(file.folder, _PROBE + posixpath.basename(path))
            _link_probe(before.root, probe, file, names)
            _link_probe(after.root, probe, repaired, names)
            yield probe


def _run_path(file: UnpackedFile) -> tuple[str, RunpathTag | None]:
    return file.elf.run_path or "", file.elf.run_path_tag


def _link_probe(root: Chroot, path: str, file: UnpackedFile, names: Sequence[str]) -> None:
    value, tag = _run_path(file)
    root.stubs.link_probe(root.inside(SITE) / path, names, value, is_rpath=tag is RunpathTag.RPATH)


def _required(wheel: Path) -> frozenset[str]:
    """Return the SDK's packages that a wheel requires without an extra of its own."""
    asked = [Requirement(line) for line in requirements(wheel)]
    plain = [one for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})]
    selector = sdk_selector()
    chosen = [
        (*selector.requires, *(name for extra in one.extras for name in selector.extras.get(extra, ())))
        for one in plain
        if canonicalize_name(one.name) == selector.distribution
    ]
    return frozenset({canonicalize_name(one.name) for one in plain} | {name for names in chosen for name in names})


def _scenarios(
    proof: Proof, files: Iterable[UnpackedFile], names: Sequence[str], required: frozenset[str]
) -> Iterator[_Scenario]:
    sdk = sdk_places()
    old = proof.places.folders
    needed = {f"{SITE}/{folder.folder}" for folder in sdk_folders() if folder.distribution in required}
    installed = {place: libraries for place, libraries in sdk.items() if place in needed}
    held = {place: names if (libraries := sdk_libraries(place)) is None else libraries for place in old}
    for place in old:
        yield _Scenario(place, {place: held[place], **installed})
    yield _Scenario("new", {**sdk})
    yield _Scenario("all", {**held, **sdk})
    rpaths = [file for file in files if file.elf.run_path_tag is RunpathTag.RPATH]
    for place in find_places(rpaths, ()).folders if old else ():
        yield _Scenario(f"inherited from {place}", installed, held, place)


def _compare(scenario: _Scenario, before: _Side, after: _Side, asked: Sequence[str], proof: Proof) -> None:
    answers = []
    for side in before, after:
        for place, names in scenario.places.items():
            side.root.link_stubs(place, names)
        for place, names in scenario.heirs.items():
            side.root.link_stubs(place, names, are_heirs=True)
        if scenario.inherited:
            side.root.link_stubs(scenario.inherited, [INHERITED])
        answers.append(side.root.ask([f"{SITE}/{path}" for path in asked]))
        side.root.unlink_stubs()
    for path in asked:
        was, now = (answer[f"{SITE}/{path}"] for answer in answers)
        lost = _lost(f"{SITE}/{path}", was, now)
        proof.before += len(was.found)
        proof.after += len(now.found)
        proof.gained += len(now.found.keys() - was.found.keys())
        for asker, name in lost:
            proof.losses.append(_loss(asker, path, name, was.found[name], scenario.name, before, after))


def _lost(path: str, was: Answer, now: Answer) -> Iterator[tuple[str, str]]:
    """Yield what was found and no longer is, each with the file that asks for it as far as that is known.

    A library may be found for one requester and not for another: that is a loss, too, if all found it before.
    """
    loaded = {*was.found.values(), path}
    in_vain = {(asker, name) for asker, name in now.missing - was.missing if name in was.found and asker in loaded}
    yield from sorted(in_vain)
    # Heirs may have given way to a required package, which needs nothing by inheritance.
    known = {name for _, name in in_vain} | {INHERITED}
    yield from (("", name) for name in sorted(was.found.keys() - now.found.keys() - known))


def _loss(asker: str, path: str, name: str, found_at: str, scenario: str, before: _Side, after: _Side) -> Loss:
    inside = asker.removeprefix(f"{SITE}/") if asker else path
    stands_for = inside.replace(_PROBE, "")
    run_paths = [
        (side.files[stands_for].elf.run_path or "") if stands_for in side.files else "" for side in (before, after)
    ]
    return Loss(inside, name, found_at, scenario, *run_paths)
