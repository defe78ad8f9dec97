"""What rocwheel, pyelftools, readelf and LLVM read in an ELF file, each as the same facts."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any, Final

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_E_MACHINE
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection
from elftools.elf.segments import InterpSegment

from rocwheel.binary.elf.facts import read_elf, read_elf_traits
from rocwheel.binary.elf.header import read_sections
from rocwheel.binary.elf.symbols import Linkage
from rocwheel.core.reading import FileRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rocwheel.binary.elf.facts import Elf

__all__ = ["Facts", "by_llvm", "by_pyelftools", "by_readelf", "by_rocwheel"]

Facts = dict[str, Any]
"""A fact's name to its value; a reader leaves out what it doesn't tell."""

_BASE_VERSION = 1


def by_rocwheel(path: Path) -> Facts:
    """Return what rocwheel reads; raises `ElfError` where it refuses the file."""
    with FileRange.whole(path).view() as data:
        elf = read_elf(data, name=str(path))
        sections = read_sections(data, name=str(path))
        linkage = read_elf_traits(data, name=str(path)).linkage if elf.is_dynamic else Linkage()
    return _plain_facts(elf) | {
        "sections": [(one.name, one.address, one.offset, one.size) for one in sections],
        "definitions": {_as_shown(name.decode(errors="replace")) for name in linkage.definitions},
        "references": {str(one) for one in linkage.references},
    }


def _as_shown(definition: str) -> str:
    """Return a symbol as readelf shows it: one that stands for a version without that version."""
    name, _, version = definition.replace("@@", "@").partition("@")
    return name if name == version or not version else f"{name}@{version}"


def _plain_facts(elf: Elf) -> Facts:
    segments = [(s.type, s.flags, s.offset, s.address, s.file_size, s.memory_size, s.alignment) for s in elf.segments]
    return {
        "machine": elf.machine,
        "type": elf.type,
        "segments": segments,
        "places of segments": [one[1:] for one in segments],
        "interpreter": elf.interpreter,
        "SONAME": elf.soname,
        "needed": list(elf.needed),
        "RPATH": elf.rpath,
        "RUNPATH": elf.runpath,
        "needed versions": [(need.library, need.version) for need in elf.version_needs],
        "defined versions": list(elf.version_definitions),
        "build id": elf.build_id,
    }


def by_pyelftools(path: Path) -> Facts:
    """Return what pyelftools reads."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        return _header_of_pyelftools(elf) | _tables_of_pyelftools(elf)


def _header_of_pyelftools(elf: ELFFile) -> Facts:
    machine = elf.header["e_machine"]
    segments = [segment.header for segment in elf.iter_segments()]
    return {
        "machine": ENUM_E_MACHINE.get(machine, machine),
        "places of segments": [(s.p_flags, s.p_offset, s.p_vaddr, s.p_filesz, s.p_memsz, s.p_align) for s in segments],
        "sections": [(s.name, s["sh_addr"], s["sh_offset"], s["sh_size"]) for s in elf.iter_sections()],
        "interpreter": next((s.get_interp_name() for s in elf.iter_segments() if isinstance(s, InterpSegment)), None),
    }


def _tables_of_pyelftools(elf: ELFFile) -> Facts:
    dynamic = next((one for one in elf.iter_segments() if isinstance(one, DynamicSegment)), None)
    tags = list(dynamic.iter_tags()) if dynamic else []
    named = {name: [getattr(tag, name.lower()) for tag in tags if tag.entry.d_tag == f"DT_{name}"] for name in _NAMES}
    facts: Facts = {
        "needed": named["NEEDED"],
        "SONAME": next(iter(named["SONAME"]), None),
        "RPATH": next(iter(named["RPATH"]), None),
        "RUNPATH": next(iter(named["RUNPATH"]), None),
    }
    return facts | (_versions_of_pyelftools(elf) if elf.num_sections() else {})


_NAMES: Final = ("NEEDED", "SONAME", "RPATH", "RUNPATH")


def _versions_of_pyelftools(elf: ELFFile) -> Facts:
    needs, definitions = [], []
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            needs += [(need.name, one.name) for need, versions in section.iter_versions() for one in versions]
        elif isinstance(section, GNUVerDefSection):
            for definition, names in section.iter_versions():
                if not definition["vd_flags"] & _BASE_VERSION:
                    definitions.append(next(names).name)
    return {"needed versions": needs, "defined versions": definitions}


_TAG: Final = r"^ 0x\w+ \({}\) +\S[^\n\[]*\[(.*)\]$"
_VERSION: Final = re.compile(r"@@?([^ @]+)(?: \(\d+\))?$")
_UNIQUE: Final = "<OS specific>: 10"
_SHOWN_TYPES: Final = {"NOTYPE", "OBJECT", "FUNC", "COMMON", "TLS", "IFUNC"}
_SHOWN_BINDINGS: Final = {"GLOBAL", "WEAK", "UNIQUE"}
_VISIBLE: Final = {"DEFAULT", "PROTECTED"}


def by_readelf(path: Path) -> Facts:
    """Return what binutils' readelf prints."""
    text = _output(["readelf", "-W", "--dynamic", "--program-headers", "--notes", str(path)])
    build_id = re.search(r"\bBuild ID: (\w+)$", text, re.MULTILINE)
    interpreter = re.search(r"\[Requesting program interpreter: (.*)\]$", text, re.MULTILINE)
    names = {name: re.findall(_TAG.format(name), text, re.MULTILINE) for name in _NAMES}
    return _symbols_of_readelf(path) | {
        "needed": names["NEEDED"],
        "SONAME": next(iter(names["SONAME"]), None),
        "RPATH": next(iter(names["RPATH"]), None),
        "RUNPATH": next(iter(names["RUNPATH"]), None),
        "interpreter": interpreter[1] if interpreter else None,
        "build id": build_id[1] if build_id else None,
    }


def _symbols_of_readelf(path: Path) -> Facts:
    lines = _output(["readelf", "-W", "--dyn-syms", str(path)]).splitlines()
    if not any(line.startswith("Symbol table '.dynsym'") for line in lines):
        return {}  # It finds symbols by the section headers, which the loader doesn't need.
    definitions, references = _symbols(lines)
    return {"definitions": definitions, "references": references}


def _symbols(lines: Iterable[str]) -> tuple[set[str], set[str]]:
    """Return the symbols that a file offers to others, and those that it wants of them, each with its version."""
    definitions, references = set(), set()
    for value, kind, binding, section, name in _rows(lines):
        if section == "UND":
            if binding == "GLOBAL":
                references.add(name)
        elif binding in _SHOWN_BINDINGS and (value or section == "ABS" or kind == "TLS"):
            definitions.add(name)
    return definitions, references


def _rows(lines: Iterable[str]) -> Iterator[tuple[int, str, str, str, str]]:
    for line in lines:
        # So it calls unique symbols in files that aren't marked as ones for GNU, where glibc treats them alike.
        fields = line.replace(_UNIQUE, "UNIQUE").split(maxsplit=7)
        if len(fields) == 8 and fields[0].endswith(":") and fields[0][:-1].isdigit():
            _, value, _, kind, binding, visibility, section, name = fields
            if kind in _SHOWN_TYPES and visibility in _VISIBLE:
                # A number stands behind versions that are needed: also with a program's copy of a library's variable.
                is_copy = section != "UND" and name.endswith(")")
                yield int(value, 16), kind, binding, section, _VERSION.sub("" if is_copy else r"@\1", name)


def by_llvm(path: Path, tool: str) -> Facts:
    """Return what llvm-readobj prints as JSON."""
    wanted = ("--file-headers", "--program-headers", "--sections")
    (facts,) = json.loads(_output([tool, "--elf-output-style=JSON", *wanted, str(path)]))
    segments = [one["ProgramHeader"] for one in facts["ProgramHeaders"]]
    sections = [one["Section"] for one in facts["Sections"]]
    return {
        "machine": _number(facts["ElfHeader"]["Machine"]),
        "type": int(re.findall(r"\((0x\w+)\)", facts["ElfHeader"]["Type"])[0], 16),
        "segments": [
            (_number(s["Type"]), _number(s["Flags"]), *(s[name] for name in _SEGMENT_FIELDS)) for s in segments
        ],
        "sections": [(_text(s["Name"]), s["Address"], s["Offset"], s["Size"]) for s in sections],
    }


_SEGMENT_FIELDS: Final = ("Offset", "VirtualAddress", "FileSize", "MemSize", "Alignment")


def _number(field: dict[str, Any]) -> int:
    """Return a number beside its name; what it is called depends on the version."""
    return int(next(field[name] for name in ("RawValue", "RawFlags", "Value") if name in field))


def _text(field: dict[str, Any]) -> str:
    return str(next(field[name] for name in ("Value", "Name") if isinstance(field.get(name), str)))


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, check=True)
    return done.stdout.decode(errors="surrogateescape")
