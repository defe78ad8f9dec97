"""What a file has for which GPU target, by its bytes and, of kernel files, by its name."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.kind import has_facts, is_ar_archive, is_kpack
from rocwheel.device.reading.facts import read_device_facts
from rocwheel.device.reading.payload_facts import Look
from rocwheel.distributions.zip.reader import open_content
from rocwheel.foundation.errors import InputError, WorkError
from rocwheel.report.shares import divide
from rocwheel.report.values.files import HOST, Part
from rocwheel.targets.kernel_files.names import is_kernel_file, targets_in_path

if TYPE_CHECKING:
    from rocwheel.device.reading.device_facts import BundleFacts, DeviceFacts
    from rocwheel.diffing.values import Item, Unpack

__all__ = ["FileParts", "read_parts"]


class FileParts(msgspec.Struct, frozen=True):
    """The parts of one file, which add up to it, or why it could not be read."""

    parts: tuple[Part, ...] = ()
    problem: str = ""


def read_parts(item: Item, unpack: Unpack = open_content) -> FileParts:
    """Return the parts of a file, of a wheel's by way of ``unpack``; none for one that is the host's as a whole.

    Damage is its problem. Raises `WorkError` where the system is at fault.
    """
    if item.link is not None or item.content is None or not item.size:
        return FileParts()
    try:
        sizes = _sizes_by_target(item, unpack)
    except WorkError:
        raise
    except InputError as e:
        return FileParts(problem=f"{e.found}; expected {e.expected}" if e.expected else e.found)
    return FileParts(_as_parts(item, sizes))


def _sizes_by_target(item: Item, unpack: Unpack) -> dict[str, int]:
    head = item.head()
    if has_facts(head) or is_kpack(head) or is_ar_archive(head):
        with item.view(unpack) as data:
            facts = read_device_facts(data, name=item.source, look=Look(strict=False))
        if facts is not None:
            return _of_device_code(facts)
    if is_kernel_file(item.path) and (targets := targets_in_path(item.path)):
        return dict(zip(map(str, targets), divide(item.size, [1] * len(targets)), strict=True))
    return {}


def _of_device_code(facts: DeviceFacts) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    if facts.kpack and facts.kpack.wrappers:  # the code is in other files
        return found
    for bundle in facts.bundles:
        for target, size in _of_bundle(bundle):
            found[target] += size
    for entry in facts.entries:
        if not entry.is_shared:
            found[entry.target] += entry.size if entry.stored_size is None else entry.stored_size
    return found


def _of_bundle(bundle: BundleFacts) -> list[tuple[str, int]]:
    """Return what a bundle has for each target: of a compressed one in proportion to what they decompress to."""
    targets = [entry.target for entry in bundle.entries]
    if not bundle.version:
        return [(entry.target, entry.size) for entry in bundle.entries]
    return list(zip(targets, divide(bundle.size, [entry.size for entry in bundle.entries]), strict=True))


def _as_parts(item: Item, sizes: dict[str, int]) -> tuple[Part, ...]:
    """Return parts that add up to the file, also where entries share bytes; what is left is the host's."""
    found = {target: size for target, size in sorted(sizes.items()) if size}
    if not found:
        return ()
    taken = sum(found.values())
    if taken < item.size:
        found = {HOST: item.size - taken, **found}
    counts = divide(item.size, list(found.values()))
    packed = [None] * len(found) if item.packed is None else divide(item.packed, counts)
    return tuple(map(Part, found, counts, packed))
