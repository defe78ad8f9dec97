"""What imports read of prefixes and Debian packages: which release they are of, their CMake files, their GPUs."""

from __future__ import annotations

import json
import os
import posixpath
import re
from contextlib import suppress
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.artifacts.deb import parse_control
from rocwheel.artifacts.from_prefix import Sign, check_one_release, library_signs, stated_signs
from rocwheel.artifacts.import_table import TextEdit, edited_bytes, load_import_table
from rocwheel.artifacts.importer import cmake_checked_files
from rocwheel.core.errors import InputError
from rocwheel.environment.package_targets import parse_gpu_field
from rocwheel.targets.spelling import debian_field
from rocwheel.targets.target_set import GPU_FIELD, TargetSet
from trials.fuzz.harness import Harness, require
from trials.fuzz.seeds.files import on_disk

if TYPE_CHECKING:
    from rocwheel.binary.code_objects import TargetId

_FILES = ("version", "rocm_version.h", "therock_manifest.json")
_CMAKE = "usr/lib/cmake/hip/hip-targets-release.cmake"


def _release(data: bytes) -> None:
    """Take an input as the files that state a release and as the name of a library, parted by NUL."""
    root = on_disk(b"", "mark").parent / "prefix"
    root.mkdir(exist_ok=True)
    *parts, library = [*data.split(b"\0"), b"", b"", b"", b""][:4]
    stated: list[Sign] = []
    for name, part, by_hand in zip(_FILES, parts, (_first_word, _defined, _in_json), strict=True):
        (root / name).write_bytes(part)
        found = _stated(root, name)
        release = by_hand(part)
        require(release is None or found == ([Sign(name, release)] if release else []), f"{found}, not {release}")
        stated += found or []
    libraries = library_signs([os.fsdecode(library)])
    expected = _of_library(library)
    require(expected is None or libraries == expected, f"{libraries}, not {expected}")
    _compare_series(root, stated, libraries)


def _stated(root: Path, name: str) -> list[Sign] | None:
    """Return what a file states; none where it is refused."""
    try:
        return stated_signs(root, [name])
    except InputError:
        return None


def _first_word(text: bytes) -> str | None:
    """Return the release that a text begins with, empty if it has no word; none for another first word."""
    words = text.decode(errors="replace").split()
    return (words[0].partition("-")[0] if _RELEASE.fullmatch(words[0]) else None) if words else ""


def _in_json(text: bytes) -> str | None:
    """Return the release of a document that says it alone."""
    with suppress(ValueError, RecursionError):
        document = json.loads(text)
        if isinstance(document, dict) and document.keys() == {"rocm_version"}:
            stated = document["rocm_version"]
            return stated.partition("-")[0] if isinstance(stated, str) and _RELEASE.fullmatch(stated) else None
    return None


def _defined(header: bytes) -> str | None:
    """Return the release that a plain header defines, by its words, empty for one that lacks a number.

    Where it defines a number twice, the last one counts.
    """
    if not _PLAIN_HEADER.fullmatch(header):
        return None
    lines = [line.replace("#", "# ", 1).split() for line in header.decode().splitlines()]
    words = [line for line in lines if line[:2] == ["#", "define"] and len(line) > 3]
    numbers = {line[2]: re.split(r"[^0-9]", line[3], maxsplit=1)[0] for line in words if line[3][:1] in "0123456789"}
    parts = [numbers.get(f"ROCM_VERSION_{part}", "") for part in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(parts) if all(parts) else ""


def _of_library(path: bytes) -> list[Sign] | None:
    """Return what a plain name of a library says."""
    match = _LIBRARY.fullmatch(path)
    if match is None:
        return None
    release = [int(match[2][:-4]), int(match[2][-4:-2]), int(match[2][-2:])]
    is_one = all(number < 20 for number in release)
    return [Sign(path.decode(), ".".join(map(str, release)), match[1].decode())] if is_one else []


def _compare_series(root: Path, stated: list[Sign], libraries: list[Sign]) -> None:
    """Require that files of one release are taken, and those of several refused."""
    signs = [*stated, *libraries]
    try:
        check_one_release(root, stated, libraries)
        is_refused = False
    except InputError:
        is_refused = True
    if all(_RELEASE.fullmatch(sign.release) for sign in signs):
        series = {tuple(map(int, sign.release.split(".")[:2])) for sign in signs}
        require(is_refused == (len(series) > 1), f"{signs}: {'refused' if is_refused else 'taken'}")


def _cmake_checks(data: bytes) -> None:
    """Take an input as a file of CMake and as names, parted by NUL, that such a file checks for."""
    for path in cmake_checked_files(_CMAKE, data):
        require(not path.startswith("/"), f"{path} is outside of the prefix")
    names = [name for name in data.split(b"\0") if name and b'"' not in name]
    given = b" ".join(b'"${_IMPORT_PREFIX}/%s"' % name for name in names)
    for folder, spelled in product(
        ("", "usr/", "opt/rocm/"), (b"_cmake_import_check_files_for", b"_IMPORT_CHECK_FILES_FOR")
    ):
        text = b"list(APPEND %s_hip::host %s )\n" % (spelled, given)
        for place in ("lib", "lib64", "share"):
            found = cmake_checked_files(f"{folder}{place}/cmake/hip/hip-targets-release.cmake", text)
            expected = [posixpath.normpath(f"./{folder}{os.fsdecode(name)}") for name in names]
            require(found == expected, f"{found}, not {expected}")
    require(cmake_checked_files("usr/include/hip-targets.cmake", text) == [], "it is not where packages of CMake are")


def _gpu_field(data: bytes) -> None:
    """Take an input as the field's value, whose words are targets; a field of the set of these has the same."""
    line = data.decode(errors="replace").partition("\n")[0]
    read = _read_field(f"{GPU_FIELD}: {line}\n")
    words = [_in_order(word) for word in _GPU_WORD.findall(line)]
    require(not line.isprintable() or list(map(str, read)) == words, f"{read} of {words}")
    targets = TargetSet.of(read)
    found = tuple(_read_field(debian_field(targets)))
    require(found == targets.ids, f"{found}, declared are {targets.ids}")


def _in_order(word: str) -> str:
    """Return a target id with its features in the order of the alphabet, as tools write it."""
    processor, *features = word.split(":")
    return ":".join([processor, *sorted(features)])


def _read_field(field: str) -> list[TargetId]:
    """Return the targets of a control file with this field."""
    control = parse_control(_DEB, f"Package: a\nVersion: 6.4.3-1\nArchitecture: amd64\n{field}Description: text\n")
    return parse_gpu_field(_DEB, control.gpu_targets)


def _text_edits(data: bytes) -> None:
    """Make each edit of Debian's table to an input: those that replace words make what `str.replace` does."""
    for edit in _edits():
        found = edited_bytes(data, [edit], "input")
        edit.missed.clear()
        by_hand = _replaced(data.decode("latin-1"), edit.rule.find)
        require(by_hand is None or found == by_hand.encode("latin-1"), f"{edit.rule.find}: {found!r}, not {by_hand!r}")


@cache
def _edits() -> list[TextEdit]:
    return list(map(TextEdit, load_import_table("debian.toml").edit))


def _replaced(text: str, find: str) -> str | None:
    """Return a text after the edit that has this expression; none for one that does more than replace words."""
    for word, new in _WORDS.get(find, {}).items():
        text = text.replace(word, new)
    if find == "^prefix=/usr$":
        return "\n".join("prefix=${pcfiledir}/../.." if line == "prefix=/usr" else line for line in text.split("\n"))
    return text if find in _WORDS else None


_LISTED = "os.listdir(topology_dir)"
_WORDS = {
    r"\$ROCM_PATH/llvm/bin": {"$ROCM_PATH/llvm/bin": "$ROCM_PATH/lib/llvm/bin"},
    '(?<=[}"])/share/cmake/': {f"{end}/share/cmake/": f"{end}/lib/cmake/" for end in '}"'},
    r"(?<=in sorted\()os\.listdir\(topology_dir\)(?=\))": {
        f"in sorted({_LISTED})": f"in sorted({_LISTED} if os.path.isdir(topology_dir) else [])"
    },
}
"""By the expression of an edit, the words that it replaces."""
_DEB = Path("a.deb")
_RELEASE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,3}(?:-[0-9A-Za-z.]*)?")
_PLAIN_HEADER = re.compile(rb"(?:[\t -~]{0,200}\n){0,50}")
_LIBRARY = re.compile(rb"lib(?:64)?/(lib[A-Za-z0-9_+-]+)\.so(?:\.[0-9]+)+\.([1-9][0-9]{4,5})")
_GPU_WORD = re.compile(r"[^\s,;]+")
_DEFINES = b"".join(b"#define ROCM_VERSION_%s %d\n" % one for one in ((b"MAJOR", 6), (b"MINOR", 4), (b"PATCH", 0)))
_STATED = b"\0".join([b"6.4.0-66\n", _DEFINES, b'{"rocm_version":"6.4.0"}', b"lib/libamdhip64.so.6.4.60400"])
_PLACES = (
    b'set(A "${B}/share/cmake/c")\nset(ROCM_PATH "/usr")\nmy $P = "$ROCM_PATH/llvm/bin";\nllvm-objdump-17 clang++-17\n'
    b'get_filename_component(A "${CMAKE_CURRENT_LIST_DIR'
)
_CHECKS = b'_IMPORT_CHECK_FILES_FOR_hip "${_IMPORT_PREFIX}/lib/libamdhip64.so"\n'

HARNESSES = (
    Harness(
        "imports.release",
        _release,
        lambda: [_STATED, _STATED.replace(b"\n", b"\r\n")],
        tokens=(b"# define", b"ROCM_VERSION_PATCH", b"\n", b"!", b".post", b"9" * 5000),
    ),
    Harness(
        "imports.cmake_checks",
        _cmake_checks,
        lambda: [_CHECKS + _CHECKS.lower().replace(b"{_import_prefix}", b"{_IMPORT_PREFIX}"), b"lib/a\0../b\0c//d"],
        tokens=(b' "${_IMPORT_PREFIX}/', b"_cmake_import_check_files_for_", b"/../", b"//"),
    ),
    Harness(
        "imports.gpu_field",
        _gpu_field,
        lambda: [b"gfx906 gfx90a:xnack+:sramecc- gfx1100", b"gfx942,gfx950"],
        tokens=(b":xnack-", b":sramecc+", b" ", b"gfx9-4-generic"),
        largest=1000,
    ),
    Harness(
        "imports.text_edits",
        _text_edits,
        lambda: [_PLACES, b"prefix=/usr\nexec_prefix=${prefix}\n", b"for node in sorted(os.listdir(topology_dir)):\n"],
        tokens=(
            b"/llvm",
            b"hip::device ",
            b"BASE_DIR ",
            b"# Use original install prefix when loaded through\n",
            b"CURRENT_LIST_DIR",
            b'get_filename_component(a "${a}" PATH)\n',
            b"llvm-a",
        ),
        largest=1 << 13,
    ),
)
"""See `trials.fuzz.harness.Harness`."""
