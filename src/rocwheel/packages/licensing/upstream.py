"""What components were made of, as the SDK's manifest tells: repositories at a commit, or Debian packages.

They are named by package URLs (purl-spec).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection

    from rocwheel.artifacts.sdk_files import SdkManifest, SourcePackage, Submodule
    from rocwheel.packages.licensing.component import Component

__all__ = ["Upstream", "upstream_of", "vendor_of"]

_VENDORS = {
    "debian.org": "debian",
    "debian.net": "debian",
    "ubuntu.com": "ubuntu",
    "canonical.com": "ubuntu",
    "amd.com": "amd",
}
"""By the domain that maintainers have their addresses in, or in a part of."""


class Upstream(msgspec.Struct, frozen=True):
    """Where a component comes from."""

    version: str = ""
    """A commit, or the version of the only Debian package; empty where neither is known."""
    urls: tuple[str, ...] = ()
    """Package URLs."""


def upstream_of(component: Component, artifacts: Collection[str], manifest: SdkManifest | None) -> Upstream:
    """Return what the files of a component in ``artifacts`` were made of, as far as the manifest tells."""
    if manifest is None:
        return Upstream()
    for module in manifest.submodules or ():
        if module.pin_sha and component.project and module.submodule_path == component.project:
            return Upstream(module.pin_sha, _repository_url(module, module.pin_sha))
    own = [one for one in manifest.debian_packages if not set(one.artifacts).isdisjoint(artifacts)]
    packages = [one for one in own if one.name and one.version]
    versions = {one.version for one in packages}
    return Upstream(versions.pop() if len(versions) == 1 else "", tuple(map(_package_url, packages)))


def _repository_url(module: Submodule, commit: str) -> tuple[str, ...]:
    """Return the package URL of a repository on GitHub; others have no type of their own."""
    try:
        address = urlsplit(module.submodule_url or "")
    except ValueError:
        return ()
    parts = address.path.strip("/").removesuffix(".git").split("/")
    if address.hostname != "github.com" or len(parts) != 2:
        return ()
    # The specification wants both in lower case.
    return (f"pkg:github/{'/'.join(quote(part.lower(), safe='') for part in parts)}@{quote(commit, safe='')}",)


def _package_url(package: SourcePackage) -> str:
    parts = (vendor_of(package), package.name)
    name, version = "/".join(quote(part, safe="") for part in parts if part), quote(package.version, safe="")
    return f"pkg:deb/{name}@{version}?arch={quote(package.architecture, safe='')}"


def vendor_of(package: SourcePackage) -> str:
    """Return who supplies a package, in lower case: its origin, else whom its maintainer writes for; empty for others.

    >>> from rocwheel.artifacts.sdk_files import SourcePackage
    >>> vendor_of(SourcePackage("rocblas", "4.0.0.60002-115~22.04", "amd64", maintainer="ROCm <rocm@amd.com>"))
    'amd'
    """
    if package.origin:
        return package.origin.lower()
    domain = package.maintainer.rpartition("@")[2].rstrip("> ").lower()
    known = (vendor for end, vendor in _VENDORS.items() if f".{domain}".endswith(f".{end}"))
    return next(known, "ubuntu" if "ubuntu" in package.version else "")
