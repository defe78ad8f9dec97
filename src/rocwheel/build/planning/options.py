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
    """The version of all distributions.

    The default is the version in the SDK manifest. An empty string means the ``.dev0`` version of that release.
    """
    module_suffix: str = ""
    """A suffix for the names of platform modules, so that several builds can share an environment."""
    targets: tuple[str, ...] = ()
    """The GPU targets or families whose packages are built, in any accepted form. Empty means all."""
    linux_families: tuple[str, ...] = ()
    """The GPU targets or families that the release supports on Linux, in any accepted form; empty if unknown."""
    windows_families: tuple[str, ...] = ()
    """The GPU targets or families that the release supports on Windows.

    Artifacts must exist for the targets that are listed for the build's platform. If both lists are known, the builds
    for both platforms write the same selector.
    """
    default_family: str = ""
    """The family that the selector chooses on machines without a GPU.

    If empty, the selector lists the choices and fails.
    """
    selector: SelectorForm = "sdist"
    devel_compression: DevelCompression = "none"
    device_code: DeviceCodeForm = "keep"
    """The form of plain offload bundles: unchanged, compressed in place, or compressed with the freed space removed."""
    split_device: DeviceSplit = "none"
    """Whether device code goes to separate packages for its targets: as kpack archives, or in whole libraries."""
    common: tuple[str, ...] = ()
    """GPU targets, in any spelling, whose code also remains in the libraries for all GPUs when libraries are split."""
    retarget: tuple[str, ...] = ()
    """Pairs of targets in the form ``FROM=TO[,TO...]``.

    Code for ``FROM`` is also offered to the GPUs of each ``TO``.
    """
    variants: bool = False
    """Whether packages for single GPUs are also offered as wheel variants (a draft) with a shared name."""
    rocm: str | None = None
    """The oldest ROCm release that must be able to read compressed bundles.

    The default is the release in the SDK manifest.
    """
    platform_tag: str | None = None
    """The platform tag of all wheels. By default, each wheel's tag is computed from its files."""
    platform_tag_source: str = "--platform-tag"
    """The source of ``platform_tag``, for messages."""
    platform: Platform | None = None
    """The operating system for which the artifacts must be built. By default, the files determine it."""


def check_options(options: PlanOptions) -> None:
    """Raise `InputError` for an invalid option before anything is read, or `ProblemsError` for several options."""
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
        raise InputError(option, found, expected="letters, digits, and underscores, as in a module name")


def _check_tag(options: PlanOptions) -> None:
    if options.platform_tag is not None:
        check_platform(options.platform_tag, options.platform_tag_source)


def _check_families(options: PlanOptions) -> None:
    if options.selector == "wheel" and options.linux_families and options.windows_families:
        option, found = "--selector wheel", "can't be used with families for both Linux and Windows"
        remedy = (
            "Build the selector as an sdist, which is the same for both systems, or specify only one list of families."
        )
        raise InputError(option, found, remedy=remedy)


def _check_platform(options: PlanOptions) -> None:
    if options.platform is not None and not isinstance(options.platform, Platform):
        option, found = "platform", f"is {options.platform!r}"
        raise InputError(option, found, expected=f"a member of Platform: {', '.join(map(str, Platform))}")


class ExpectedTarget(msgspec.Struct, frozen=True):
    """A processor that must be present, the word that requests it, and the option that contains the word."""

    processor: str
    word: str
    option: str


FAMILY_OPTIONS = {Platform.LINUX: "--linux-amdgpu-families", Platform.WINDOWS: "--windows-amdgpu-families"}
"""The options for the families of a release, with the same names as in the reference."""


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
    "Choose a pair that a rule allows. If you know that the code runs there, first run "
    "`rocwheel device retarget --force FROM=TO` on the tree."
)


def retarget_pairs(options: PlanOptions) -> tuple[TargetPair, ...]:
    """Return the pairs of targets for retargeting. Raises `InputError` for pairs that no rule allows."""
    source, remedy = "--retarget", _WITHOUT_RULE
    pairs = map_collecting(
        source, lambda text: parse_pairs(text, source=source, native=native_targets, remedy=remedy), options.retarget
    )
    return tuple(dict.fromkeys(pair for found in pairs for pair in found))


def common_targets(options: PlanOptions) -> tuple[TargetId, ...]:
    """Return the targets whose code stays in the libraries for all GPUs; empty for the default.

    Raises `InputError` for unknown words, for an empty list, and if libraries are not split per target.
    """
    if options.common and options.split_device != "overlay":
        option, found = "--common", "has no effect, because libraries are not split per target"
        raise InputError(option, found, expected="--common together with --split-device=overlay")
    return parse_target_set(options.common, source="--common", required=bool(options.common)).ids


def compress_for(catalog: Catalog, options: PlanOptions) -> str | None:
    """Return the ROCm release that must read compressed device code, or `None` if device code stays unchanged.

    Raises `InputError` if that release can't read compressed bundles, or if the release is unknown.
    """
    if options.device_code == "keep":
        return None
    release = options.rocm or (catalog.manifest.rocm_version if catalog.manifest else "")
    option = f"--device-code {options.device_code}"
    if not release:
        found = "needs to know which ROCm release will read the result"
        raise InputError(option, found, expected="rocm_version in the SDK manifest", remedy="Add --rocm VERSION.")
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
        found, expected = "has no version", "rocm_package_version in the SDK manifest"
        raise InputError(catalog.root, found, expected=expected, remedy="Set the version with --version.")
    return _normalized(text, f"{catalog.root}: the SDK manifest's version")


def _normalized(text: str, source: str) -> str:
    try:
        return str(Version(text))
    except ValueError as e:
        expected = "a PEP 440 version, such as 7.2.0 or 7.2.0rc1"
        raise InputError(source, f"is {text!r}", expected=expected, remedy="Set the version with --version.") from e
