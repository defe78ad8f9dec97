"""Imports an install prefix, such as ``/opt/rocm``, as artifacts."""

from __future__ import annotations

import errno
import os
import posixpath
import re
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from packaging.version import Version

from rocwheel.artifacts.artifact import PERMISSIONS, FileKind
from rocwheel.artifacts.import_table import ImportRules, Origin, find_owned_archives
from rocwheel.artifacts.importer import Importer, SourceMember, importing
from rocwheel.artifacts.sdk_files import SdkManifest
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.messages import count, first_of, quoted
from rocwheel.core.progress import SILENT, Progress, step
from rocwheel.core.reading import open_unchanged, read_regular
from rocwheel.core.workers import map_collecting, raise_all

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from rocwheel.artifacts.import_table import ImportTable
    from rocwheel.artifacts.importer import ImportReport


_LIBRARY = re.compile(r"lib(?:64)?/(lib[^/]+)\.so\.[0-9.]*?\.([1-9][0-9]{4,5})")
"""The release at the end of the names of AMD's libraries, such as 6.4.0 in ``libamdhip64.so.6.4.60400``."""
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+ROCM_VERSION_(MAJOR|MINOR|PATCH)[ \t]+([0-9]+)", re.MULTILINE)
_MOST = 20
"""The maximum for a major, minor, or patch number. Higher numbers in names, such as dates, are not releases."""


class Sign(NamedTuple):
    """A file that indicates a release."""

    path: str
    release: str
    """The release, such as ``6.4.0``, without a build number."""
    library: str = ""
    """The name of the library without its version, if the file is a library."""


def stated_signs(root: Path, patterns: Iterable[str]) -> list[Sign]:
    """Return the releases from files that specify them. The files match ``patterns``, in that order.

    Such files are ``.info/version``, ``rocm_version.h``, and ``therock_manifest.json``. Raises `InputError` if a file
    can't be read or has an invalid version.
    """
    paths = dict.fromkeys(path for pattern in patterns for path in sorted(root.glob(pattern)))
    stated = [(str(path.relative_to(root)), _stated(path)) for path in paths]
    return [Sign(path, release) for path, release in stated if release]


def library_signs(paths: Iterable[str]) -> list[Sign]:
    """Return the releases from library names. Other names are skipped."""
    found = ((path, _LIBRARY.fullmatch(path)) for path in paths)
    signs = (Sign(path, _decoded(int(match[2])), match[1]) for path, match in found if match)
    return [sign for sign in signs if sign.release]


def check_one_release(prefix: Path, stated: Sequence[Sign], libraries: Sequence[Sign]) -> None:
    """Raise `InputError` for a prefix with files from several releases.

    Patch numbers may differ, because packagers sometimes rebuild only some libraries for a patch release. However, two
    files of the same library must have the same patch number.
    """
    signs = [*stated, *libraries]
    releases: defaultdict[str, list[Sign]] = defaultdict(list)
    for sign in signs:
        releases[sign.release].append(sign)
    if len({_series(release) for release in releases}) < 2 and not _has_doubles(libraries):
        return
    ordered = sorted(releases, key=lambda release: [int(part) for part in re.findall(r"\d+", release)])
    found = "; ".join(f"{release}: {first_of([sign.path for sign in releases[release]], 2)}" for release in ordered)
    remedy = "Remove the leftovers of the other releases, or install one release into its own folder."
    raise InputError(
        prefix,
        f"contains files from several ROCm releases ({found})",
        expected="files from one release",
        remedy=remedy,
    )


def _has_doubles(libraries: Iterable[Sign]) -> bool:
    """Return whether any library has files from several releases."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for sign in libraries:
        found[sign.library].add(sign.release)
    return any(len(releases) > 1 for releases in found.values())


def _stated(path: Path) -> str:
    try:
        data = read_regular(path)
    except OSError as e:
        raise read_error(path, e) from e
    if path.suffix == ".json":
        return _checked(path, _plain(SdkManifest.parse(data, str(path)).rocm_version))
    text = data.decode("utf-8", "replace")
    if path.suffix == ".h":
        numbers = dict(_DEFINE.findall(text))
        release = ".".join(numbers[name] for name in ("MAJOR", "MINOR", "PATCH")) if len(numbers) == 3 else ""
        return _checked(path, release)
    words = text.split()
    return _checked(path, _plain(words[0]) if words else "")


def _checked(path: Path, release: str) -> str:
    """Return the release, or an empty string if the file doesn't specify one.

    Raises `InputError` if the release isn't a version.
    """
    if not release:
        return release
    try:
        Version(release)
    except ValueError as e:
        remedy = "Correct the file, or remove it and set the version with 'rocwheel build --version'."
        raise InputError(
            path, f"contains the version {quoted(release)}", expected="a version such as 6.4.0", remedy=remedy
        ) from e
    return release


def _plain(text: str) -> str:
    """Return a version without its build number, such as ``6.2.0`` for ``6.2.0-66``."""
    return text.partition("-")[0]


def _decoded(number: int) -> str:
    parts = (number // 10000, number // 100 % 100, number % 100)
    return ".".join(map(str, parts)) if all(part < _MOST for part in parts) else ""


def _series(release: str) -> tuple[int, ...] | str:
    try:
        return Version(release).release[:2]
    except ValueError:
        return release


class _Prefix(NamedTuple):
    given: Path
    """The path as the user specified it, for messages."""
    root: Path
    entries: Sequence[os.DirEntry[str]]
    """All files and links below the prefix."""

    def path_of(self, entry: os.DirEntry[str]) -> str:
        return os.path.relpath(entry.path, self.root)

    @property
    def paths(self) -> list[str]:
        """All paths inside the prefix itself.

        Paths behind links that point outside it, such as ``/opt/rocm/bin``, are excluded.
        """
        return [
            self.path_of(one)
            for one in self.entries
            if not one.is_symlink() or _real(one.path).is_relative_to(self.root)
        ]

    @property
    def files(self) -> list[str]:
        return [self.path_of(entry) for entry in self.entries if not entry.is_symlink()]


def import_prefixes(
    prefixes: Sequence[Path],
    dest: Path,
    table: ImportTable,
    *,
    strict: bool = False,
    progress: Progress = SILENT,
    targets_of: Callable[[str], Collection[str]] = lambda _: (),
) -> ImportReport:
    """Merge prefixes and convert them to artifacts in the folder ``dest``, which must be new or empty.

    There are several prefixes if AMD installs other software next to ROCm, as in ``/opt/rocm/core-10.1`` and
    ``/opt/rocm/extras-10``. Files that match no rule go into the table's catch-all artifact; with ``strict``, they are
    errors. In a Windows prefix, ``targets_of`` finds kernel files next to DLLs that are for a single GPU. These files
    become part of the artifacts for that GPU.

    Raises `InputError` if a prefix can't be read, has no ROCm files, contains complete prefixes, or mixes releases.
    Raises `ProblemsError` for symlinks that point outside the prefix, and for files with the same path but different
    content.
    """
    sources = ", ".join(str(prefix) for prefix in prefixes)
    with step(progress, f"scanning {sources}"):
        opened = map_collecting("the prefixes", lambda prefix: _open_prefix(prefix, dest, table), prefixes)
    version = _common_version(opened, table)
    entries = [(prefix.root, entry) for prefix in opened for entry in prefix.entries]
    raise_all(sources, [problem for prefix in opened for problem in _special_files(prefix)])
    with importing(table, dest, strict=strict) as importer:
        importer.version = version
        regular = {os.path.relpath(e.path, root): Path(e.path) for root, e in entries if not e.is_symlink()}
        with step(progress, f"looking for archives in {sources}"):
            importer.archives = find_owned_archives(regular)
        importer.kernels = dict(_windows_kernels(regular, targets_of))
        progress.begin(f"copying {sources}", sum(entry.stat(follow_symlinks=False).st_size for _, entry in entries))
        for root, entry in entries:
            _add(importer, root, entry)
            progress.advance(entry.stat(follow_symlinks=False).st_size)
        progress.end()
        return importer.finish(sources)


def _windows_kernels(paths: Collection[str], targets_of: Callable[[str], Collection[str]]) -> Iterator[tuple[str, str]]:
    """Yield the kernel files for a single target in the folders of DLLs, with their processors."""
    if not any(posixpath.dirname(path).lower() == "bin" and path.lower().endswith(".dll") for path in paths):
        return
    for path in paths:
        if path.lower().startswith("bin/") and "/library/" in path:
            # NTFS doesn't allow colons in names.
            processors = {target.partition(":")[0] for target in targets_of(path)}
            if len(processors) == 1:
                yield path, processors.pop()


def _open_prefix(given: Path, dest: Path, table: ImportTable) -> _Prefix:
    """Return the contents of a prefix. Raises `InputError` or `ProblemsError` before anything is copied."""
    root = _real(given)
    if not root.is_dir():
        raise InputError(given, "is not a folder", expected="an install prefix such as /opt/rocm")
    if _real(dest).is_relative_to(root):
        raise InputError(dest, f"is inside the prefix {given}", remedy="Choose a folder outside the prefix.")
    unread: list[OSError] = []
    prefix = _Prefix(given, root, tuple(_walk(root, unread)))
    raise_all(str(given), [*_unread_problems(prefix, unread)])
    _check_is_one(prefix, table)
    _check_is_rocm(given, prefix.paths, ImportRules(table))
    return prefix


def _real(path: Path | str) -> Path:
    """Return the resolved path. Unlike `Path.resolve`, this function accepts symlinks that form a loop."""
    return Path(os.path.realpath(path))


def _walk(folder: Path | str, unread: list[OSError]) -> Iterator[os.DirEntry[str]]:
    """Yield files and links below a folder in a fixed order, without following links.

    Errors for folders that can't be listed are added to ``unread``.
    """
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as e:
        unread.append(e)
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, unread)
        else:
            yield entry


def _special_files(prefix: _Prefix) -> Iterator[InputError]:
    for entry in prefix.entries:
        if not entry.is_symlink() and not entry.is_file():
            expected = "files, links, and folders"
            yield InputError(entry.path, "is a device node, socket, or pipe", expected=expected)


def _unread_problems(prefix: _Prefix, folders: Iterable[OSError]) -> Iterator[InputError]:
    """Yield an error for each reason why paths can't be read, because a wrong mode usually affects several paths."""
    by_reason: defaultdict[int | None, list[OSError]] = defaultdict(list)
    for error in (*folders, *_closed_files(prefix)):
        by_reason[error.errno].append(error)
    for errors in by_reason.values():
        paths = sorted(os.path.relpath(error.filename, prefix.root) for error in errors)
        if len(paths) == 1:
            yield read_error(errors[0].filename, errors[0])
        else:
            listed = first_of(paths)
            found = f"contains {len(paths)} files and folders that can't be read ({errors[0].strerror}): {listed}"
            yield InputError(prefix.given, found, remedy="Run the import as a user who can read these files.")


def _closed_files(prefix: _Prefix) -> Iterator[OSError]:
    for entry in prefix.entries:
        if not entry.is_symlink() and not os.access(entry.path, os.R_OK):
            yield PermissionError(errno.EACCES, os.strerror(errno.EACCES), entry.path)


def _add(importer: Importer, root: Path, entry: os.DirEntry[str]) -> None:
    origin = Origin(os.path.relpath(entry.path, root), str(root))
    if entry.is_symlink():
        link, is_outside = _read_link(root, entry.path)
        importer.add(SourceMember(origin, FileKind.SYMLINK, link=link, is_outside=is_outside))
        return
    mode = entry.stat(follow_symlinks=False).st_mode
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_unchanged(Path(entry.path)))
        except OSError as e:
            raise read_error(entry.path, e) from e
        importer.add(SourceMember(origin, FileKind.FILE, mode=mode & PERMISSIONS, content=file))


def _read_link(root: Path, path: str) -> tuple[str, bool]:
    """Return a link's target, and whether the target is absolute and outside the prefix.

    An absolute target inside the prefix becomes relative to the prefix. The prefix can have several names, such as
    ``/opt/rocm`` for ``/opt/rocm-6.2.0``. Its folders can also have several names, such as ``/opt/rocm/lib`` for
    ``/opt/rocm/core-7.14/lib``.
    """
    raw = Path(path).readlink()
    if not raw.is_absolute():
        return str(raw), False
    for folder in (*reversed(raw.parents), raw):
        real = _real(folder)
        if real.is_relative_to(root):
            return f"/{os.path.normpath(real.relative_to(root) / raw.relative_to(folder))}", False
    return str(raw), True


def _common_version(prefixes: Iterable[_Prefix], table: ImportTable) -> str:
    """Return the version that the prefixes or all their libraries specify, or an empty string if it is unknown.

    Files that are installed next to ROCm may have no version, but they must not have a different version.
    """
    versions: dict[str, Path] = {}
    for prefix in prefixes:
        version = _sdk_version(prefix, table)
        first = next(iter(versions), version)
        if version and version != first:
            found = f"is from ROCm {version}, but {versions[first]} is from {first}"
            raise InputError(prefix.given, found, remedy="Import each release separately.")
        if version:
            versions[version] = prefix.given
    return next(iter(versions), "")


def _sdk_version(prefix: _Prefix, table: ImportTable) -> str:
    stated, libraries = stated_signs(prefix.root, table.version_from), library_signs(prefix.files)
    check_one_release(prefix.given, stated, libraries)
    named = {sign.release for sign in libraries}
    return stated[0].release if stated else named.pop() if len(named) == 1 else ""


def _check_is_one(prefix: _Prefix, table: ImportTable) -> None:
    """Raise `InputError` for a folder that contains prefixes, such as ``/opt/rocm`` since ROCm 7.10."""
    found = stated_signs(prefix.root, [f"*/{pattern}" for pattern in table.version_from])
    names = sorted({sign.path.partition("/")[0] for sign in found})
    own = sorted(name for name in names if not (prefix.root / name).is_symlink())
    if own:
        is_one = len(own) == 1
        message = f"is not a prefix, but contains {'a prefix' if is_one else 'several prefixes'}: {', '.join(own)}"
        folders = " or ".join(str(prefix.given / name) for name in own)
        raise InputError(prefix.given, message, remedy=f"Specify {folders}.")


def _check_is_rocm(prefix: Path, paths: Sequence[str], rules: ImportRules) -> None:
    """Raise `InputError` before anything is copied if a folder has no file that is specific to ROCm."""
    if any(map(rules.tells, paths)):
        return
    below = sorted({path.partition("/")[0] for path in paths if rules.tells(path.partition("/")[2])})
    found = f"has no file that is specific to ROCm ({count(len(paths), 'file')} checked)"
    inside = f"Specify the prefix itself: {first_of([str(prefix / name) for name in below])}."
    raise InputError(prefix, found, remedy=inside if below else "Check the path, or the --table option.")
