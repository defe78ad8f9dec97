"""Builds a wheel (binary distribution format 1.0) from a description and the outputs of a build."""

from __future__ import annotations

import posixpath
import re
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec
from packaging.metadata import ExceptionGroup, InvalidMetadata
from packaging.specifiers import SpecifierSet

from rocwheel.binary.elf.facts import Elf, read_elf
from rocwheel.binary.kind import is_elf
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.progress import SILENT, Progress, step
from rocwheel.core.reading import FileRange, read_regular
from rocwheel.core.workers import open_workers
from rocwheel.frameworks.wheel_spec import SpecError
from rocwheel.wheels.content import BytesContent, Content, FileContent
from rocwheel.wheels.metadata import CoreMetadata, metadata_files
from rocwheel.wheels.platform_floor import host_machines, platform_floor
from rocwheel.wheels.sdist import SourceDate
from rocwheel.wheels.tags import check_platform_of_files
from rocwheel.wheels.writing import WheelName, write_wheels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rocwheel.frameworks.wheel_spec import WheelSpec


_PATTERN_CHARACTERS = set("*?[")
_ESCAPE = re.compile(r"\\[snb]")
_KEY_ESCAPES = {"\\s": " ", "\\n": "\n", "\\b": "\\"}
_PATH_ESCAPES = {"\\n": "\n", "\\b": "\\"}


class InputFiles:
    """The input files for a wheel. Sources that are listed first take precedence."""

    def __init__(self, sources: Iterable[Path], manifest: Mapping[str, Path] | None = None) -> None:
        self._sources = tuple(sources)
        self._manifest = dict(manifest or {})
        for path in self._sources:
            if not path.exists():
                raise InputError(path, "does not exist", remedy="Build the source, or correct --src.")

    def find(self, wanted: str) -> dict[str, Path]:
        """Return the files whose path ends with ``wanted``, keyed by file name. Patterns work as in a shell.

        Raises `InputError` if no file matches, or if two different files match a path without patterns. Raises the same
        error if two files that match a pattern have the same name.
        """
        return self._found(wanted, depth=1)

    def texts(self, wanted: str) -> dict[str, Path]:
        """Return the files, keyed by the trailing part of their path that matches.

        File names aren't sufficient keys, because several folders can contain files with the same name.
        """
        return self._found(wanted, depth=len(PurePosixPath(wanted).parts))

    def _found(self, wanted: str, depth: int) -> dict[str, Path]:
        for found in self._candidates(wanted):
            if found:
                return self._by_end(wanted, found, depth)
        places = ", ".join([*map(str, self._sources), *(["the runfiles manifest"] if self._manifest else [])])
        remedy = "Build the target that creates this file, or pass the file's folder with --src."
        raise InputError(wanted, f"isn't among the inputs ({places or 'there are no inputs'})", remedy=remedy)

    def _candidates(self, wanted: str) -> Iterator[list[Path]]:
        yield [path for path in self._sources if path.is_file() and PurePosixPath(path).match(wanted)]
        for folder in self._sources:
            if folder.is_dir():
                yield [path for path in sorted(folder.glob(wanted)) if path.is_file()]
                yield [path for path in sorted(folder.rglob(wanted)) if path.is_file()]
        yield [path for key, path in sorted(self._manifest.items()) if PurePosixPath(key).match(wanted)]

    def _by_end(self, wanted: str, found: list[Path], depth: int) -> dict[str, Path]:
        """Return the files, keyed by the last ``depth`` parts of their paths.

        Links to the same file count as one file.
        """
        is_pattern = bool(_PATTERN_CHARACTERS & set(wanted))
        ends: dict[str, Path] = {}
        for path in found:
            end = PurePosixPath(*path.parts[-depth:]).as_posix()
            other = ends.setdefault(end, path) if is_pattern else found[0]
            if other.resolve() != path.resolve():
                several = "inputs with the same name" if is_pattern else "inputs"
                remedy = "Use a longer path suffix in the description."
                raise InputError(
                    wanted, f"matches several {several}: {other} and {path}", expected="one file", remedy=remedy
                )
            ends[end] = path
        return ends


def _lines(path: Path) -> list[str]:
    return read_regular(path).decode().replace("\r\n", "\n").split("\n")


def read_source_list(path: Path) -> tuple[Path, ...]:
    """Read a file that lists the path of an input on each line. Raises `InputError` if the file can't be read."""
    try:
        return tuple(Path(line) for line in _lines(path) if line)
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(path, f"can't be read as a list of inputs ({e})", remedy="Check --src-list.") from e


def read_runfiles_manifest(path: Path) -> dict[str, Path]:
    """Read Bazel's ``MANIFEST`` or ``*.runfiles_manifest`` file.

    Each line contains a name, a space, and the file's path.

    If a line begins with a space, both parts contain escapes (Bazel 7.4). Empty generated files have no path and are
    skipped. Raises `InputError` if the file can't be read or has other lines.
    """
    try:
        lines = _lines(path)
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(path, f"can't be read as a runfiles manifest ({e})") from e
    rows = (_manifest_row(path, number, line) for number, line in enumerate(lines, 1) if line)
    return {name: Path(target) for name, target in rows if target}


def _manifest_row(path: Path, number: int, line: str) -> tuple[str, str]:
    escaped = line.startswith(" ")
    name, space, target = line.removeprefix(" ").partition(" ")
    if not space:
        expected = "a name, a space, and a path"
        raise InputError(
            path, f"line {number} is {line!r}", expected=expected, remedy="Check whether this file is Bazel's MANIFEST."
        )
    if escaped:
        name = _ESCAPE.sub(lambda match: _KEY_ESCAPES[match[0]], name)
        target = _ESCAPE.sub(lambda match: _PATH_ESCAPES.get(match[0], match[0]), target)
    return name, target


_STAMP_OPTION = "--commit"
_COMMIT = re.compile(r"[0-9a-f]{7,64}")


def render_version(version: str) -> str:
    """Return ``version.py``. JAX compares ``__version__`` with its own version."""
    return f'"""The version of this package."""\n\n__version__ = "{version}"\n'


def render_commit_info(commits: Mapping[str, str]) -> str:
    """Return ``commit_info.py``, which lists the commit of each repository, sorted by name."""
    rows = "".join(f'    "{name}": "{commit}",\n' for name, commit in sorted(commits.items()))
    return f'"""The commits that this package was built from."""\n\ncommits = {{\n{rows}}}\n'


def parse_commits(texts: Iterable[str], source: str = _STAMP_OPTION) -> dict[str, str]:
    """Parse ``REPOSITORY=COMMIT`` words with hexadecimal commits. Raises `InputError` for any other word.

    ``source`` is the origin of the words, for error messages.
    """
    commits: dict[str, str] = {}
    for text in texts:
        name, equals, commit = text.rpartition("=")
        if not equals or not re.fullmatch(r"[\w./-]+", name) or not _COMMIT.fullmatch(commit):
            expected = "REPOSITORY=COMMIT with a commit of 7 to 64 hexadecimal digits"
            raise InputError(
                source,
                f"is {text!r}",
                expected=expected,
                remedy="Check whether the command that looks up the commit failed.",
            )
        if commits.setdefault(name, commit) != commit:
            raise InputError(source, f"has two commits for {name}: {commits[name]} and {commit}", expected="one commit")
    return commits


ANY_PYTHON = "py3-none"
"""The tag of wheels without extension modules."""

_TAG_OPTION = "--python-version"
_STABLE = ".abi3.so"
_PYTHON = re.compile(r"3\.([0-9]{1,2})")
_FREE_THREADED = re.compile(r"3\.(1[3-9]|[2-9][0-9])-ft")
_MINORS = range(100)
_MICROS = range(50)
_NAMED = re.compile(r"\.cpython-3([0-9]{1,2})(t?)-[\w-]+\.so$")
_ENTRY_POINT_STEP = 16 << 20


def is_importable_by_name(place: str, source: FileRange) -> bool:
    """Return whether a shared library has the initialization function that an import by its file name requires."""
    wanted = b"\0PyInit_" + posixpath.basename(place).partition(".")[0].encode() + b"\0"
    with source.view() as data:
        return any(
            wanted in bytes(data[start : start + _ENTRY_POINT_STEP + len(wanted)])
            for start in range(0, len(data), _ENTRY_POINT_STEP)
        )


def python_tag(extensions: Iterable[str], python: str = "", requires_python: str = "") -> str:
    """Return the Python and ABI tags, such as ``cp312-cp312``, for a wheel with these extension modules.

    ``python`` is a version such as ``3.12``, or ``3.13-ft`` for the free-threaded build. Without ``python``, the
    modules' names determine the tags. If all modules use the stable ABI, the oldest version in ``requires_python``
    determines the tags.

    Raises `InputError` if the tags can't be determined, or if ``python``, the names, and ``requires_python`` conflict.
    """
    modules = sorted(extensions)
    if not modules and python:
        remedy = "Remove the option: wheels without extension modules work with every Python version."
        raise InputError(_TAG_OPTION, f"is {python}, but no file is an extension module", remedy=remedy)
    if not modules:
        return ANY_PYTHON
    named = {place: _tag(*match.groups()) for place in modules if (match := _NAMED.search(place))}
    is_stable = all(place.endswith(_STABLE) for place in modules)
    wanted = _asked_tag(python) if python else next(iter(named.values()), "")
    wanted = wanted or (_oldest_tag(requires_python) if is_stable else "")
    if not wanted:
        remedy = "Add --python-version, such as --python-version 3.12."
        raise InputError(modules[0], "is an extension module whose name has no Python version", remedy=remedy)
    _check_modules(modules, named, wanted)
    _check_requirement(modules[0], wanted, requires_python, is_stable=is_stable)
    return f"{wanted.partition('-')[0]}-abi3" if is_stable else wanted


def _asked_tag(python: str) -> str:
    match = _PYTHON.fullmatch(python) or _FREE_THREADED.fullmatch(python)
    if match is None:
        raise InputError(_TAG_OPTION, f"is {python!r}", expected="a version such as 3.12 or 3.13-ft")
    return _tag(match[1], "t" if match.re is _FREE_THREADED else "")


def _oldest_tag(requires_python: str) -> str:
    """Return the tag for the oldest allowed Python, or an empty string if all versions are allowed."""
    specifiers = SpecifierSet(requires_python)
    oldest = next((minor for minor in _MINORS if _admits(specifiers, minor)), 0)
    return _tag(str(oldest), "") if oldest else ""


def _check_modules(modules: Iterable[str], named: Mapping[str, str], wanted: str) -> None:
    """Raise `InputError` for a module that the Python version in a tag can't import."""
    for place in modules:
        if named.get(place, wanted) != wanted:
            raise InputError(place, f"is an extension module for {named[place]}", expected=f"a module for {wanted}")
        if place.endswith(_STABLE) and wanted.endswith("t"):
            found = "is for the stable ABI, which free-threaded Python versions can't load"
            raise InputError(place, found, expected=f"a module for {wanted}")


def _check_requirement(place: str, tag: str, requires_python: str, *, is_stable: bool) -> None:
    """Raise `InputError` if ``requires_python`` allows none of the Python versions that a tag covers.

    With the stable ABI, a tag also covers later versions.
    """
    specifiers, minor = SpecifierSet(requires_python), int(tag.partition("-")[0].removeprefix("cp3"))
    if not any(_admits(specifiers, later) for later in (_MINORS[minor:] if is_stable else (minor,))):
        remedy = "Correct --python-version, or the description's requires-python."
        raise InputError(place, f"is for Python 3.{minor}", expected=f"one of {requires_python}", remedy=remedy)


def _admits(specifiers: SpecifierSet, minor: int) -> bool:
    """Return whether the specifiers allow any release of a minor version."""
    return any(specifiers.contains(f"3.{minor}.{micro}") for micro in _MICROS)


def _tag(minor: str, threading: str) -> str:
    return f"cp3{minor}-cp3{minor}{threading}"


_EXECUTABLE = 0o755
_PLAIN = 0o644
_LIBRARY_NAME = re.compile(r"\.so(\.[0-9]+)*$")


class DraftMember(msgspec.Struct, frozen=True):
    """A file of an unwritten wheel."""

    place: str
    """The path in site-packages."""
    content: Content
    mode: int = _PLAIN
    elf: Elf | None = None
    origin: str = ""
    """The path of the source file in the build output. Empty for a generated file."""


class WheelDraft(msgspec.Struct, frozen=True):
    """An unwritten wheel."""

    name: WheelName
    members: tuple[DraftMember, ...]
    metadata: dict[str, bytes]
    """The files in ``.dist-info`` except for RECORD, keyed by their path in that folder."""
    floor_reason: str
    """The symbol version and the file that determine the platform tag. Empty if the wheel works on any platform."""


def draft_wheel(
    spec: WheelSpec,
    inputs: InputFiles,
    *,
    commits: Mapping[str, str] | None = None,
    python: str = "",
    platform_tag: str = "",
) -> WheelDraft:
    """Return the unwritten wheel for a description and inputs, with its tags and metadata.

    Raises `InputError` for a missing or damaged input, and `ProblemsError` for all problems with the wheel.
    """
    members = sorted([*_outputs(spec, inputs), *_texts(spec, commits or {})], key=lambda member: member.place)
    licenses = {place: path.read_bytes() for text in spec.license_files for place, path in inputs.texts(text).items()}
    if problems := [*_problems(spec, members), *_damaged(members)]:
        raise ProblemsError(spec.name, problems)
    floor = platform_floor((member.place, member.elf) for member in members if member.elf)
    if platform_tag:
        check_platform_of_files(platform_tag, floor)
    else:
        _check_machines(members)
    modules = [member.place for member in members if _is_extension(member)]
    tags = python_tag(modules, python, spec.requires_python)
    tag = f"{tags}-{platform_tag or (floor.tag if floor else 'any')}"
    is_purelib = tag == f"{ANY_PYTHON}-any"
    name = WheelName(spec.name, spec.version, tag)
    metadata = _metadata_files(spec, tag, licenses, is_purelib=is_purelib)
    return WheelDraft(name, tuple(members), metadata, floor.reason if floor else "")


def write_draft(
    draft: WheelDraft,
    path: Path,
    source_date: SourceDate = SourceDate(),  # noqa: B008 (a value)
    progress: Progress = SILENT,
) -> None:
    """Write the wheel to ``path`` atomically. Raises `WorkError` on failure."""
    size = sum(member.content.size for member in draft.members)
    packing = step(progress, f"packing {path.name}", size)
    with packing, open_workers() as executor, write_wheels(executor, source_date.zip_time, progress=progress) as packer:
        wheel = packer.open(path, dist_info=draft.name.dist_info)
        for member in draft.members:
            wheel.add(member.place, member.mode, member.content)
        wheel.close(draft.metadata)


def _outputs(spec: WheelSpec, inputs: InputFiles) -> Iterator[DraftMember]:
    for output in spec.files:
        found = inputs.find(output.source)
        if not output.place.endswith("/") and len(found) > 1:
            where = f"{output.place}/"
            raise SpecError(spec.name, f"puts {len(found)} files at {output.place}", expected=f"a folder, {where!r}")
        for name, path in found.items():
            place = posixpath.join(output.place, name) if output.place.endswith("/") else output.place
            source = FileRange.whole(path)
            with source.view() as data:
                elf = read_elf(data, name=str(path)) if is_elf(data) else None
            mode = _EXECUTABLE if elf is not None and elf.is_host_code else _PLAIN
            yield DraftMember(place, FileContent(source), mode, elf, str(path))


def _texts(spec: WheelSpec, commits: Mapping[str, str]) -> Iterator[DraftMember]:
    texts = dict(spec.texts)
    if spec.stamp.version:
        texts[spec.stamp.version] = render_version(spec.version)
    if spec.stamp.commits:
        texts[spec.stamp.commits] = render_commit_info(commits)
    for place, text in texts.items():
        yield DraftMember(place, BytesContent(text.encode()))


def _is_extension(member: DraftMember) -> bool:
    is_library = member.elf is not None and member.elf.is_shared_library
    return (
        is_library
        and isinstance(member.content, FileContent)
        and is_importable_by_name(member.place, member.content.source)
    )


def _problems(spec: WheelSpec, members: Sequence[DraftMember]) -> Iterator[SpecError]:
    for one, other in pairwise(members):
        if one.place == other.place:
            origins = f"{one.origin or 'a generated text'} and {other.origin or 'a generated text'}"
            yield SpecError(spec.name, f"puts two files at {one.place}: {origins}", expected="one file")
    places = {member.place for member in members}
    for namespace in spec.namespaces:
        module = f"{namespace.replace('.', '/')}/__init__.py"
        if module in places:
            remedy = "Remove this file, because it would shadow the namespace's other distributions."
            yield SpecError(spec.name, f"has {module}, but shares {namespace} with other distributions", remedy=remedy)
    for group, names in spec.entry_points.items():
        for name, value in names.items():
            path = value.partition(":")[0].strip().replace(".", "/")
            if f"{path}.py" not in places and f"{path}/__init__.py" not in places:
                found = f"has the entry point {group}: {name} = {value}, but not its module"
                yield SpecError(spec.name, found, expected=f"{path}/__init__.py or {path}.py in the wheel")


def _damaged(members: Sequence[DraftMember]) -> Iterator[InputError]:
    """Yield an error for each file that is named like a shared library but isn't one."""
    for member in members:
        if _LIBRARY_NAME.search(member.place) and (member.elf is None or not member.elf.is_shared_library):
            found = (
                "isn't an ELF file"
                if member.elf is None
                else f"is a different kind of ELF file ({member.elf.kind.value})"
            )
            expected = f"a shared library for {member.place}"
            yield InputError(member.origin or member.place, found, expected=expected, remedy="Build the library again.")


def _check_machines(members: Iterable[DraftMember]) -> None:
    """Raise `InputError` for a program or library whose machine has no known platform tag."""
    for member in members:
        elf = member.elf
        if elf and elf.is_host_code and elf.machine not in host_machines():
            found = f"is for a machine without a known platform tag (ELF machine {elf.machine})"
            raise InputError(member.origin, found, remedy="Specify --platform-tag.")


def _metadata_files(spec: WheelSpec, tag: str, licenses: Mapping[str, bytes], *, is_purelib: bool) -> dict[str, bytes]:
    metadata = CoreMetadata(
        spec.name,
        spec.version,
        spec.summary,
        requires_python=spec.requires_python,
        license_expression=spec.license,
        license_files=tuple(sorted(licenses)),
        requires=spec.requires,
        extras=spec.extras,
    )
    texts = {f"licenses/{name}": data for name, data in sorted(licenses.items())}
    try:
        return texts | metadata_files(metadata, tag, is_purelib=is_purelib, entry_points=spec.entry_points)
    except (ExceptionGroup, InvalidMetadata) as e:
        problems = [SpecError(spec.name, str(problem)) for problem in getattr(e, "exceptions", [e])]
        raise ProblemsError(spec.name, problems) from e
