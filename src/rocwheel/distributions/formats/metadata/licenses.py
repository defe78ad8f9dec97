"""Which files of a distribution are license texts, by METADATA and by their names (:pep:`639`)."""

from __future__ import annotations

import posixpath
import re
from contextlib import suppress

from packaging.version import Version

__all__ = ["has_licenses_folder", "is_license_name", "license_places"]

_LICENSES_FOLDER = Version("2.4")

# GPL, LGPL and AGPL count as whole words: pgplatform.h is no license.
_LICENSE_NAME = re.compile(r"licen|copying|notice|copyright|(?<![a-z])[al]?gpl(?![a-z])", re.IGNORECASE)


def is_license_name(name: str) -> bool:
    """Return whether a file is a license text or a notice by its name, without its folder."""
    return _LICENSE_NAME.search(name) is not None


def has_licenses_folder(metadata_version: str) -> bool:
    """Return whether License-File of a version of core metadata names files below ``licenses/`` in ``.dist-info``."""
    with suppress(ValueError):
        return Version(metadata_version) >= _LICENSES_FOLDER
    return False


def license_places(dist_info: str, name: str, metadata_version: str) -> tuple[str, ...]:
    """Return where the file that License-File names may be in a wheel.

    Before version 2.4, builders put the file into ``.dist-info`` itself, mostly without its folders.
    """
    standard = f"{dist_info}/licenses/{name}"
    if has_licenses_folder(metadata_version):
        return (standard,)
    last = posixpath.basename(name)
    return (f"{dist_info}/{last}", f"{dist_info}/{name}", standard, f"{dist_info}/licenses/{last}")
