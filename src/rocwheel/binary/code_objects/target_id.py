"""AMDGPU target ids and bundle entry ids, after the clang offload bundler's and LLVM's AMDGPU user guides.

A target id is a processor and its set features, ``gfx90a:sramecc+:xnack-``. A feature that is not named may be either.
A bundle entry id puts the offload kind and the triple before it, ``hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+``.

Sources: https://llvm.org/docs/AMDGPUUsage.html#target-id and https://clang.llvm.org/docs/ClangOffloadBundler.html
"""

from __future__ import annotations

import re

import msgspec

from rocwheel.core.errors import InputError

__all__ = [
    "DEVICE_KINDS",
    "FEATURES",
    "BundleEntryId",
    "TargetId",
    "parse_target_id",
    "processor_of",
    "retargeted_triple",
]

FEATURES = ("sramecc", "xnack")
"""The features a target id may name, in canonical order."""

_PROCESSOR = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_GENERIC = re.compile(r"gfx([0-9]+(-[0-9]+)?)-generic")
_SPECIFIC = re.compile(r"gfx([0-9]+)([0-9a-f]{2})(-[a-z]+)?")
_FEATURE = re.compile(r"([a-z]+)([+-])")
DEVICE_KINDS = frozenset({"hip", "hipv4", "openmp", "hcc"})
"""The offload kinds of code for AMD GPUs."""


class TargetId(msgspec.Struct, frozen=True):
    """A processor and the settings of its features; a feature left ``None`` may be on or off.

    Targets have no order of their own: bundles sort them by their spelling, lists as the catalogue does.
    """

    processor: str
    sramecc: bool | None = None
    xnack: bool | None = None

    @property
    def features(self) -> dict[str, bool]:
        """The features that are set, by name, in canonical order."""
        settings = {"sramecc": self.sramecc, "xnack": self.xnack}
        return {name: setting for name, setting in settings.items() if setting is not None}

    @property
    def is_generic(self) -> bool:
        """Whether the processor stands for a family, such as ``gfx10-3-generic``."""
        return self.processor.endswith("-generic")

    def __str__(self) -> str:
        return self.processor + "".join(f":{name}{'+' if setting else '-'}" for name, setting in self.features.items())


def parse_target_id(text: str, *, source: str = "target id") -> TargetId:
    """Parse ``gfx90a:sramecc+:xnack-``; features may come in any order, each once.

    Raises `InputError`, led by ``source``, for an empty or malformed processor and for an unknown or repeated feature.
    """
    processor, *features = text.split(":")
    if not _PROCESSOR.fullmatch(processor):
        raise _bad_target(text, source, f"the processor {processor!r}")
    settings: dict[str, bool] = {}
    for feature in features:
        match = _FEATURE.fullmatch(feature)
        if match is None or match[1] not in FEATURES:
            raise _bad_target(text, source, f"the feature {feature!r}")
        if match[1] in settings:
            raise _bad_target(text, source, f"{match[1]}, which is given twice")
        settings[match[1]] = match[2] == "+"
    return TargetId(processor, **settings)


def processor_of(text: str) -> str:
    """Return the processor of a target id, without features: ``gfx90a`` for ``gfx90a:xnack-``. Checks nothing."""
    return text.partition(":")[0]


def retargeted_triple(triple: str, old: TargetId, new: TargetId) -> str:
    """Return the triple of code for ``old`` as that of code for ``new``.

    LLVM 24 has the processor in the architecture: ``amdgpu10.30-amd-amdhsa-unknown`` for gfx1030,
    ``amdgpu10.3-amd-amdhsa-unknown`` for gfx10-3-generic. See https://github.com/llvm/llvm-project/pull/206480.
    Before, and where it stands for the family of both, it stays.
    """
    architecture, dash, rest = triple.partition("-")
    if architecture != f"amdgpu{_version_of(old)}":
        return triple
    return f"amdgpu{_version_of(new)}{dash}{rest}"


def _version_of(target: TargetId) -> str:
    if match := _GENERIC.fullmatch(target.processor):
        return match[1].replace("-", ".")
    match = _SPECIFIC.fullmatch(target.processor)
    return f"{match[1]}.{match[2]}" if match else target.processor


def _bad_target(text: str, source: str, part: str) -> InputError:
    return InputError(
        source,
        f"{text!r} is not a target id because of {part}",
        expected="a processor and at most one each of sramecc and xnack, such as gfx90a:sramecc+:xnack-",
    )


class BundleEntryId(msgspec.Struct, frozen=True):
    """The id of a bundle entry: ``kind-arch-vendor-os-environment-target``, split at the first five dashes.

    The environment is empty for amdhsa. The host entry has no target.
    """

    kind: str
    triple: str
    target: TargetId | None

    @classmethod
    def parse(cls, text: str, *, source: str = "bundle entry id") -> BundleEntryId:
        """Parse an entry id of any compiler; raises `InputError`, led by ``source``, when it can't be one.

        Never split from the right: generic processors hold dashes, and ``xnack-`` ends with one.
        """
        kind, _, rest = text.partition("-")
        if kind == "host" and rest:
            return cls(kind, rest.rstrip("-"), None)
        fields = rest.split("-", 4)
        if kind not in DEVICE_KINDS or len(fields) < 5:
            raise InputError(
                source,
                f"{text!r} is not a bundle entry id",
                expected="host-TRIPLE or KIND-ARCH-VENDOR-OS-ENVIRONMENT-TARGET, KIND being hip, hipv4 or openmp",
            )
        return cls(kind, "-".join(fields[:4]), parse_target_id(fields[4], source=source))

    @property
    def is_host(self) -> bool:
        """Whether this is the (empty) entry of the host."""
        return self.kind == "host"

    def retargeted(self, new: TargetId) -> BundleEntryId:
        """Return the id of code for another target."""
        triple = retargeted_triple(self.triple, self.target, new) if self.target else self.triple
        return BundleEntryId(self.kind, triple, new)

    def __str__(self) -> str:
        if self.target is None:
            return f"{self.kind}-{self.triple}"
        return f"{self.kind}-{self.triple}-{self.target}"
