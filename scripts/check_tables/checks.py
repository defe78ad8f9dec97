"""The tables of rocwheel as names with values, and their comparison with what the public sources say."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.binary.code_objects import known_processors, machine_of
from rocwheel.core.decoding import read_table
from rocwheel.environment.known_libraries import find_sdk_dll
from rocwheel.environment.sdk_layout import find_sdk_library, other_versions, sdk_folders, short_name
from rocwheel.frameworks.jax.bazelrc import JAX_ROCM_BAZELRC
from rocwheel.frameworks.jax.jax_tree import jax_tree
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.errors import AmbiguousProductError
from rocwheel.targets.target_set import product_key, target_of_product
from scripts.check_tables import sources
from scripts.check_tables.sources import Facts, join_targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


class Explanation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a table and a source may differ in some names."""

    check: str
    names: tuple[str, ...]
    """Patterns for the names."""
    reason: str
    only_table: bool = False
    """Whether this explains only names that the source lacks."""

    def explains(self, name: str, *, is_in_source: bool) -> bool:
        """Return whether this is the reason for a difference in a name."""
        if self.only_table and is_in_source:
            return False
        return any(fnmatchcase(name, pattern) for pattern in self.names)


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of ``check_tables.toml``."""

    sources: dict[str, str]
    """The URL of each source by its name."""
    chips: dict[str, str]
    """The targets of each chip, by the beginning of its name in ``pci.ids``, or by a device ID."""
    unsupported: tuple[str, ...]
    """Chips, named likewise, that no ROCm release has code for."""
    explained: tuple[Explanation, ...] = ()


def load_settings() -> Settings:
    """Return the settings next to this module."""
    return read_table("scripts.check_tables", "check_tables.toml", Settings)


class Check(NamedTuple):
    """One table, with the sources to compare it with."""

    name: str
    table: str
    """The table's file and part, for the report."""
    sources: tuple[str, ...]
    read_sources: Callable[[Sequence[str]], Facts]
    """Returns the names in the texts of the sources, which are in the order of `sources`."""
    read_table: Callable[[Facts], Facts]
    """Returns the names in the table. It gets those of the sources, for tables that answer questions about names."""


class Difference(NamedTuple):
    """A name in which a table and its source differ."""

    name: str
    table: str | None
    """The value in the table, or `None` if the table lacks the name."""
    source: str | None
    """The value in the source, or `None` if the source lacks the name."""
    reason: str = ""
    """Why the difference is right; empty if nothing explains it."""


def compare(table: Facts, source: Facts, explained: Iterable[Explanation]) -> list[Difference]:
    """Return the differences: first what the table lacks, then other values, and then what the source lacks."""
    names = [*(source.keys() - table.keys()), *(n for n in table.keys() & source if table[n] != source[n])]
    names = sorted(names, key=lambda name: (name in table, name)) + sorted(table.keys() - source.keys())
    known = list(explained)
    reasons = (
        next((one.reason for one in known if one.explains(name, is_in_source=name in source)), "") for name in names
    )
    return [
        Difference(name, table.get(name), source.get(name), reason) for name, reason in zip(names, reasons, strict=True)
    ]


def _machines(_: Facts) -> Facts:
    machines = (machine_of(name) for name in known_processors())
    return {machine.processor: f"{machine.mach:#04x}" for machine in machines if machine}


def _families(_: Facts) -> Facts:
    return {family.name: join_targets(family.targets) for family in load_catalog().families}


def _flags(_: Facts) -> Facts:
    return {name: "" for row in load_catalog().releases for name in (*row.official, *row.unofficial)}


def _releases(source: Facts) -> Facts:
    """Return the rows of Gentoo's releases by the pattern of ``rocm.eclass`` that fits the first version of the row."""
    patterns = list(dict.fromkeys(name.rpartition(" ")[0] for name in source))
    found: Facts = {}
    for row in load_catalog().releases:
        version = row.since if row.since.count(".") > 1 else f"{row.since}.0"
        words = (one for one in patterns if any(fnmatchcase(version, word) for word in one.split("|")))
        pattern = next(words, row.since)
        found[f"{pattern} official"] = join_targets(row.official)
        found[f"{pattern} unofficial"] = join_targets(row.unofficial)
    return found


def _packager(name: str) -> Callable[[Facts], Facts]:
    def read(_: Facts) -> Facts:
        return {target: "" for row in load_catalog().packagers if row.name == name for target in row.targets}

    return read


def _products(source: Facts) -> Facts:
    """Return the catalog's targets for the products of the source, and the products that the source lacks."""
    found = {name: targets for name in source if (targets := _targets_of_product(name))}
    keys = {product_key(part) for name in source for part in name.split(" / ")}
    rows = ((product, row.name) for row in load_catalog().targets for product in row.products)
    return found | {product: target for product, target in rows if product_key(product) not in keys}


def _targets_of_product(name: str) -> str:
    try:
        return target_of_product(name) or ""
    except AmbiguousProductError as e:
        return join_targets(e.choices.values())


def _libraries(source: Facts) -> Facts:
    """Return the libraries of the layout by their short names, and the packages of the DLLs in the source."""
    packages = {"rocm-sdk-core": "core", "rocm-sdk-libraries": "libraries"}
    found: Facts = {}
    for folder in sdk_folders():
        for soname in folder.libraries:
            if short := short_name(soname):
                place = folder.folder.partition("/")[2]
                found[short] = f"{packages[folder.distribution]} {place} {soname.partition('.so')[0]}"
    for pattern in source:
        if pattern.endswith(".dll") and (package := find_sdk_dll(pattern.lstrip("*").replace("*", "_1"))):
            found[pattern] = packages[package.distribution]
    return found


def _sonames(source: Facts) -> Facts:
    """Return the SONAMEs in the layout that the source has, in any version."""
    names = {one for name in source for one in (name, *other_versions(name)) if find_sdk_library(one)}
    return dict.fromkeys(names, "")


def _one(parse: Callable[[str, str], Facts], name: str) -> Callable[[Sequence[str]], Facts]:
    def read(texts: Sequence[str]) -> Facts:
        return parse(texts[0], name)

    return read


def _pci_products(chips: Mapping[str, str]) -> Callable[[Sequence[str]], Facts]:
    def read(texts: Sequence[str]) -> Facts:
        products = sources.parse_amdgpu_ids(texts[0], "amdgpu-ids")
        return sources.targets_of_products(products, sources.parse_pci_ids(texts[1], "pci-ids"), chips)

    return read


_JAX_SOURCES = ("jax-bazelrc", "jax", "jax-wheels", "jax-workspace")
_JAX_PACKAGE = "//jaxlib/tools:"
_ROCM_CONFIG = "rocm_release_wheel"


def _jax_tree(_: Facts) -> Facts:
    tree = jax_tree()
    rocm = [*tree.targets.values(), *(f"{label}_editable" for label in tree.targets.values())]
    targets = (tree.git_hash.removeprefix("--"), *rocm, *tree.other_targets.values())
    return {
        **{f"config {name}": file for file, names in tree.configs.items() for name in names},
        **{f"target {label}": "" for label in targets},
        **{f"python {version}": "" for version in tree.python_versions},
        _ROCM_CONFIG: " ".join(sorted(tree.included)),
    }


def _jax_sources(texts: Sequence[str]) -> Facts:
    """Return the names in JAX's files that the table has, and all Python versions and included configs."""
    files = (".bazelrc", JAX_ROCM_BAZELRC)
    configs = [sources.parse_jax_configs(text, name) for text, name in zip(texts[:2], _JAX_SOURCES, strict=False)]
    found = {f"config {name}": file for file, names in zip(files, configs, strict=True) for name in names}
    found |= {f"target {_JAX_PACKAGE}{name}": "" for name in sources.parse_jax_targets(texts[2], _JAX_SOURCES[2])}
    pythons = {f"python {version}": "" for version in sources.parse_jax_pythons(texts[3], _JAX_SOURCES[3])}
    included, added = set[str](), {_ROCM_CONFIG}
    while added:
        included |= added
        added = {one for name in added for one in configs[1].get(name, "").split()} - included
    known = _jax_tree({})
    return (
        {name: value for name, value in found.items() if name in known}
        | pythons
        | {_ROCM_CONFIG: " ".join(sorted(included))}
    )


_DEBIAN = {
    "debian-13": "trixie",
    "debian-forky": "forky",
    "debian-sid": "sid",
    "debian-experimental": "experimental",
    "ubuntu-26.04": "resolute",
    "ubuntu-26.10": "stonking",
}
"""The file of each list in Debian's pkg-rocm-tools."""


def make_checks(settings: Settings) -> list[Check]:
    """Return all checks, in the order of the report."""
    catalog, layout = "targets/catalog.toml", "environment/sdk_layout.toml"
    simple = [
        ("machines", "binary/machine.toml", "llvm", sources.parse_elf_header, _machines),
        ("families", f"{catalog}, family", "therock-targets", sources.parse_therock_targets, _families),
        ("gentoo-flags", f"{catalog}, release", "gentoo-desc", sources.parse_gentoo_flags, _flags),
        ("gentoo-releases", f"{catalog}, release", "gentoo-eclass", sources.parse_eclass, _releases),
        *(
            (name, f"{catalog}, packager", f"debian-{suite}", sources.parse_target_lines, _packager(name))
            for name, suite in _DEBIAN.items()
        ),
        ("jax", f"{catalog}, packager", "jax", sources.parse_bazelrc, _packager("jax")),
        ("amd-products", f"{catalog}, target", "amd-gpus", sources.parse_amd_gpus, _products),
        ("libraries", f"{layout} and windows_libraries.toml", "therock-libraries", sources.parse_libraries, _libraries),
        ("hip-sonames", layout, "hip-version", sources.parse_hip_version, _sonames),
        ("amd-smi-sonames", layout, "amdsmi-header", sources.parse_amdsmi_header, _sonames),
    ]
    checks = [Check(name, table, (one,), _one(parse, one), read) for name, table, one, parse, read in simple]
    pci = ("amdgpu-ids", "pci-ids")
    return [
        *checks,
        Check("jax-tree", "frameworks/jax/jax_tree.toml", _JAX_SOURCES, _jax_sources, _jax_tree),
        Check(
            "pci-products",
            f"{catalog}, target",
            pci,
            _pci_products({**settings.chips, **dict.fromkeys(settings.unsupported, "")}),
            _products,
        ),
    ]
