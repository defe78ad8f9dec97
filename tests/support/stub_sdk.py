"""A stand-in for ROCm's packages: libraries that define what given wheels refer to, and do nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from rocwheel.environment.known_libraries import allowed_libraries
from rocwheel.environment.sdk_layout import sdk_folders
from rocwheel.wheels.zip_directory import read_directory
from rocwheel.wheels.zip_reader import open_unpacked
from tests.support.wheels import make_wheel

__all__ = ["make_stub_sdk"]

_HIP = "libamdhip64.so.6"
SYSDEPS = "_rocm_sdk_core/lib/rocm_sysdeps/lib"


def make_stub_sdk(wheel: Path, folder: Path) -> list[Path]:
    """Write two wheels, laid out as ROCm's, with every library that ``wheel`` needs beyond the system's."""
    libraries: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for member in read_directory(wheel):
        if ".so" in member.name:
            with open_unpacked(member) as (unpacked, _), Path(unpacked.path).open("rb") as file:
                _collect(ELFFile(file), libraries)
    stubs = folder / "stubs"
    shutil.rmtree(stubs, ignore_errors=True)
    packages: dict[str, dict[str, Path | bytes]] = {"rocm_sdk_core": {}, "rocm_sdk_libraries": {}}
    for soname, versions in sorted(libraries.items()):
        place = _place(soname)
        _compile(stubs / place, soname, versions)
        package = "rocm_sdk_libraries" if place.startswith("_rocm_sdk_libraries") else "rocm_sdk_core"
        packages[package][place] = stubs / place
    return [
        make_wheel(folder, name, files, version="7.14.0", tag="py3-none-manylinux_2_5_x86_64")
        for name, files in packages.items()
        if files
    ]


def _collect(elf: Any, libraries: dict[str, dict[str, set[str]]]) -> None:
    dynamic = next(segment for segment in elf.iter_segments() if segment["p_type"] == "PT_DYNAMIC")
    system = allowed_libraries()
    needed = [tag.needed for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_NEEDED"]
    foreign = [name for name in needed if system.find(name, 62) is None]
    for name in foreign:
        libraries[name][""] |= set()
    names: dict[int, tuple[str, str]] = {}
    for library, versions in elf.get_section_by_name(".gnu.version_r").iter_versions():
        names |= {version["vna_other"]: (library.name, version.name) for version in versions}
    numbers = elf.get_section_by_name(".gnu.version")
    for index, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
        is_wanted = symbol["st_shndx"] == "SHN_UNDEF" and symbol["st_info"]["bind"] == "STB_GLOBAL" and symbol.name
        if not is_wanted or re.match("_?Py", symbol.name):
            continue
        library, version = names.get(numbers.get_symbol(index)["ndx"], ("", ""))
        if library in foreign:
            libraries[library][version].add(symbol.name)
        elif not library and (foreign or symbol.name.startswith("hip")):
            libraries[foreign[0] if foreign else _HIP][""].add(symbol.name)


def _place(soname: str) -> str:
    stem = soname.partition(".so")[0]
    for folder in sdk_folders():
        if any(name.partition(".so")[0] == stem for name in folder.libraries):
            return f"{folder.folder}/{soname}"
    return f"{SYSDEPS}/{soname}"


def _compile(target: Path, soname: str, versions: dict[str, set[str]]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    defined = sorted({name for names in versions.values() for name in names})
    lines = [f'.globl "{name}"\n.type "{name}",@function\n"{name}": ret\n' for name in defined]
    nodes = [f"{version} {{ global: {_listed(names)} }};" for version, names in sorted(versions.items()) if version]
    with tempfile.TemporaryDirectory() as folder:
        source, script = Path(folder, "stub.s"), Path(folder, "versions")
        source.write_text("".join(lines) + '.section .note.GNU-stack,"",@progbits\n')
        script.write_text("\n".join(nodes) + "\n")
        options = [f"-Wl,--version-script={script}"] if nodes else []
        command = ["gcc", "-shared", "-nostdlib", f"-Wl,-soname,{soname}", "-Wl,--build-id", "-o", str(target)]
        subprocess.run([*command, *options, str(source)], check=True)


def _listed(names: set[str]) -> str:
    return "".join(f'"{name}"; ' for name in sorted(names))
