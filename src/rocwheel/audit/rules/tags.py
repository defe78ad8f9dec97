"""Rules on compatibility tags: what a wheel's name promises holds for every file in it (:pep:`425`, :pep:`600`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.binary.pe.header import AMD64, machine_name
from rocwheel.distributions.formats.platforms.platform_floor import host_machines, next_policy, platform_floor
from rocwheel.distributions.formats.platforms.tags import expand_tags, is_known_platform, lowest_glibc, nearest_platform
from rocwheel.distributions.formats.wheel_file_name import wheel_platforms
from rocwheel.foundation.messages.counting import first_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.audit.subject import Subject
    from rocwheel.distributions.formats.platforms.platform_floor import PlatformFloor
    from rocwheel.installed.tree import Distribution, InstalledFile

__all__ = ["RULES"]


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
            found = f"promises to run on glibc {promised[0]}.{promised[1]}, but needs a newer one ({floor.reason})"
            remedy = _REALIGN if floor.is_by_alignment else f"Tag it {floor.tag}; rocwheel repair does so."
            yield Evidence(owner.label, found, remedy, _versions(promised, floor))


def _too_new(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _wheels(subject):
        promised, floor = lowest_glibc(wheel_platforms(owner.label)), _floor(files)
        if promised and floor and next_policy(floor.glibc) < promised:
            found = (
                f"asks for glibc {promised[0]}.{promised[1]}, but its files run on {'.'.join(map(str, floor.glibc))}"
            )
            remedy = f"{floor.tag} would let more systems install it."
            yield Evidence(owner.label, found, remedy, _versions(promised, floor))


def _versions(promised: tuple[int, int], floor: PlatformFloor) -> tuple[str, str]:
    """Return the glibc that a wheel is for and the tag that it could have: the facts of a finding."""
    return ".".join(map(str, promised)), floor.tag


def _unknown(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _wheels(subject):
        for tag in wheel_platforms(owner.label):
            if not is_known_platform(tag.text):
                floor, nearest = _floor(files), nearest_platform(tag.text)
                right = floor.tag if floor else nearest
                remedy = f"Tag it {right}." if right else ""
                yield Evidence(owner.label, f"has the tag {tag.text}, which no installer takes", remedy, (tag.text,))


def _local(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _wheels(subject):
        platforms, floor = wheel_platforms(owner.label), _floor(files)
        for tag in platforms:
            if tag.is_local:
                remedy = f"Tag it {floor.tag}; rocwheel repair does so." if floor else ""
                remedy = _TAKE_OUT if lowest_glibc(platforms) else remedy
                found = f"has the tag {tag.text}: public indexes such as PyPI refuse it"
                yield Evidence(owner.label, found, remedy, (tag.text,))


def _any(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _wheels(subject):
        if files and all(tag.system == "any" for tag in wheel_platforms(owner.label)):
            yield Evidence(owner.label, f"is for any platform, but contains machine code: {files[0].path}")


def _purelib(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _wheels(subject):
        first = next((file for file in files if not file.has_scheme), None)
        if first and owner.is_purelib:
            yield Evidence(owner.label, f"says Root-Is-Purelib: true, but contains machine code: {first.path}")


def _machines(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _wheels(subject):
        platforms = wheel_platforms(owner.label)
        named = {number for number, name in host_machines().items() if name in {tag.machine for tag in platforms}}
        is_linux = any(tag.is_linux for tag in platforms)
        other = [tag.text for tag in platforms if tag.system in ("windows", "macos")]
        for file in files:
            if other and file.is_loadable:
                found = f"is for Linux, but {owner.label} is for {', '.join(other)}"
                yield Evidence(file.source, found, facts=(*other,))
            elif owner.is_for_musl and file.elf and _GLIBC in file.elf.needed:
                yield Evidence(
                    file.source, f"needs {_GLIBC} of glibc, which systems with musl don't have", facts=(_GLIBC,)
                )
            elif is_linux and file.elf is not None and file.elf.machine not in named:
                machine = str(file.elf.machine)
                found = f"is for machine {machine}, but {owner.label} is not tagged for it"
                yield Evidence(file.source, found, facts=(machine,))
        yield from _windows_machines(subject, owner)


def _windows_machines(subject: Subject, owner: Distribution) -> Iterator[Evidence]:
    """Find DLLs and programs that the machine of a wheel's tag doesn't load, and DLLs in wheels for Linux."""
    platforms = wheel_platforms(owner.label)
    tags = ", ".join(tag.text for tag in platforms)
    machines = {_COFF_MACHINES.get(tag.text) for tag in platforms if tag.system == "windows"} - {None}
    for file in subject.tree.files_of[owner.source]:
        report = file.windows
        if report is None:
            continue
        if machines and report.machine not in machines:
            # Windows runs programs of 32 bits, too, but no process loads their DLLs.
            is_harmless = report.machine == _X86 and not report.is_dll
            found = f"is for {machine_name(report.machine)}, but {owner.label} is for {tags}"
            severity = Severity.WARNING if is_harmless else None
            yield Evidence(file.source, found, facts=(machine_name(report.machine), tags), severity=severity)
        elif report.is_dll and all(tag.is_linux for tag in platforms):
            found = f"is for Windows, but {owner.label} is for {tags}"
            yield Evidence(file.source, found, facts=(tags,), severity=Severity.WARNING)


def _pythons(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _wheels(subject):
        python, abi, _ = owner.name_tags
        needs = [(file, name) for file in files if file.elf for name in file.elf.needed]
        every = subject.tree.files_of[owner.source]
        needs += [(file, name) for file in every if file.windows for name in file.windows.imports]
        for file, name in needs:
            wanted = _python_of(name)
            if wanted and (abi == "abi3" or python != wanted):
                found = f"needs {name}, but {owner.label} is for {python}-{abi}"
                yield Evidence(file.source, found, facts=(name, python, abi))


def _python_of(name: str) -> str:
    """Return the tag of the Python version whose library a name is, such as ``cp312``; empty for any other name."""
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
            found = f"has {_tag_line(owner.tags)} in WHEEL, where its file name stands for {_quoted(named)}"
            yield Evidence(owner.label, found, facts=(*owner.tags,))


def _tag_line(tags: Sequence[str]) -> str:
    return f"the line{'s' if len(tags) > 1 else ''} {_quoted(tags)}"


def _quoted(tags: Sequence[str]) -> str:
    return first_of([f"'Tag: {tag}'" for tag in tags], _MOST_TAGS)


def _musl(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _wheels(subject):
        if owner.is_for_musl and any(file.is_loadable for file in files):
            yield Evidence(owner.label, "is for musl: whether its libraries find each other is not checked")


_MOST_TAGS = 8
_GLIBC = "libc.so.6"
_LIBPYTHON = re.compile(r"libpython(?P<major>\d)\.(?P<minor>\d+)[a-z]*\.so.*")
_PYTHON_DLL = re.compile(r"python(3\d+)t?(?:_d)?\.dll", re.IGNORECASE)
_X86 = 0x14C
_COFF_MACHINES = {"win_amd64": AMD64, "win32": _X86, "win_arm64": 0xAA64}
_MACHINE = "Put the code for each machine into its own wheel, and tag that by its files."
_TAG = "Tag it by its files, as 'rocwheel repair' does."
_REALIGN = "'rocwheel repair' gives the segment an alignment that every glibc takes. patchelf 0.18 makes such segments."
_TAKE_OUT = "Take that tag out of the file name and of WHEEL: the others serve."
_OLDER = "Tag it for the older glibc as well, if it is tested there; rocwheel repair keeps such tags."

RULES = (
    Rule("tag-too-old", Severity.ERROR, "A wheel runs on every system that its tag names.", _TAG, _too_old),
    Rule("tag-too-new", Severity.NOTE, "A wheel's tag names every system that it runs on.", _OLDER, _too_new),
    Rule("tag-unknown", Severity.ERROR, "Installers know a wheel's platform tag.", _TAG, _unknown),
    Rule("tag-local", Severity.WARNING, "Public indexes take a wheel's platform tag.", _TAG, _local),
    Rule("elf-in-any-wheel", Severity.ERROR, "A wheel for any platform holds no machine code.", _TAG, _any),
    Rule(
        "elf-in-purelib",
        Severity.ERROR,
        "A wheel with machine code is installed into platlib.",
        "Write Root-Is-Purelib: false; rocwheel repair does so.",
        _purelib,
    ),
    Rule(
        "wrong-machine", Severity.ERROR, "All machine code is for the machine that the tag names.", _MACHINE, _machines
    ),
    Rule(
        "wrong-python",
        Severity.ERROR,
        "A file that needs the library of one Python version is in a wheel for that version only.",
        "Link without libpython: extension modules find its symbols in the interpreter. Otherwise tag the wheel for "
        "that version.",
        _pythons,
    ),
    Rule("tag-mismatch", Severity.ERROR, "WHEEL and the file name carry the same tags.", _TAG, _tag_lines),
    Rule(
        "musl-unchecked",
        Severity.NOTE,
        "The audit checks loading for glibc only, not for musl.",
        "Test that it can be imported on a system with musl.",
        _musl,
    ),
)
