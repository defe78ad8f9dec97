"""Rules about compatibility tags: every file in a wheel matches the tags in its name (:pep:`425`, :pep:`600`)."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.binary.pe.header import X86, machine_name
from rocwheel.core.messages import count, first_of
from rocwheel.environment.known_libraries import stable_abi
from rocwheel.environment.platform_tags import WINDOWS_TAGS, misplaced_code, repaired_platforms
from rocwheel.wheels.file_names import wheel_platforms
from rocwheel.wheels.platform_floor import host_machines, next_policy, platform_floor
from rocwheel.wheels.tags import expand_tags, is_known_platform, lowest_glibc, nearest_platform, split_tags

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from rocwheel.audit.subject import Subject
    from rocwheel.environment.tree import Distribution, InstalledFile
    from rocwheel.wheels.platform_floor import PlatformFloor


def _wheels(subject: Subject) -> Iterator[tuple[Distribution, list[InstalledFile]]]:
    for owner in subject.tree.audited_distributions:
        if owner.is_wheel:
            files = subject.tree.files_of[owner.source]
            yield owner, [file for file in files if file.elf is not None and file.elf.machine in host_machines()]


def _floor(files: list[InstalledFile]) -> PlatformFloor | None:
    return platform_floor((file.path, file.elf) for file in files if file.elf is not None)


def _too_old(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _wheels(subject):
        promised, floor = lowest_glibc(wheel_platforms(owner.label)), _floor(files)
        if promised and floor and floor.glibc > promised:
            found = f"promises to run on glibc {promised[0]}.{promised[1]}, but needs a newer version ({floor.reason})"
            remedy = _REALIGN if floor.is_by_alignment else _retagging(subject, owner)
            yield Evidence(owner.label, found, remedy, _versions(promised, floor))


def _too_new(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _wheels(subject):
        promised, floor = lowest_glibc(wheel_platforms(owner.label)), _floor(files)
        if promised and floor and next_policy(floor.glibc) < promised:
            found = (
                f"requires glibc {promised[0]}.{promised[1]}, but its files run on {'.'.join(map(str, floor.glibc))}"
            )
            remedy = f"With the tag {floor.tag}, more systems can install the wheel."
            yield Evidence(owner.label, found, remedy, _versions(promised, floor))


def _versions(promised: tuple[int, int], floor: PlatformFloor) -> tuple[str, str]:
    """Return a finding's facts: the glibc version in the wheel's tag, and the tag that the wheel could have."""
    return ".".join(map(str, promised)), floor.tag


def _unknown(subject: Subject) -> Iterator[Evidence]:
    for owner, _ in _wheels(subject):
        for tag in wheel_platforms(owner.label):
            if not is_known_platform(tag.text):
                nearest = nearest_platform(tag.text)
                by_hand = f"Use the tag {nearest}." if nearest else _BY_HAND
                remedy = by_hand if tag.text in _repaired(subject, owner) else _retagging(subject, owner)
                yield Evidence(owner.label, f"has the tag {tag.text}, which no installer accepts", remedy, (tag.text,))


def _repaired(subject: Subject, owner: Distribution) -> list[str]:
    """Return the platform tags that a wheel has after a repair."""
    return repaired_platforms(split_tags(owner.name_tags[2]), subject.tree.files_of[owner.source])


def _retagging(subject: Subject, owner: Distribution) -> str:
    """Return the remedy for incorrect platform tags: a repair if that changes them, or otherwise steps for the user."""
    repaired = ".".join(_repaired(subject, owner))
    return _BY_HAND if repaired == owner.name_tags[2] else f"Use the tag {repaired}. 'rocwheel repair' sets it."


def _local(subject: Subject) -> Iterator[Evidence]:
    for owner, _ in _wheels(subject):
        platforms = wheel_platforms(owner.label)
        for tag in platforms:
            if tag.is_local:
                remedy = _TAKE_OUT if lowest_glibc(platforms) else _retagging(subject, owner)
                found = f"has the tag {tag.text}: public indexes such as PyPI reject the wheel"
                yield Evidence(owner.label, found, remedy, (tag.text,))


def _any(subject: Subject) -> Iterator[Evidence]:
    for owner, _ in _wheels(subject):
        first = next((file for file in subject.tree.files_of[owner.source] if file.is_machine_code), None)
        if first and all(tag.system == "any" for tag in wheel_platforms(owner.label)):
            found = f"is for any platform, but contains machine code: {first.path}"
            yield Evidence(owner.label, found, _retagging(subject, owner))


def _purelib(subject: Subject) -> Iterator[Evidence]:
    for owner, _ in _wheels(subject):
        first = misplaced_code(owner, subject.tree.files_of[owner.source])
        if first:
            yield Evidence(owner.label, f"sets Root-Is-Purelib: true, but contains machine code: {first.path}")


def _machines(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _wheels(subject):
        platforms = wheel_platforms(owner.label)
        # Unknown tags don't contain a machine, and another rule reports them.
        machines = {tag.machine for tag in platforms if tag.is_linux and is_known_platform(tag.text)}
        other = [tag.text for tag in platforms if tag.system in ("windows", "macos")]
        for file in files:
            if other and file.is_loadable:
                found = f"is for Linux, but {owner.label} is for {', '.join(other)}"
                yield Evidence(file.source, found, facts=(*other,))
            elif owner.is_for_musl and file.elf and _GLIBC in file.elf.needed:
                yield Evidence(
                    file.source, f"needs {_GLIBC} from glibc, which systems with musl don't have", facts=(_GLIBC,)
                )
            elif machines and file.elf is not None and host_machines()[file.elf.machine] not in machines:
                found = f"is for {host_machines()[file.elf.machine]}, but {owner.label} has no tag for this machine"
                yield Evidence(file.source, found, facts=(str(file.elf.machine),))
        yield from _windows_machines(subject, owner)


def _windows_machines(subject: Subject, owner: Distribution) -> Iterator[Evidence]:
    """Find DLLs and programs that the tag's machine can't load, and DLLs in wheels for Linux."""
    platforms = wheel_platforms(owner.label)
    tags = ", ".join(tag.text for tag in platforms)
    machines = {_COFF_MACHINES.get(tag.text) for tag in platforms if tag.system == "windows"} - {None}
    for file in subject.tree.files_of[owner.source]:
        report = file.windows
        if report is None:
            continue
        if machines and report.machine not in machines:
            # Windows also runs 32-bit programs, but no 64-bit process loads 32-bit DLLs.
            is_harmless = report.machine == X86 and not report.is_dll
            found = f"is for {machine_name(report.machine)}, but {owner.label} is for {tags}"
            severity = Severity.WARNING if is_harmless else None
            yield Evidence(file.source, found, facts=(machine_name(report.machine), tags), severity=severity)
        elif report.is_dll and all(tag.is_linux for tag in platforms):
            found = f"is for Windows, but {owner.label} is for {tags}"
            yield Evidence(file.source, found, facts=(tags,), severity=Severity.WARNING)


def _pythons(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _wheels(subject):
        python, abi, _ = owner.name_tags
        wrong = set()
        needs = [(file, name) for file in files if file.elf for name in file.elf.needed]
        every = subject.tree.files_of[owner.source]
        needs += [(file, name) for file in every if file.windows for name in file.windows.imports]
        for file, name in needs:
            wanted = _python_of(name)
            if wanted and (abi == "abi3" or python != wanted):
                found = f"needs {name}, but {owner.label} is for {python}-{abi}"
                yield Evidence(file.source, found, facts=(name, python, abi))
                wrong.add(file.source)
        yield from (one for one in _extension_modules(owner, every) if one.file not in wrong)


def _extension_modules(owner: Distribution, files: Sequence[InstalledFile]) -> Iterator[Evidence]:
    """Find extension modules that, according to their names, can't be imported by the Python versions in the tag.

    A library that isn't meant to be imported may also have such a name: ``torch.ops.load_library`` opens the library by
    its path.
    """
    python, abi, _ = owner.name_tags
    if not all(map(_ONE_PYTHON.fullmatch, python.split("."))):
        return
    flags = {match[1] for one in abi.split(".") if (match := _ABI_FLAGS.fullmatch(one))} or {""}
    serves = {f"{one}{flag}" for one in python.split(".") for flag in flags}
    modules: dict[str, dict[str, InstalledFile]] = defaultdict(dict)
    for file in files:
        is_library = file.traits is not None and not file.has_init_function
        if (match := _MODULE.fullmatch(file.path)) and not is_library and not _OWN_PYTHON.search(file.path):
            modules[match["module"]][_module_python(match["abi"] or "")] = file
    for found in modules.values():
        yield from _unimportable(owner, found, serves, is_abi3="abi3" in abi.split("."))


def _unimportable(
    owner: Distribution, found: dict[str, InstalledFile], serves: AbstractSet[str], *, is_abi3: bool
) -> Iterator[Evidence]:
    """Find a module that a Python version in the wheel's tag can't import.

    ``found`` maps the tags of Python versions to the files that these versions import. An empty tag means every Python
    version.
    """
    if "" in found or (not is_abi3 and serves <= found.keys()):
        return
    python, abi, _ = owner.name_tags
    for tag, file in found.items():
        if is_abi3 or tag not in serves:
            text = f"is only for {_python_name(tag)}, but {owner.label} is for {python}-{abi}"
            yield Evidence(file.source, text, _BUILD_MODULE, facts=("module", tag, python, abi))


def _module_python(abi: str) -> str:
    """Return the tag of the Python version that corresponds to the ABI in a module's name.

    An empty string means every Python version.
    """
    match = _MODULE_ABI.match(abi)
    kinds = {"cpython-": "cp", "cp": "cp", "pypy": "pp"}
    return f"{kinds[match['kind']]}{match['version']}" if match else ""


def _python_name(tag: str) -> str:
    kind = {"cp": "CPython", "pp": "PyPy"}[tag[:2]]
    return f"{kind} {tag[2]}.{tag[3:]}"


def _abi3_symbols(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _wheels(subject):
        python, abi, _ = owner.name_tags
        versions = [(3, int(one[3:])) for one in python.split(".") if _CPYTHON.fullmatch(one)]
        if "abi3" not in abi.split(".") or not versions:
            continue
        for file in [*files, *(one for one in subject.tree.files_of[owner.source] if one.windows)]:
            match = _MODULE.fullmatch(file.path)
            if not (match and _module_python(match["abi"] or "")):
                yield from _unstable(subject, owner, file, min(versions))


def _unstable(
    subject: Subject, owner: Distribution, file: InstalledFile, oldest: tuple[int, int]
) -> Iterator[Evidence]:
    """Find a file's interpreter symbols that aren't in the stable ABI, or that are newer than the wheel's tag."""
    names, added = _python_symbols(file), stable_abi()
    if oldest > max(added.values()):
        return
    unstable = [name for name in names if name not in added and not _is_provided(subject, file, name)]
    newer = [name for name in names if name in added and added[name] > oldest]
    if unstable:
        found = f"uses {first_of(unstable)}, which the stable ABI doesn't include, but {owner.label} is for abi3"
        yield Evidence(file.source, found, facts=(*unstable,))
    if newer:
        needed = max(added[name] for name in newer)[1]
        found = f"uses {first_of(newer)} from Python 3.{needed}, but {owner.label} is for 3.{oldest[1]}"
        remedy = f"Tag the wheel cp3{needed}-abi3, or set Py_LIMITED_API to the older version."
        yield Evidence(file.source, found, remedy, facts=(*newer,))


def _python_symbols(file: InstalledFile) -> list[str]:
    """Return the interpreter symbols that a file requires. Weak symbols aren't required."""
    asked = [one.name for one in (file.traits.linkage.references if file.traits else ()) if not one.version]
    dlls = file.windows.pe.imports if file.windows and file.windows.pe else ()
    asked += [name for dll in dlls if dll.name.lower() == _STABLE_DLL for name in dll.functions]
    return sorted({name for name in asked if _OF_PYTHON.match(name)})


def _is_provided(subject: Subject, user: InstalledFile, name: str) -> bool:
    """Return whether a library defines a symbol, or whether a library that isn't given may define it for ``user``."""
    if user.elf and any(
        needed not in subject.tree.libraries and subject.system.find(needed, user.elf.machine) is None
        for needed in user.elf.needed
    ):
        return True
    return name.encode() in subject.python_definitions


def _python_of(name: str) -> str:
    """Return the tag of the Python version in a library's name, such as ``cp312``, or an empty string."""
    if match := _LIBPYTHON.fullmatch(name):
        return f"cp{match['major']}{match['minor']}"
    match = _PYTHON_DLL.fullmatch(name)
    return f"cp{match[1]}" if match else ""


def _tag_lines(subject: Subject) -> Iterator[Evidence]:
    for owner in subject.tree.audited_distributions:
        if not owner.is_wheel or not owner.tags:
            continue
        named = expand_tags(*owner.name_tags)
        if set(named) != set(owner.tags):
            found = f"has {_tag_line(owner.tags)} in WHEEL, but its file name implies {_quoted(named)}"
            yield Evidence(owner.label, found, facts=(*owner.tags,), severity=_line_severity(owner, named))


def _line_severity(owner: Distribution, named: Sequence[str]) -> Severity | None:
    """Return NOTE if the only difference is a line that combines several tags. All installers accept such a line."""
    lines = [line.split("-") for line in owner.tags]
    if any(len(parts) != _TAG_PARTS for parts in lines):
        return None
    spelled_out = {tag for python, abi, platform in lines for tag in expand_tags(python, abi, platform)}
    return Severity.NOTE if spelled_out == set(named) else None


def _tag_line(tags: Sequence[str]) -> str:
    return f"the line{'s' if len(tags) > 1 else ''} {_quoted(tags)}"


def _quoted(tags: Sequence[str]) -> str:
    return first_of([f"'Tag: {tag}'" for tag in tags], _MOST_TAGS)


def _musl(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _wheels(subject):
        if owner.is_for_musl and any(file.is_loadable for file in files):
            yield Evidence(owner.label, "is for musl: the audit doesn't check whether its libraries find each other")


def _mach_o(subject: Subject) -> Iterator[Evidence]:
    for owner in subject.tree.audited_distributions:
        files = [file.path for file in subject.tree.files_of[owner.source] if file.is_mach_o]
        if files:
            yield Evidence(owner.label, f"has {count(len(files), 'Mach-O file')}: {first_of(files)}")


_MOST_TAGS = 8
_TAG_PARTS = 3
_MODULE = re.compile(r"(?P<module>(?:.*/)?[^/.]+)\.(?:(?P<abi>[\w-]+)\.)?(?:so|pyd)")
_MODULE_ABI = re.compile(r"(?P<kind>cpython-|cp|pypy)(?P<version>3\d+[td]?)(?=-|$)")
_OWN_PYTHON = re.compile(r"(?:^|/)(?:lib-dynload|python3\.\d+)/")
"""Folders of a Python interpreter that is part of the package."""
_ABI_FLAGS = re.compile(r"cp3\d+([td]*)")
_ONE_PYTHON = re.compile(r"(?:cp|pp)3\d+")
_CPYTHON = re.compile(r"cp3\d+")
_STABLE_DLL = "python3.dll"
_OF_PYTHON = re.compile(r"_?Py[A-Z_]")
_BUILD_MODULE = "Clear the build folder, and build the module with the Python version in the wheel's tag."
_GLIBC = "libc.so.6"
_LIBPYTHON = re.compile(r"libpython(?P<major>\d)\.(?P<minor>\d+)[a-z]*\.so.*")
_PYTHON_DLL = re.compile(r"python(3\d+)t?(?:_d)?\.dll", re.IGNORECASE)
_COFF_MACHINES = {tag: machine for machine, tag in WINDOWS_TAGS.items()}
_MACHINE = "Build a separate wheel for each machine, with a tag that matches its files."
_TAG = "Use the tag that the files require. 'rocwheel repair' sets it."
_BY_HAND = (
    "Use the tag of the system that the files run on, such as manylinux_2_28_x86_64, musllinux_1_2_x86_64, "
    "macosx_11_0_arm64, or win_amd64. Build a separate wheel for each system."
)
_REALIGN = "'rocwheel repair' sets an alignment that every glibc accepts. patchelf 0.18 causes this problem."
_TAKE_OUT = "Remove that tag from the file name and from WHEEL. The other tags are enough."
_OLDER = "If you test the wheel on the older glibc, add that tag. 'rocwheel repair' keeps such tags."

RULES = (
    Rule("tag-too-old", Severity.ERROR, "A wheel runs on every system that its tag covers.", _TAG, _too_old),
    Rule("tag-too-new", Severity.NOTE, "A wheel's tag covers every system where the wheel runs.", _OLDER, _too_new),
    Rule("tag-unknown", Severity.ERROR, "Installers recognize the platform tag of a wheel.", _TAG, _unknown),
    Rule("tag-local", Severity.WARNING, "Public indexes accept the platform tag of a wheel.", _TAG, _local),
    Rule(
        "elf-in-any-wheel", Severity.ERROR, "A wheel with the platform tag 'any' contains no machine code.", _TAG, _any
    ),
    Rule(
        "elf-in-purelib",
        Severity.ERROR,
        "Installers put a wheel with machine code into platlib.",
        "Set 'Root-Is-Purelib: false'. 'rocwheel repair' does this for you.",
        _purelib,
    ),
    Rule("wrong-machine", Severity.ERROR, "All machine code is for the machine in the tag.", _MACHINE, _machines),
    Rule(
        "wrong-python",
        Severity.ERROR,
        "A file that works with only one Python version is in a wheel for that version.",
        (
            "Don't link extension modules with libpython, because they find its symbols in the interpreter. For "
            "other files, tag the wheel for that version."
        ),
        _pythons,
    ),
    Rule(
        "unstable-symbol",
        Severity.ERROR,
        "Files in an abi3 wheel use only the stable ABI of the oldest Python in the tag.",
        "Build the file with Py_LIMITED_API, or tag the wheel for the Python version of the build.",
        _abi3_symbols,
    ),
    Rule("tag-mismatch", Severity.ERROR, "WHEEL and the file name contain the same tags.", _TAG, _tag_lines),
    Rule(
        "musl-unchecked",
        Severity.NOTE,
        "The audit doesn't check how musl loads files.",
        "Import the package on a system with musl.",
        _musl,
    ),
    Rule(
        "mach-o-unchecked",
        Severity.NOTE,
        "The audit doesn't read Mach-O files (for macOS).",
        "Check these files with delocate, and import the package on macOS.",
        _mach_o,
    ),
)
