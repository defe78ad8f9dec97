"""Parses the public sources of rocwheel's tables; each function returns names, each with its value or an empty string.

A parser accepts the format that its source has today. Text in any other format is an `InputError`, because an empty
result would look like a complete table.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from typing import TYPE_CHECKING

import yaml

from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.targets.spelling import parse_desc

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Facts = dict[str, str]
"""What a table or a source says: names, each with its value. The value is empty if there is only the name."""

_MACHINE = re.compile(r'\s*X\(0x([0-9a-f]+), EF_AMDGPU_MACH_(AMDGCN|R600)_\w+, "([\w-]+)"\)\s*\\?')
_ADDED_TARGET = re.compile(
    r'^therock_add_amdgpu_target\((gfx[\w-]+)\s+"[^"]*"\s+FAMILY((?:\s+[\w-]+)+?)\s*(?:EXCLUDE_TARGET_PROJECTS[\s\w-]*)?\)',
    re.MULTILINE,
)
_TARGET = re.compile(r"gfx[0-9]{1,6}[0-9a-f]?(?:-[0-9]{1,6})?(?:-[a-z]+)?(?::[a-z]+[+-])*")
_ARM = re.compile(
    r"^\s*([\w.*|\[\]-]+)\)\s*"
    r"unofficial_amdgpu_targets=\(([\sa-z0-9]+)\)\s*"
    r"official_amdgpu_targets=\(([\sa-z0-9]+)\)\s*;;",
    re.MULTILINE,
)
_DEVICE = re.compile(r"\t([0-9a-f]{4})  (\S.*)")
_PRODUCT = re.compile(r"([0-9A-F]{4}),\s+[0-9A-F]{1,2},\s+(\S.*)")
_VENDOR_AMD = "1002"


def join_targets(names: Iterable[str]) -> str:
    """Return targets as a value: each once, sorted, with a space between them."""
    return " ".join(sorted(set(names)))


def parse_elf_header(text: str, source: str) -> Facts:
    """Return LLVM's machine numbers (``EF_AMDGPU_MACH``) by processor, from ``ELF.h``; those of R600 are left out."""
    found: Facts = {}
    for number, line in enumerate(text.splitlines(), 1):
        if "X(0x" not in line or "EF_AMDGPU_MACH_" not in line:
            continue
        match = _MACHINE.fullmatch(line)
        if match is None:
            raise _bad_line(source, number, line, expected='X(0xNN, EF_AMDGPU_MACH_..., "NAME")')
        if match[2] == "AMDGCN":
            found[match[3]] = f"{int(match[1], 16):#04x}"
    return _require(found, source, "the list AMDGPU_MACH_LIST or another list of EF_AMDGPU_MACH values")


def parse_therock_targets(text: str, source: str) -> Facts:
    """Return the targets of each family in TheRock's ``therock_amdgpu_targets.cmake``."""
    code = re.sub(r"#.*", "", text)
    calls = _ADDED_TARGET.findall(code)
    expected = len(re.findall(r"^therock_add_amdgpu_target\(", code, re.MULTILINE))
    if len(calls) != expected:
        raise InputError(
            source,
            f"{len(calls)} of {expected} calls of therock_add_amdgpu_target can be read",
            expected='therock_add_amdgpu_target(TARGET "NAME" FAMILY FAMILY... [EXCLUDE_TARGET_PROJECTS ...])',
        )
    families = defaultdict[str, set[str]](set)
    for target, names in calls:
        for family in names.split():
            families[family].add(target)
    return _require({name: join_targets(found) for name, found in families.items()}, source, "GPU families")


def parse_gentoo_flags(text: str, source: str) -> Facts:
    """Return the flags in Gentoo's ``amdgpu_targets.desc``."""
    return _target_names(parse_desc(text, source), source)


def parse_eclass(text: str, source: str) -> Facts:
    """Return the targets in the cases of Gentoo's ``rocm.eclass``, in their order.

    The names are ``PATTERN official`` and ``PATTERN unofficial``.
    """
    arms = _ARM.findall(text)
    assigned = len(re.findall(r"^\s*unofficial_amdgpu_targets=", text, re.MULTILINE))
    if len(arms) != assigned:
        raise InputError(
            source, f"{len(arms)} of {assigned} cases of ROCM_VERSION can be read", expected="two lists each"
        )
    found: Facts = {}
    for pattern, unofficial, official in arms:
        found[f"{pattern} official"] = join_targets(_target_names(official.split(), source))
        found[f"{pattern} unofficial"] = join_targets(_target_names(unofficial.split(), source))
    return _require(found, source, "the cases of ROCM_VERSION")


def parse_target_lines(text: str, source: str) -> Facts:
    """Return the targets in a list with one per line, such as Debian's ``build-targets``."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return _target_names(filter(None, lines), source)


def parse_bazelrc(text: str, source: str) -> Facts:
    """Return the targets that a ``.bazelrc`` of JAX sets by ``TF_ROCM_AMDGPU_TARGETS``."""
    lists = re.findall(r"TF_ROCM_AMDGPU_TARGETS=[\"']?([\w,:+-]+)", text)
    if len(lists) != 1:
        raise InputError(source, f"sets TF_ROCM_AMDGPU_TARGETS {len(lists)} times", expected="one list of targets")
    return _target_names(lists[0].split(","), source)


def parse_jax_configs(text: str, source: str) -> Facts:
    """Return the configs that a ``.bazelrc`` of JAX defines, each with the configs that it includes."""
    included = defaultdict[str, list[str]](list)
    for name, options in re.findall(r"^(?:common|build|test):([\w.-]+)[ \t]+(.*)$", text, re.MULTILINE):
        included[name] += re.findall(r"--config=([\w.-]+)", options)
    return _require({name: " ".join(sorted(found)) for name, found in included.items()}, source, "lines of configs")


def parse_jax_targets(text: str, source: str) -> Facts:
    """Return the names of the targets in a BUILD file of JAX."""
    return _require(dict.fromkeys(re.findall(r'^    name = "([\w.-]+)",$', text, re.MULTILINE), ""), source, "targets")


def parse_jax_pythons(text: str, source: str) -> Facts:
    """Return the Python versions that JAX's ``WORKSPACE`` has requirements for."""
    versions = re.findall(r'"(3\.[0-9]+(?:-ft)?)": "//build:requirements_lock_', text)
    return _require(dict.fromkeys(versions, ""), source, "files with requirements")


def parse_amd_gpus(text: str, source: str) -> Facts:
    """Return the targets of the products in ``gpus.yaml`` of AMD's documentation, and of their integrated GPUs."""
    targets = defaultdict[str, set[str]](set)
    try:
        for group, products in yaml.safe_load(text).items():
            for name, row in {} if group.startswith("_") else products.items():
                for product in filter(None, (name, row.get("igpu"))):
                    targets[product].add(_check_target(row["gfx"], source))
    except (yaml.YAMLError, AttributeError, KeyError, TypeError) as e:
        raise InputError(source, f"can't be read ({e})", expected="groups of products, each with its gfx target") from e
    return _require({name: join_targets(found) for name, found in targets.items()}, source, "products")


def parse_pci_ids(text: str, source: str) -> Facts:
    """Return the chip of each AMD device in ``pci.ids``: the text before the products in brackets."""
    vendor = re.search(rf"^{_VENDOR_AMD}  .*\n((?:[\t#].*\n|\n)*)", text, re.MULTILINE)
    lines = vendor[1].splitlines() if vendor else []
    found = {match[1]: match[2].partition(" [")[0] for line in lines if (match := _DEVICE.fullmatch(line))}
    return _require(found, source, f"devices of vendor {_VENDOR_AMD}")


def parse_amdgpu_ids(text: str, source: str) -> Facts:
    """Return the PCI device IDs of each product in libdrm's ``amdgpu.ids``, in lower case."""
    devices = defaultdict[str, set[str]](set)
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#") or re.fullmatch(r"[\d.]+", line):
            continue
        match = _PRODUCT.fullmatch(line)
        if match is None:
            raise _bad_line(source, number, line, expected="DEVICE, REVISION, PRODUCT")
        devices[match[2]].add(match[1].lower())
    return _require({name: join_targets(found) for name, found in devices.items()}, source, "products")


def parse_libraries(text: str, source: str) -> Facts:
    """Return the package and folder of each library that TheRock's ``_dist_info.py`` declares, by its file name.

    File names are the patterns of the file without the version: ``libhiprtc.so``, ``hiprtc*.dll``.
    """
    found: Facts = {}
    try:
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        for call in calls:
            if isinstance(call.func, ast.Name) and call.func.id == "LibraryEntry":
                name, package, library, dll, *rest = (ast.literal_eval(argument) for argument in call.args)
                found[name] = f"{package} {rest[0] if rest else 'lib'} {library.partition('.so')[0].rstrip('*')}"
                if dll:
                    found[dll] = package
    except (SyntaxError, ValueError) as e:
        raise InputError(
            source, f"can't be read ({e})", expected="LibraryEntry(NAME, PACKAGE, PATTERN, PATTERN)"
        ) from e
    return _require(found, source, "calls of LibraryEntry")


def parse_hip_version(text: str, source: str) -> Facts:
    """Return the SONAMEs of HIP's libraries, from HIP's ``VERSION``."""
    major = _major(re.search(r"^#HIP_VERSION_MAJOR\n(\d+)$", text, re.MULTILINE), source, "#HIP_VERSION_MAJOR")
    return {f"{name}.so.{major}": "" for name in ("libamdhip64", "libhiprtc", "libhiprtc-builtins")}


def parse_amdsmi_header(text: str, source: str) -> Facts:
    """Return the SONAME of AMD SMI's library, from ``amdsmi.h``."""
    match = re.search(r"^#define AMDSMI_LIB_VERSION_MAJOR (\d+)$", text, re.MULTILINE)
    return {f"libamd_smi.so.{_major(match, source, '#define AMDSMI_LIB_VERSION_MAJOR')}": ""}


def targets_of_products(products: Mapping[str, str], chips: Mapping[str, str], known: Mapping[str, str]) -> Facts:
    """Return the targets of ``products``, which have device IDs, by the chips of the devices.

    ``known`` has the target of each chip, or of each device whose chip isn't in ``chips`` or is ambiguous. The longest
    name wins that begins the name of the chip. A product whose chips have empty targets is left out. For an unknown
    chip, the value names the chip.
    """
    found: Facts = {}
    for product, devices in products.items():
        targets = [_target_of_device(device, chips.get(device, ""), known) for device in devices.split()]
        if any(targets):
            found[product] = join_targets(target for each in targets for target in each.split())
    return found


def _target_of_device(device: str, chip: str, known: Mapping[str, str]) -> str:
    if device in known:
        return known[device]
    name = max((name for name in known if chip.startswith(name)), key=len, default="")
    return known[name] if name else f"unknown:{device}:{chip.replace(' ', '_')}"


def _check_target(word: str, source: str) -> str:
    if not _TARGET.fullmatch(word):
        raise InputError(source, f"names the target {quoted(word)}", expected="a target such as gfx90a")
    return word


def _target_names(words: Iterable[str], source: str) -> Facts:
    return _require({_check_target(word, source): "" for word in words}, source, "GPU targets, such as gfx90a")


def _bad_line(source: str, number: int, line: str, *, expected: str) -> InputError:
    return InputError(f"{source}:{number}", f"has {quoted(line)}", expected=expected)


def _major(match: re.Match[str] | None, source: str, expected: str) -> int:
    if match is None:
        raise InputError(source, "has no version", expected=f"{expected} and a number")
    return int(match[1])


def _require(found: Facts, source: str, expected: str) -> Facts:
    if not found:
        raise InputError(source, "has no entry", expected=expected)
    return found
