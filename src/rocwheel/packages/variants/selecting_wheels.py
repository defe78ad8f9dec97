"""Variant wheels that hold no files and require the packages of a GPU: one name for what exists for each GPU."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.formats.metadata.metadata import CoreMetadata, metadata_files
from rocwheel.distributions.formats.wheel import WheelName
from rocwheel.distributions.variants.draft import load_draft
from rocwheel.distributions.variants.variant_json import make_metadata, render_metadata
from rocwheel.packages.variants.choices import make_choices
from rocwheel.targets.catalog.catalog import load_catalog, sort_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.packages.variants.gpu_package import GpuPackage

__all__ = ["SelectingWheel", "make_selecting_wheels"]

_LICENSE_FILE = "LICENSE"
_DESCRIPTION = """\
Requires the packages for this machine's GPU, and holds no files itself. Its wheels are wheel variants, a draft
({drafts}): installers that know these take the wheel for the GPU. All others take one that requires the packages for
every GPU.
"""


class SelectingWheel(msgspec.Struct, frozen=True):
    """A wheel of metadata alone."""

    name: WheelName
    metadata: CoreMetadata
    texts: dict[str, str]
    """Of its ``.dist-info``, by their names there: the license and, but for the plain wheel, ``variant.json``."""

    @property
    def files(self) -> dict[str, bytes]:
        """All files of its ``.dist-info`` but RECORD, by their names in it."""
        others = {name: text.encode() for name, text in self.texts.items()}
        return metadata_files(self.metadata, self.name.tag, is_purelib=True, entry_points={}, others=others)


def make_selecting_wheels(packages: Iterable[GpuPackage], license_text: str) -> list[SelectingWheel]:
    """Return, for each name, version and machine of packages, a wheel for each GPU and two for all others.

    The null variant, for machines on which an installer finds none of the GPUs, requires what all of the packages do.
    The plain wheel, for installers that don't know variants, requires all of the packages.
    ``license_text`` is that of the MIT license, which is all that covers the wheels' own content.
    """
    groups: dict[tuple[str, ...], list[GpuPackage]] = defaultdict(list)
    for package in packages:
        key = (package.base, package.version, *package.machine)
        groups[key].append(package)
    own = {f"licenses/{_LICENSE_FILE}": license_text}
    return [wheel for key in sorted(groups) for wheel in _make_group(groups[key], own)]


def _make_group(packages: Sequence[GpuPackage], own: dict[str, str]) -> Iterator[SelectingWheel]:
    choices = make_choices(packages)
    for choice in choices:
        requires = tuple(package.pin for package in choice.packages)
        texts = own | _variant_text(choice.label, choice.targets)
        yield _make_wheel(choice.packages, requires, texts, choice.label)
    needed = [package for choice in choices for package in choice.packages]
    null = load_draft().names.null_label
    yield _make_wheel(needed, _common_requirements(needed), own | _variant_text(null, ()), null)
    yield _make_wheel(needed, tuple(dict.fromkeys(package.pin for package in needed)), own)


def _variant_text(label: str, values: Sequence[str]) -> dict[str, str]:
    return {load_draft().names.in_wheel: render_metadata(make_metadata(label, values, _known_targets())).decode()}


def _make_wheel(
    packages: Sequence[GpuPackage], requires: tuple[str, ...], texts: dict[str, str], label: str = ""
) -> SelectingWheel:
    first = packages[0]
    newest = max(packages, key=lambda package: package.age)
    metadata = CoreMetadata(
        first.base,
        first.version,
        f"The {first.base} packages for this machine's GPU (wheel variants, a draft)",
        requires_python=first.requires_python,
        license_expression="MIT",
        license_files=(_LICENSE_FILE,),
        requires=requires,
        description=_DESCRIPTION.format(drafts=" and ".join(load_draft().drafts)),
    )
    return SelectingWheel(WheelName(first.base, first.version, "-".join(newest.tags), label), metadata, texts)


def _common_requirements(packages: Sequence[GpuPackage]) -> tuple[str, ...]:
    """Return what each of the packages requires, whichever extras are asked for."""
    others = [set(package.requires) for package in packages]
    return tuple(text for text in packages[0].requires if "extra" not in text and set.intersection(*others) >= {text})


def _known_targets() -> list[str]:
    """Return the same targets for every package and build, so that no wheel changes when another GPU is added."""
    grammar = load_draft().grammar
    names = (target.name for target in load_catalog().targets)
    return sorted((name for name in names if grammar.has("value", name)), key=sort_key)
