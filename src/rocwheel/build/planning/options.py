"""The options of a build, and their validation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec
from packaging.version import Version

from rocwheel.binary.bundles.runtimes import parse_rocm
from rocwheel.binary.bundles.storage import choose_version
from rocwheel.binary.platform import Platform
from rocwheel.core.errors import InputError
from rocwheel.core.workers import map_collecting
from rocwheel.targets.machine import native_targets
from rocwheel.targets.retarget_pairs import TargetPair, parse_pairs
from rocwheel.targets.target_set import parse_target_set, target_words
from rocwheel.wheels.tags import check_platform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rocwheel.artifacts.catalog import Catalog
    from rocwheel.binary.code_objects import TargetId

DevelCompression = Literal["none", "xz", "zst"]

DeviceCodeForm = Literal["keep", "compress", "trim"]

DeviceSplit = Literal["none", "kpack", "overlay"]

SelectorForm = Literal["sdist", "wheel"]


class PlanOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of a build, in addition to its artifacts and recipe."""

    version: str | None = None
    """The version of all distributions; by default that of the SDK manifest; empty for its ``.dev0`` version."""
    module_suffix: str = ""
    """A suffix for the names of platform modules, so that several builds fit one environment."""
    targets: tuple[str, ...] = ()
    """GPU targets or families whose packages are built, in any spelling; empty for all."""
    linux_families: tuple[str, ...] = ()
    """GPU targets or families that the release has for Linux, in any spelling; empty for unknown."""
    windows_families: tuple[str, ...] = ()
    """GPU targets or families that the release has for Windows.

    Artifacts must have the targets that are listed for their platform. If both lists are known, the builds for both
    platforms write the same selector.
    """
    default_family: str = ""
    """The selector's default on machines without a GPU; if empty, it refuses and lists the choices."""
    selector: SelectorForm = "sdist"
    devel_compression: DevelCompression = "none"
    device_code: DeviceCodeForm = "keep"
    """What happens to plain offload bundles: they stay, are compressed in place, or are also moved together."""
    split_device: DeviceSplit = "none"
    """Whether device code goes to packages for its targets: as kpack archives, or in whole libraries."""
    common: tuple[str, ...] = ()
    """GPU targets, in any spelling, whose code libraries keep for all GPUs in addition to libraries per target."""
    retarget: tuple[str, ...] = ()
    """Pairs ``FROM=TO[,TO...]`` of targets: code for the first is also offered to GPUs of the others."""
    variants: bool = False
    """Whether packages for each GPU are also offered as wheel variants (a draft) with a single name."""
    rocm: str | None = None
    """The oldest ROCm release that must read compressed bundles; by default that of the SDK manifest."""
    platform_tag: str | None = None
    """The platform tag of all wheels; by default each tag is computed from the wheel's files."""
    platform_tag_source: str = "--platform-tag"
    """The source of that tag, for messages."""
    platform: Platform | None = None
    """The required system of the artifacts; by default the system of their files."""


def check_options(options: PlanOptions) -> None:
    """Raise `InputError` for invalid options before anything is read, or `ProblemsError` for several."""
    checks: tuple[Callable[[PlanOptions], object], ...]
    checks = (
        lambda one: not one.version or _normalized(one.version, "--version"),
        _check_suffix,
        lambda one: [expected_targets(one, platform) for platform in Platform],
        lambda one: one.rocm is None or parse_rocm(one.rocm, source="--rocm"),
        _check_tag,
        _check_platform,
        retarget_pairs,
        common_targets,
        _check_families,
    )
    map_collecting("options", lambda check: check(options), checks)


def _check_suffix(options: PlanOptions) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_]*", options.module_suffix):
        option, found = "--version-suffix", f"is {options.module_suffix!r}"
        raise InputError(option, found, expected="letters, digits and underscores, as in a module's name")


def _check_tag(options: PlanOptions) -> None:
    if options.platform_tag is not None:
        check_platform(options.platform_tag, options.platform_tag_source)


def _check_families(options: PlanOptions) -> None:
    if options.selector == "wheel" and options.linux_families and options.windows_families:
        option, found = "--selector wheel", "is given with the families of Linux and of Windows"
        remedy = "Build the selector as an sdist, which is the same for both, or give one list."
        raise InputError(option, found, remedy=remedy)


def _check_platform(options: PlanOptions) -> None:
    if options.platform is not None and not isinstance(options.platform, Platform):
        option, found = "platform", f"is {options.platform!r}"
        raise InputError(option, found, expected=f"one of {', '.join(map(str, Platform))}, as a Platform")


class ExpectedTarget(msgspec.Struct, frozen=True):
    """A processor that must be present, the word that requests it, and the option with this word."""

    processor: str
    word: str
    option: str


FAMILY_OPTIONS = {Platform.LINUX: "--linux-amdgpu-families", Platform.WINDOWS: "--windows-amdgpu-families"}
"""The options with the families of a release, which are the reference's."""


def expected_targets(options: PlanOptions, platform: Platform) -> tuple[ExpectedTarget, ...]:
    """Return the processors that the artifacts of a platform must have. Raises `InputError` for unknown words."""
    families = {Platform.LINUX: options.linux_families, Platform.WINDOWS: options.windows_families}[platform]
    return (*_expected(options.targets, "--targets"), *_expected(families, FAMILY_OPTIONS[platform]))


def _expected(texts: tuple[str, ...], option: str) -> Iterator[ExpectedTarget]:
    processors = parse_target_set(texts, source=option, required=bool(texts)).processors
    words = {
        processor: word
        for word in reversed(target_words(texts))
        for processor in parse_target_set(word, source=option).processors
    }
    return (ExpectedTarget(processor, words[processor], option) for processor in processors)


_WITHOUT_RULE = (
    "Only pairs with a rule are taken here. If you know that it does, run `rocwheel device retarget --force FROM=TO` "
    "on the tree first."
)


def retarget_pairs(options: PlanOptions) -> tuple[TargetPair, ...]:
    """Return which code is offered to which other GPUs. Raises `InputError` for pairs that no rule allows."""
    source, remedy = "--retarget", _WITHOUT_RULE
    pairs = map_collecting(
        source, lambda text: parse_pairs(text, source=source, native=native_targets, remedy=remedy), options.retarget
    )
    return tuple(dict.fromkeys(pair for found in pairs for pair in found))


def common_targets(options: PlanOptions) -> tuple[TargetId, ...]:
    """Return the targets whose code libraries keep for all GPUs; empty for the default.

    Raises `InputError` for unknown words, for an empty list, and if libraries are not split per target.
    """
    if options.common and options.split_device != "overlay":
        option, found = "--common", "says what libraries keep beside those for each target, and there are none of these"
        raise InputError(option, found, expected="it with --split-device=overlay")
    return parse_target_set(options.common, source="--common", required=bool(options.common)).ids


def compress_for(catalog: Catalog, options: PlanOptions) -> str | None:
    """Return the ROCm release that must read compressed device code, or `None` if device code stays unchanged.

    Raises `InputError` if that release can't read compressed bundles, or if it is unknown.
    """
    if options.device_code == "keep":
        return None
    release = options.rocm or (catalog.manifest.rocm_version if catalog.manifest else "")
    option = f"--device-code {options.device_code}"
    if not release:
        found = "needs to know which ROCm release will read the result"
        raise InputError(option, found, expected="rocm_version in the SDK's manifest", remedy="Give --rocm VERSION.")
    choose_version(0, rocm=release, source=option)
    return release


def checked_version(catalog: Catalog, options: PlanOptions) -> str:
    """Return the normalized version of all distributions. Raises `InputError` if it doesn't follow :pep:`440`."""
    manifest = catalog.manifest
    if options.version:
        return _normalized(options.version, "--version")
    if options.version == "" and manifest and manifest.rocm_version:
        return _normalized(f"{manifest.rocm_version}.dev0", f"{catalog.root}: the SDK manifest's version")
    text = (manifest and (manifest.rocm_package_version or manifest.rocm_version)) or ""
    if not text:
        found, expected = "names no version", "rocm_package_version in its manifest"
        raise InputError(catalog.root, found, expected=expected, remedy="Give one with --version.")
    return _normalized(text, f"{catalog.root}: the SDK manifest's version")


def _normalized(text: str, source: str) -> str:
    try:
        return str(Version(text))
    except ValueError as e:
        expected = "a version as PEP 440 defines it, such as 7.2.0 or 7.2.0rc1"
        raise InputError(source, f"is {text!r}", expected=expected, remedy="Give one with --version.") from e
