"""What stands after ``==`` in a requirement of one release, or of all that begin like it (:pep:`440`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.version import Version

__all__ = ["prefix_match", "release_match"]


def prefix_match(version: Version, numbers: int) -> str:
    """Return the pattern, ``1.2.*``, of all versions that have the same first ``numbers`` of their release.

    A release of fewer numbers gets zeros. By :pep:`440`, installers pass over the pre-releases that match it.
    """
    epoch = f"{version.epoch}!" if version.epoch else ""
    release = (*version.release, *[0] * numbers)[:numbers]
    return f"{epoch}{'.'.join(map(str, release))}.*"


def release_match(version: Version, numbers: int) -> str:
    """Return `prefix_match` of a final release; the exact public version of a pre-release.

    A prefix match can't name a pre-release (:pep:`440`).
    """
    return version.public if version.is_prerelease else prefix_match(version, numbers)
