"""Rules about symbol conflicts: calls may reach the wrong library if several libraries define the same symbols."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.audit.loaded_files import UNLOADED, loaded_paths
from rocwheel.core.messages import count, first_of
from rocwheel.environment.installed_paths import SITE
from rocwheel.environment.loader import place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rocwheel.audit.subject import Process, Subject
    from rocwheel.environment.loader import Library
    from rocwheel.environment.tree import InstalledFile

# The HIP runtime. auditwheel may have added a hash to the file name and the SONAME.
_HIP_RUNTIME = re.compile(r"libamdhip64(-[0-9a-f]+)?\.so(\.|$)")
# Names of LLVM's C API, and mangled names in namespace llvm: functions and class tables (vtables, type names).
_LLVM = re.compile(rb"_Z(T[VTIS])?N?K?4llvm|LLVM[A-Z]")
# The GCC C++ runtime: mangled names in namespaces std and __cxxabiv1, their transaction clones, runtime functions, and
# the operators new and delete of C++14 and C++17 with a size or an alignment. On old systems, libstdc++.so.6 lacks some
# symbols, so GCC toolsets link these symbols into every library (libstdc++_nonshared.a). That code is the same in each
# library. A file with the whole runtime doesn't need libstdc++.so.6, and its copy may conflict with another copy.
_CXX_RUNTIME = re.compile(
    rb"_Z(GTt|T[VTIS]|G[VR])?N?K?(S[tabisod]|10__cxxabiv1)|__cxa_|__gxx_|_Zd[la]Pv(m|m?St11align_val_t)|_Zn[wa]mSt11align_val_t"
)
# Symbols that C++ compilers put into each file that uses a class or an inline function: class tables (vtables, type
# names), and the static variables of functions with their guards. Template instances are also in each file. All copies
# are the same. They are weak unless LTO made them strong. If two files share other symbols, their functions and
# variables collide.
_IN_EACH_USER = re.compile(rb"_Z(T[VTIS]|G[VR]|Z)")
_CXX_LIBRARY = "libstdc++.so.6"
# The start of a mangled name, and the parts that template arguments can follow: names and ABI tags with their length,
# substitutions, operators, constructors, and destructors.
_MANGLED = re.compile(rb"_Z(N[rVK]*[RO]?)?")
_NAME_LENGTH = re.compile(rb"B?([1-9][0-9]*)")
_NAME_PART = re.compile(rb"S[0-9A-Z]*_|S[tabisod]|[CD][0-5]|(?!cv)[a-z][a-zA-Z]")
# Symbols that linkers and C runtimes put into every library.
_COMMON = {b"_init", b"_fini", b"_end", b"_edata", b"__bss_start", b"__end__", b"end", b"edata", b"_start", b"main"}
_COMMON |= {b"__data_start", b"data_start", b"_IO_stdin_used", b"_fp_hw", b"_lib_version", b"__odr_asan_gen"}


def _shared_symbols(subject: Subject, wanted: Callable[[bytes], bool]) -> Iterator[Evidence]:
    seen: dict[str, set[str]] = defaultdict(set)
    loaded_by_some = loaded_paths(subject)
    for process in sorted(subject.processes, key=lambda process: process.file.path not in loaded_by_some):
        files = [subject.file_of(member.library) for member in process.loader.objects]
        loaded = {file.path: file for file in files if file is not None and file.traits is not None}
        for first, second in _new_pairs(loaded, seen):
            common = sorted(name for name in _common(first, second) if wanted(name))
            if (
                common
                and not _are_hip_runtimes(subject, first, second)
                and not _comes_with_context(subject, process, {first.path, second.path})
            ):
                all_names = [name.decode(errors="replace") for name in common]
                names = first_of(all_names)
                both = f"both {first.path} and {second.path}, which {process.file.path} loads together"
                found = f"{count(len(common), 'symbol is', 'symbols are')} defined in {both}: {names}"
                is_loaded = process.file.path in loaded_by_some
                severity = None if is_loaded else Severity.WARNING
                text = found if is_loaded else found + UNLOADED
                yield Evidence(first.source, text, facts=(second.path, *all_names), severity=severity)


def _new_pairs(
    loaded: Mapping[str, InstalledFile], seen: dict[str, set[str]]
) -> Iterator[tuple[InstalledFile, InstalledFile]]:
    """Yield the pairs of files with any exports, ordered by path, that no earlier process has loaded."""
    exporting = {path for path, file in loaded.items() if file.traits and file.traits.exports}
    for path in sorted(exporting):
        others = sorted(other for other in exporting - seen[path] if other > path)
        seen[path] |= exporting
        yield from ((loaded[path], loaded[other]) for other in others)


def _comes_with_context(subject: Subject, process: Process, paths: set[str]) -> bool:
    """Return whether a context package loads both files itself, regardless of the audited packages."""
    files = [subject.file_of(member.library) for member in process.loader.objects]
    context = {file.path: file for file in files if file is not None and subject.tree.is_context(file)}
    return paths <= context.keys() and any(paths <= _loaded_paths(subject, file) for file in context.values())


def _loaded_paths(subject: Subject, file: InstalledFile) -> set[str]:
    members = (subject.file_of(member.library) for member in subject.start(file).loader.objects)
    return {member.path for member in members if member is not None}


def _common(first: InstalledFile, second: InstalledFile) -> frozenset[bytes]:
    if first.traits is None or second.traits is None or _are_versioned_apart(first, second):
        return frozenset()
    versions = {name.encode() for name in first.elf.version_definitions} if first.elf else set()
    common = (first.traits.exports & second.traits.exports) - _COMMON - versions
    if all(file.elf and _CXX_LIBRARY in file.elf.needed for file in (first, second)):
        return frozenset(name for name in common if not _CXX_RUNTIME.match(name))
    return common


def _are_versioned_apart(first: InstalledFile, second: InstalledFile) -> bool:
    """Return whether both files have symbol versions but no version in common, so that references are unambiguous."""
    one = first.elf.version_definitions if first.elf else ()
    two = second.elf.version_definitions if second.elf else ()
    return bool(one and two) and not set(one) & set(two)


def _hip_name(library: Library) -> str:
    """Return the SONAME of a HIP runtime without auditwheel's hash, or an empty string for any other library.

    A library that only forwards calls to a HIP runtime is ignored.
    """
    elf, name = library.elf, posixpath.basename(library.path)
    soname = elf.soname or name if elf else name
    is_forwarding = elf is not None and any(map(_HIP_RUNTIME.match, elf.needed))
    return soname if _HIP_RUNTIME.match(soname) and not is_forwarding else ""


def _are_hip_runtimes(subject: Subject, *files: InstalledFile) -> bool:
    libraries = (subject.disk.open(f"{SITE}/{file.path}") for file in files)
    return all(library is not None and _hip_name(library) for library in libraries)


class _HipUse(NamedTuple):
    """The SONAME and path of a HIP runtime, and the first file in a package that loads the runtime."""

    soname: str
    path: str
    user: InstalledFile


def _two_hip_runtimes(subject: Subject) -> Iterator[Evidence]:
    loaded_by_some = loaded_paths(subject)
    uses: dict[tuple[str, str, str], _HipUse] = {}
    reported: set[frozenset[str]] = set()
    for process in subject.processes:
        if process.file.path not in loaded_by_some:
            continue
        found = {}
        for member in process.loader.objects:
            if soname := _hip_name(member.library):
                found[soname] = _HipUse(soname, place_of(member.library) or soname, process.file)
                uses.setdefault((soname, found[soname].path, process.file.distribution), found[soname])
        for one, other in combinations(sorted(found.values(), key=lambda use: use.path), 2):
            if (pair := frozenset((one.path, other.path))) not in reported:
                reported.add(pair)
                text = f"loads two HIP runtimes: {one.path} ({one.soname}) and {other.path} ({other.soname})"
                yield Evidence(process.file.source, text, facts=(one.path, other.path))
    for one, other in combinations(uses.values(), 2):
        pair = frozenset((one.path, other.path))
        is_audited = not (subject.tree.is_context(one.user) and subject.tree.is_context(other.user))
        apart = one.soname == other.soname or pair in reported or one.user.distribution == other.user.distribution
        if is_audited and not apart and subject.load_together(one.user, other.user):
            reported.add(pair)
            yield _between_packages(subject, one, other)


def _between_packages(subject: Subject, one: _HipUse, other: _HipUse) -> Evidence:
    first, second = (subject.tree.owners.get(use.user.distribution) for use in (one, other))
    if first and second and first.name in subject.required[second.name]:
        one, other, first, second = other, one, second, first
    whose = f" from {second.name}" if second else ""
    text = (
        f"{one.user.path} loads the HIP runtime {one.path} ({one.soname}), and {other.user.path}{whose}, which is "
        f"used in the same process, loads a different runtime: {other.path} ({other.soname})"
    )
    label = first.label if first else one.user.source
    return Evidence(label, text, facts=(one.path, other.path), severity=Severity.WARNING)


def _is_llvm(name: bytes) -> bool:
    return _LLVM.match(name) is not None


def _is_template_instance(name: bytes) -> bool:
    """Return whether a mangled name belongs to a template instance or to a member of a template instance."""
    head = _MANGLED.match(name)
    position = head.end() if head else len(name)
    while part := _NAME_LENGTH.match(name, position) or _NAME_PART.match(name, position):
        position = part.end() + int(part[1] if part.lastindex else 0)
        if head and head[1] is None and name[position : position + 1] != b"B":  # Parameters follow the only name.
            break
    return name[position : position + 1] == b"I"


def _collides(name: bytes) -> bool:
    return not (_is_llvm(name) or _IN_EACH_USER.match(name) or _is_template_instance(name))


RULES = (
    Rule(
        "two-hip-runtimes",
        Severity.ERROR,
        "All files and packages in a process load the same HIP runtime.",
        "Build both packages against the same ROCm release, and require the package that contains the runtime.",
        _two_hip_runtimes,
    ),
    Rule(
        "two-llvms",
        Severity.ERROR,
        "A process loads at most one copy of LLVM that exports its symbols.",
        "Link one copy with -Wl,--exclude-libs,ALL or a version script, or use one shared LLVM.",
        lambda subject: _shared_symbols(subject, _is_llvm),
    ),
    Rule(
        "symbol-collision",
        Severity.WARNING,
        "Libraries in one process don't define the same strong symbols.",
        ("Hide the symbols with -fvisibility=hidden or a version script, or define them in only one library."),
        lambda subject: _shared_symbols(subject, _collides),
    ),
)
