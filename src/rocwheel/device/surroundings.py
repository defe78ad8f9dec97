"""Finds the package or installation that checked files belong to, and its ROCm release."""

from __future__ import annotations

import glob
import os
import re
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING, NamedTuple

from packaging.utils import canonicalize_name

from rocwheel.artifacts.artifact import MANIFEST_NAME
from rocwheel.artifacts.deb import DebError, open_deb
from rocwheel.artifacts.from_deb import unfinished_packages
from rocwheel.artifacts.from_prefix import stated_signs
from rocwheel.artifacts.import_table import is_rocm_package
from rocwheel.artifacts.sdk_names import is_divided
from rocwheel.binary.bundles.runtimes import parse_rocm, releases
from rocwheel.binary.kind import HEAD_SIZE, is_binary
from rocwheel.core.errors import InputError
from rocwheel.core.reading import read_if_readable
from rocwheel.core.scratch import no_room, require_room, write_all
from rocwheel.wheels.binaries import Binary
from rocwheel.wheels.file_names import name_and_version
from rocwheel.wheels.metadata import CoreMetadataError, parse_core_metadata
from rocwheel.wheels.record import parse_record
from rocwheel.wheels.zip_directory import find_metadata, read_directory
from rocwheel.wheels.zip_reader import read_member

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.artifacts.deb import DebContent, DebControl
    from rocwheel.artifacts.from_prefix import Sign

_PIECE = 1 << 20

_PREFIX_FILE = ".info/version"
_SITES = ("", "lib*/python3*/site-packages", "Lib/site-packages")

_VERSION = re.compile(r"([0-9]+\.[0-9]+(?:\.[0-9]+)?)")
_LOCAL_VERSION = re.compile(r"[^+]*\+rocm([0-9]+\.[0-9]+(?:\.[0-9]+)?)")
_CODED_VERSION = re.compile(r".*\.([0-9]{1,2})([0-9]{2})([0-9]{2})(?:[-~]|\Z)")
"""A Debian version that ends with the ROCm release, as in AMD's packages: 4.4.1.60404-129 is from ROCm 6.4.4."""


def _find_installation(path: Path) -> Path | None:
    """Return the site-packages folder or the prefix that contains a path, or `None` if there is no such folder."""
    whole = path.resolve()
    parents = (whole, *whole.parents) if whole.is_dir() else whole.parents
    return next((folder for folder in parents if _is_installation(folder)), None)


def _is_installation(folder: Path) -> bool:
    # Unlike methods of `Path`, these functions treat an inaccessible path as absent.
    return os.path.isfile(folder / _PREFIX_FILE) or bool(glob.glob(f"{glob.escape(str(folder))}/*.dist-info"))  # noqa: PTH113, PTH207


class NamedRelease(NamedTuple):
    """A ROCm release, and its source."""

    release: str
    source: str

    @property
    def is_known(self) -> bool:
        """Whether the release is at least the first release with known rules."""
        return parse_rocm(self.release) >= parse_rocm(releases()[0].since)


def find_release(paths: Iterable[Path]) -> NamedRelease | None:
    """Return the newest ROCm release that files at ``paths`` identify, even an old one, or `None` if there is none.

    Packages in a ROCm SDK have the release as their version, and packages built for an SDK have it as their local
    version (``+rocm7.0``). They may be wheels, or may be installed in a folder that is one of the paths or contains one
    of them. Debian's ROCm packages, and the dependencies of other packages, also identify the release. A prefix records
    the release in a separate file.
    """
    found = [named for path in paths for named in _named_at(path)]
    return max(found, key=lambda named: parse_rocm(named.release), default=None)


def _named_at(path: Path) -> Iterator[NamedRelease]:
    root = _find_installation(path)
    folders = {path, *([root] if root else [])} if path.is_dir() else {root} if root else set()
    names = [path] if path.is_file() else []
    names += [one for folder in sorted(folders) for site in _SITES for one in folder.glob(f"{site}/*" if site else "*")]
    for one in names:
        if one.suffix == ".deb" and one.is_file():
            yield from _named_by_deb(one)
        elif one.suffix in {".whl", ".dist-info"}:
            name, version = name_and_version(one.name)
            is_sdk = name.replace("_", "-").lower().startswith(("rocm-sdk-core", "rocm-sdk-libraries"))
            if match := (_VERSION if is_sdk else _LOCAL_VERSION).match(version):
                yield NamedRelease(match[1], f"{name}-{version}")
    for folder in sorted(folders):
        yield from (NamedRelease(sign.release, f"{folder}/{sign.path}") for sign in _signs(folder))


def _signs(folder: Path) -> Sequence[Sign]:
    try:
        return stated_signs(folder, [_PREFIX_FILE])
    except InputError:
        return ()


def _named_by_deb(path: Path) -> Iterator[NamedRelease]:
    """Yield a package's own release, and the release of the runtime that the package was built with."""
    try:
        with open_deb(path) as deb:
            control = deb.control
    except DebError:
        return
    label = f"{control.package} {control.version}"
    coded = _CODED_VERSION.match(control.version)
    plain = _VERSION.match(control.upstream_version) if is_rocm_package(control.package) else None
    if coded:
        yield NamedRelease(".".join(str(int(part)) for part in coded.groups()), label)
    elif plain:
        yield NamedRelease(plain[1], label)
    for choice in control.depends:
        for relation in choice.relations:
            if relation.package.startswith("libamdhip64-") and (match := _VERSION.match(relation.version)):
                yield NamedRelease(match[1], f"{control.package} {control.version}, by {relation},")


class Completeness(NamedTuple):
    """How complete the input files from a library's package are."""

    is_divided: bool
    """Whether other packages provide the library's kernels, each for some GPUs."""
    is_closed: bool
    """Whether no other files will be installed with the library."""
    is_alone: bool = False
    """Whether the input contains only the library, without the files that are installed with it."""


class GivenDeb(NamedTuple):
    """A Debian package: its control fields, its binaries, and the paths of all its files."""

    path: Path
    control: DebControl
    binaries: tuple[Binary, ...]
    places: tuple[str, ...]


def find_debs(paths: Iterable[Path]) -> list[Path]:
    """Return the Debian packages among files and in folders."""
    found = (sorted(path.rglob("*.deb")) if path.is_dir() else [path] for path in paths)
    return [one for each in found for one in each if one.suffix == ".deb" and one.is_file()]


def unpack_deb(path: Path, folder: str) -> GivenDeb:
    """Unpack a package's binaries into new files in ``folder``.

    Raises `DebError` for a damaged package, and `WorkError` if there isn't enough space.
    """
    binaries, places = list[Binary](), list[str]()
    with open_deb(path) as deb:
        for member in deb.members():
            places.append(member.path)
            head = member.content.read(HEAD_SIZE) if member.content else b""
            if member.content and is_binary(head):
                name = f"{path}!{member.path}"
                file = _unpack(name, head, member.content, folder)
                binaries.append(Binary(name, member.path, member.size, file=file))
        return GivenDeb(path, deb.control, tuple(binaries), tuple(places))


def _unpack(name: str, head: bytes, content: DebContent, folder: str) -> Path:
    descriptor, path = mkstemp(dir=folder)
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        try:
            while head:
                require_room(file, len(head))
                write_all(file, head)
                head = content.read(_PIECE)
        except OSError as e:
            raise no_room(name, "its unpacked bytes", e) from e
    return Path(path)


def completeness_of(library: Binary, debs: Iterable[GivenDeb] = ()) -> Completeness:
    """Return how complete the input files for a library are, based on its package, environment, prefix, or artifact."""
    if library.file is not None:
        controls = {f"{deb.path}!{one.place}": deb.control for deb in debs for one in deb.binaries}
        is_unfinished = controls[library.name].package in unfinished_packages([deb.control for deb in debs])
        return Completeness(is_divided=False, is_closed=False, is_alone=is_unfinished)
    if library.member is not None:
        return Completeness(_is_divided_wheel(Path(library.name.removesuffix(f"!{library.place}"))), is_closed=False)
    path = Path(library.name).resolve()
    site = _find_installation(path)
    if site is not None:
        # The top-level folders of the packages in an environment whose kernels are in other packages.
        found: set[str] = set()
        for info in site.glob("*.dist-info"):
            metadata, record = info / "METADATA", info / "RECORD"
            if _is_divided(read_if_readable(metadata)):
                with suppress(InputError):
                    found |= {entry.path.partition("/")[0] for entry in parse_record(read_if_readable(record), record)}
        return Completeness(path.relative_to(site).parts[0] in found, is_closed=True)
    is_artifact = any((parent / MANIFEST_NAME).is_file() for parent in path.parents)
    return Completeness(is_artifact, is_closed=False, is_alone=not library.place and not is_artifact)


def _is_divided_wheel(path: Path) -> bool:
    try:
        members = {member.name: member for member in read_directory(path)}
        return _is_divided(read_member(members[find_metadata(path, members)]))
    except InputError:
        return False


def _is_divided(metadata: bytes) -> bool:
    try:
        fields, _ = parse_core_metadata(metadata)
    except CoreMetadataError:
        return False
    return is_divided(canonicalize_name(fields.get("name", "")), fields.get("requires_dist", ()))
