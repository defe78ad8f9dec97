"""Reads a distribution's metadata, and finds the names of libraries in its files.

A binary that assembles names at run time contains ``lib%s.so``, ``lib{}.so``, or ``.so``.
"""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from email.parser import BytesParser
from pathlib import Path
from typing import TYPE_CHECKING, Final

from packaging.metadata import ExceptionGroup, InvalidMetadata, Metadata
from packaging.utils import canonicalize_name, is_normalized_name
from packaging.version import Version

from rocwheel.core.decoding import parse_python
from rocwheel.core.errors import InputError, ProblemsError, each_problem
from rocwheel.core.messages import quoted
from rocwheel.core.reading import load
from rocwheel.environment.tree import Distribution, MetadataProblem
from rocwheel.targets.declaration import DECLARATION_NAME, decode_declaration
from rocwheel.wheels.file_names import name_and_version, split_label
from rocwheel.wheels.metadata import (
    OBJECT_REFERENCE,
    SCRIPT_GROUPS,
    CoreMetadataError,
    has_licenses_folder,
    is_function_reference,
    parse_core_metadata,
    parse_entry_points,
)
from rocwheel.wheels.record import parse_record
from rocwheel.wheels.sbom import SBOM_NAME, find_unlicensed
from rocwheel.wheels.variants import load_draft, read_wheel_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from email.message import Message

    from packaging.metadata import RawMetadata

    from rocwheel.core.reading import Data
    from rocwheel.wheels.record import RecordEntry


_SOURCE = ".py"
# The searches find a rare part of a name and then look back for its start. A pattern that starts with an arbitrary word
# takes quadratic time for a long run of letters, such as embedded data.
_IN_SOURCE = re.compile(rb"\.so\b[.0-9]*|\blib[\w+-]{2,}(?P<ending>\.so\b[.0-9]*)?")
_LOADER_WORD = re.compile(rb"\b(?:add_dll_directory|rocm_sdk)\b")
_DLL_NAME = re.compile(rb"(?<![\w+.-])[\w+.-]{1,120}\.dll\b")
_SOURCE_START = re.compile(rb"[\w+-]*\Z")
_END = re.compile(rb"\.so[.0-9]*(?=\0)")
"""The end of a string in a binary."""
_START = re.compile(rb"[\w+.%{}-]*\Z")
"""The part of a name before the file extension. It can include a format directive (``lib%s.so``)."""
_LONGEST = 128
"""The number of bytes to look back."""
_PIECE = 4 << 20


def is_source(name: str) -> bool:
    """Return whether a file is Python source, judging by its name. Python source can open libraries by name."""
    return name.endswith(_SOURCE)


def mentioned_in_source(text: bytes) -> frozenset[str]:
    """Return possible names of libraries in a program's text: ``libdemo.so.1``, and ``libdemo``.

    The result includes ``add_dll_directory`` and ``rocm_sdk``, with which a program adds folders to the search path of
    the Windows loader. It also includes complete DLL names, because a program can open DLLs by path.
    """
    words = (word.decode(errors="replace") for found in (_LOADER_WORD, _DLL_NAME) for word in found.findall(text))
    return frozenset((*_source_names(text), *words))


def _source_names(text: bytes) -> Iterator[str]:
    searched = 0
    for match in _IN_SOURCE.finditer(text):
        is_beginning = match[0].startswith(b"lib") and match["ending"] is None
        first = match.start() if is_beginning else max(searched, match.start() - _LONGEST)
        yield (_last(_SOURCE_START, text[first : match.start()]) + match[0]).decode(errors="replace")
        searched = match.end()


def mentioned_in_binary(data: Data) -> frozenset[str]:
    """Return the library names at the ends of strings in a binary, including its own SONAME."""
    found: set[str] = set()
    for start in range(0, len(data), _PIECE):
        # The parts overlap. If they are already in memory, they aren't copied.
        first = max(start - 2 * _LONGEST, 0)
        found.update(_names(load(data[first : start + _PIECE]), start - first))
    return frozenset(found)


def _names(window: memoryview, known: int) -> Iterator[str]:
    """Yield the names that end after the first ``known`` bytes, which an earlier search covered."""
    for match in _END.finditer(window):
        if match.end() >= known:
            before = window[max(0, match.start() - _LONGEST) : match.start()]
            yield (_last(_START, before) + match[0]).decode(errors="replace")


def _last(name: re.Pattern[bytes], text: bytes | memoryview) -> bytes:
    found = name.search(text)
    return found[0] if found else b""


MOST_MODULE: Final = 256 << 10
"""The maximum size of a checked module, in bytes. A Python syntax tree uses 300 times as much memory as the text."""
_MOST_TOGETHER = 1 << 20
"""The total size of the checked modules in a distribution, in bytes."""

_BUILT = (".so", ".pyd")
_DYNAMIC = {"globals", "vars", "setattr", "exec"}
"""Calls that may define names without mentioning them in the module's text."""


def find_script_problems(
    text: bytes, paths: Collection[str], read: Callable[[str], bytes | None]
) -> Iterator[MetadataProblem]:
    """Yield the problems with the commands in ``entry_points.txt``.

    ``paths`` are the distribution's paths in site-packages. ``read`` returns the contents of a path, or `None` if the
    path isn't checked. Modules of other distributions, modules that define names only at run time, and modules beyond a
    size limit aren't checked either.
    """
    try:
        groups = parse_entry_points("", text, strict=True)
    except InputError as e:
        yield MetadataProblem(e.found, ("unreadable", "entry_points.txt"))
        return
    modules = _Modules(read)
    for group in SCRIPT_GROUPS:
        for name, reference in groups.get(group, {}).items():
            if found := _problem(reference, paths, modules):
                kind = "script" if is_function_reference(reference) else "reference"
                yield MetadataProblem(f"the command {quoted(name)} {found}", (kind, name))


def read_commands(text: bytes) -> tuple[tuple[str, str], ...]:
    """Return the names and object references of the commands in a readable ``entry_points.txt``."""
    with suppress(InputError):
        groups = parse_entry_points("", text)
        return tuple(command for group in SCRIPT_GROUPS for command in groups.get(group, {}).items())
    return ()


class _Modules:
    """The names that modules define. Each module is read only once, and its syntax tree isn't kept."""

    def __init__(self, read: Callable[[str], bytes | None]) -> None:
        self._read, self._left = read, _MOST_TOGETHER
        self._names: dict[str, frozenset[str] | None] = {}

    def names(self, path: str) -> frozenset[str] | None:
        """Return all names that a module binds, or `None` if the module isn't checked.

        ``*`` means unknown names.
        """
        if path not in self._names:
            self._names[path] = self._parsed(path)
        return self._names[path]

    def _parsed(self, path: str) -> frozenset[str] | None:
        text = self._read(path) if self._left else None
        if text is None or len(text) > MOST_MODULE:
            return None
        self._left = max(self._left - len(text), 0)
        try:
            return frozenset(name for node in ast.walk(parse_python(text, path)) for name in _bound(node))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _problem(reference: str, paths: Collection[str], modules: _Modules) -> str:
    """Return the problem with an object reference, or an empty string if no problem is known."""
    match = OBJECT_REFERENCE.fullmatch(reference.strip())
    if match is None or not match["attribute"]:
        return f"has no function: expected module:function, found {quoted(reference)}"
    module = match["module"].replace(".", "/")
    if path := next((one for one in (f"{module}.py", f"{module}/__init__.py") if one in paths), ""):
        names, name = modules.names(path), match["attribute"].partition(".")[0]
        if names is None or name in names or names & {"*", "__getattr__"}:
            return ""
        return f"calls {name} in {path}, which doesn't define it"
    is_own = f"{module.partition('/')[0]}/__init__.py" in paths
    is_built = any(one.startswith(f"{module}.") and one.endswith(_BUILT) for one in paths)
    return f"calls a function in {match['module']}, which isn't in the package" if is_own and not is_built else ""


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _DYNAMIC:
        yield "*"


_VARIANT = load_draft().names.in_wheel
ENTRY_POINTS = "entry_points.txt"
INFO_FILES = ("METADATA", "WHEEL", "RECORD", DECLARATION_NAME, SBOM_NAME, _VARIANT)
"""The files in ``.dist-info`` that `read_distribution` reads."""

_JUDGED = {"name", "version", "requires-dist"}
"""Fields that must exist and be valid for installers."""
_READ = {*_JUDGED, "license-file", "license-expression", "provides-extra"}
_WHEEL_FIELDS = ("Wheel-Version", "Root-Is-Purelib", "Tag")


def read_distribution(
    texts: Mapping[str, bytes], *, source: str, dist_info: str, is_wheel: bool, is_context: bool = False
) -> Distribution:
    """Read the texts of the files in ``.dist-info``, keyed by name.

    Missing and unreadable files are recorded as problems.
    """
    absent = [name for name in ("METADATA", "WHEEL", "RECORD") if name not in texts]
    fields, ill_fields = _read_metadata(texts.get("METADATA"), Path(source).name if is_wheel else dist_info)
    wheel, ill_wheel = _read_wheel(texts.get("WHEEL"))
    record, ill_record = _read_record(texts.get("RECORD"))
    targets, ill_targets = _read_names(
        texts.get(DECLARATION_NAME),
        DECLARATION_NAME,
        lambda text: decode_declaration(text, source=DECLARATION_NAME).rocm_targets,
    )
    unlicensed, ill_bill = _read_names(texts.get(SBOM_NAME), SBOM_NAME, lambda text: find_unlicensed(text, SBOM_NAME))
    problems = [MetadataProblem(f"{dist_info} has no {name}", ("absent", name)) for name in absent]
    ill_variant = _variant_problems(texts.get(_VARIANT), Path(source).name, dist_info) if is_wheel else ()
    return Distribution(
        name=canonicalize_name(fields.get("name", "")),
        version=fields.get("version", ""),
        source=source,
        dist_info=dist_info,
        requires=tuple(fields.get("requires_dist", ())),
        extras=tuple(fields.get("provides_extra", ())),
        license_files=tuple(fields.get("license_files", ())),
        metadata_version=fields.get("metadata_version", ""),
        license=_license(fields),
        tags=tuple(str(tag).strip() for tag in wheel.get_all("Tag", [])),
        is_purelib=str(wheel.get("Root-Is-Purelib", "")).strip().lower() == "true",
        record=record,
        is_wheel=is_wheel,
        is_context=is_context,
        targets=targets,
        unlicensed=unlicensed,
        invalid=tuple(_find_invalid(texts.get("METADATA", b""))) if is_wheel else (),
        problems=(*problems, *ill_fields, *ill_record, *ill_wheel, *ill_targets, *ill_bill, *ill_variant),
    )


def _read_metadata(data: bytes | None, named: str) -> tuple[RawMetadata, list[MetadataProblem]]:
    """Return METADATA's fields, and the problems with its required fields."""
    if data is None:
        return {}, []
    fields, unreadable = _read_fields(data)
    return fields, [*unreadable, *_metadata_problems(fields, named)]


def _find_invalid(data: bytes) -> Iterator[MetadataProblem]:
    """Yield the fields in readable METADATA that twine and PyPI reject: unknown fields and malformed values.

    Like twine, this function accepts License-File in metadata before version 2.4, because build tools wrote it before
    it was standard. METADATA in a version that ``packaging`` doesn't know yet isn't checked.
    """
    try:
        fields, unknown = parse_core_metadata(data)
    except CoreMetadataError:
        return
    if not has_licenses_folder(fields.get("metadata_version", "")):
        fields.pop("license_files", None)
    # These fields are checked separately, because packaging fails for versions with 4,300 digits and nested brackets.
    fields.pop("version", None)
    fields.pop("requires_dist", None)
    errors: Sequence[Exception] = ()
    try:
        Metadata.from_raw(fields)
    except ExceptionGroup as e:
        errors = e.exceptions
    found = {one.field: str(one) for one in errors if isinstance(one, InvalidMetadata)}
    found |= {name.lower(): "an unknown or malformed field of core metadata" for name in unknown}
    if "metadata-version" not in found:
        for name in sorted(found.keys() - _JUDGED - (_READ & unknown.keys())):
            yield MetadataProblem(f"METADATA has an invalid {name}: {found[name]}", ("invalid", name))


def _license(fields: RawMetadata) -> str:
    classifiers = [text for text in fields.get("classifiers", ()) if text.startswith("License ::")]
    return fields.get("license_expression", "") or fields.get("license", "") or ", ".join(classifiers)


def _read_wheel(data: bytes | None) -> tuple[Message, list[MetadataProblem]]:
    wheel = BytesParser().parsebytes(data or b"", headersonly=True)
    absent = [name for name in _WHEEL_FIELDS if not wheel.get(name)] if data is not None else []
    return wheel, [_no_field("WHEEL", name) for name in absent]


def _read_fields(data: bytes) -> tuple[RawMetadata, list[MetadataProblem]]:
    try:
        fields, unknown = parse_core_metadata(data)
    except CoreMetadataError as e:
        return {}, [MetadataProblem(f"METADATA can't be read: {e}", ("unreadable", "METADATA"))]
    judged = [field for field in unknown if field.lower() in _READ]
    return fields, [MetadataProblem(f"METADATA: {name} can't be read", ("unreadable", name)) for name in judged]


def _no_field(file: str, name: str) -> MetadataProblem:
    return MetadataProblem(f"{file} has no {name}", ("absent", file, name))


def _read_names(
    text: bytes | None, name: str, read: Callable[[bytes], tuple[str, ...]]
) -> tuple[tuple[str, ...], list[MetadataProblem]]:
    """Return the names in a file's text, and the file's problems. Both are empty for a missing file."""
    try:
        return () if text is None else read(text), []
    except InputError as e:
        return (), [MetadataProblem(str(e), ("unreadable", name))]


def _variant_problems(data: bytes | None, wheel: str, dist_info: str) -> tuple[MetadataProblem, ...]:
    """Return a problem if a wheel's name doesn't match its ``variant.json``. An installed variant has no such name."""
    try:
        read_wheel_text(data, label=split_label(wheel)[1], wheel=wheel, dist_info=dist_info)
    except (InputError, ProblemsError) as e:
        return tuple(
            MetadataProblem(str(one).removeprefix(wheel).lstrip("!: "), ("variant",)) for one in each_problem([e])
        )
    return ()


def _metadata_problems(fields: RawMetadata, named: str) -> list[MetadataProblem]:
    """Return the problems with the fields that METADATA requires.

    ``named`` is the name of the wheel or folder, which must start with the same name and version.
    """
    given = {"Metadata-Version": "metadata_version", "Name": "name", "Version": "version"}
    problems = [_no_field("METADATA", field) for field, key in given.items() if not fields.get(key)]
    name, version = fields.get("name", ""), fields.get("version", "")
    if name and not is_normalized_name(canonicalize_name(name)):
        problems.append(MetadataProblem(f"METADATA: {quoted(name)} isn't a valid name", ("name",)))
    if version and _parse_version(version) is None:
        problems.append(MetadataProblem(f"METADATA: {quoted(version)} isn't a valid version (PEP 440)", ("version",)))
    if not problems and not _is_named(named, name, version):
        found = f"METADATA has {name} {version}, but the file name is {named}"
        problems.append(MetadataProblem(found, ("other name",)))
    return problems


def _is_named(named: str, name: str, version: str) -> bool:
    own_name, own_version = name_and_version(named)
    is_same = canonicalize_name(own_name) == canonicalize_name(name)
    return is_same and _parse_version(own_version) == _parse_version(version)


def _parse_version(text: str) -> Version | None:
    # Old build tools write the "+" before a local version as "_" in file names.
    for spelling in (text, text.replace("_", "+", 1)):
        with suppress(ValueError):
            return Version(spelling)
    return None


def _read_record(data: bytes | None) -> tuple[tuple[RecordEntry, ...], list[MetadataProblem]]:
    if data is None:
        return (), []
    try:
        record = parse_record(data, "RECORD")
        return record, [] if record else [MetadataProblem("RECORD is empty", ("empty", "RECORD"))]
    except InputError as e:
        return (), [MetadataProblem(f"{e.source} {e.found}", ("unreadable", "RECORD"))]
