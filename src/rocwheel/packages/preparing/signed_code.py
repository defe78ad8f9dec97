"""Signed DLLs and programs, whose device code a build leaves as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.pe.editing.rewrite import SignedFileError
from rocwheel.core.errors import InputError
from rocwheel.device.reading.images import is_signed_image
from rocwheel.packages.layout.tree_platform import is_windows_name
from rocwheel.packages.plan import PlanWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.artifacts.catalog import Catalog, Entry

__all__ = ["warn_of_signed_code"]


def warn_of_signed_code(catalog: Catalog) -> Iterator[PlanWarning]:
    """Yield a warning for each signed file with device code, which is not compressed: that would void the signature.

    Damaged files are left to those who read all that a build takes.
    """
    for entry in catalog.entries:
        if is_windows_name(entry.path) and _has_signed_code(entry):
            error = SignedFileError(entry.path)
            found = f"keeps its device code as it is: {error.found}"
            yield PlanWarning("device-code-stays", entry.path, found, error.remedy)


def _has_signed_code(entry: Entry) -> bool:
    if entry.source is None:
        return False
    try:
        with entry.source.view() as data:
            return is_signed_image(data, name=entry.path) and bool(device_targets(data, name=entry.path))
    except InputError:
        return False
