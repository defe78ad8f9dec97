"""Finds the licensed components of packages and their origin, and adds SBOMs that list them.

Package URLs (purl-spec) identify the sources of components.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

import msgspec
from packaging.licenses import canonicalize_license_expression

from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.build.placement import PrefixEntries
from rocwheel.build.plan import PlannedComponent
from rocwheel.wheels.sbom import SBOM_NAME, BillItem, BillOfMaterials

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from rocwheel.artifacts.catalog import Entry
    from rocwheel.artifacts.sdk_files import SdkManifest, SourcePackage, Submodule
    from rocwheel.artifacts.summary import ArtifactDigest
    from rocwheel.build.plan import Plan, PlannedWheel
    from rocwheel.build.recipe import Recipe
    from rocwheel.wheels.sdist import SourceDate


_BUILD_FOLDERS = ("stage", "build")
"""The last component of a stage folder's path, which is the install folder inside a project's build folder."""
_OVERLAY = "aux-overlay"


class Component(msgspec.Struct, frozen=True, order=True):
    """A project whose files are in an artifact."""

    artifact: str
    """The artifact's name, such as ``blas``."""
    project: str
    """The project's folder in the SDK sources, such as ``math-libs/BLAS/rocBLAS``; empty if unknown."""


def component_of(entry: Entry) -> Component:
    """Return the component that a file belongs to, based on its stage folder."""
    parts = entry.stage.split("/")
    for folder in _BUILD_FOLDERS:
        if parts[-1] == folder:
            parts.pop()
        if not parts:
            return Component(entry.artifact.name, "")
    return Component(entry.artifact.name, "/".join(parts))


_VENDORS = {
    "debian.org": "debian",
    "debian.net": "debian",
    "ubuntu.com": "ubuntu",
    "canonical.com": "ubuntu",
    "amd.com": "amd",
}
"""The vendors, keyed by the domain, or a parent domain, of maintainers' email addresses."""


def upstream_of(
    component: Component, artifacts: Collection[str], manifest: SdkManifest | None
) -> tuple[str, tuple[str, ...]]:
    """Return the sources of a component's files in ``artifacts``, if the manifest lists them.

    Returns a version and the package URLs. The version is a commit, or the version of the Debian package if there is
    only one; otherwise, it is empty.
    """
    if manifest is None:
        return "", ()
    for module in manifest.submodules or ():
        if module.pin_sha and component.project and module.submodule_path == component.project:
            return module.pin_sha, _repository_url(module, module.pin_sha)
    own = [one for one in manifest.debian_packages if not set(one.artifacts).isdisjoint(artifacts)]
    packages = [one for one in own if one.name and one.version]
    versions = {one.version for one in packages}
    return versions.pop() if len(versions) == 1 else "", tuple(map(_package_url, packages))


def _repository_url(module: Submodule, commit: str) -> tuple[str, ...]:
    """Return the package URL of a GitHub repository. Other hosts have no package URL type."""
    try:
        address = urlsplit(module.submodule_url or "")
    except ValueError:
        return ()
    parts = address.path.strip("/").removesuffix(".git").split("/")
    if address.hostname != "github.com" or len(parts) != 2:
        return ()
    # The specification requires lowercase for the owner and the name.
    return (f"pkg:github/{'/'.join(quote(part.lower(), safe='') for part in parts)}@{quote(commit, safe='')}",)


def _package_url(package: SourcePackage) -> str:
    parts = (vendor_of(package), package.name)
    name, version = "/".join(quote(part, safe="") for part in parts if part), quote(package.version, safe="")
    return f"pkg:deb/{name}@{version}?arch={quote(package.architecture, safe='')}"


def vendor_of(package: SourcePackage) -> str:
    """Return the supplier of a package in lowercase: its origin, or its maintainer's organization. Empty if unknown.

    >>> from rocwheel.artifacts.sdk_files import SourcePackage
    >>> vendor_of(SourcePackage("rocblas", "4.0.0.60002-115~22.04", "amd64", maintainer="ROCm <rocm@amd.com>"))
    'amd'
    """
    if package.origin:
        return package.origin.lower()
    domain = package.maintainer.rpartition("@")[2].rstrip("> ").lower()
    known = (vendor for end, vendor in _VENDORS.items() if f".{domain}".endswith(f".{end}"))
    return next(known, "ubuntu" if "ubuntu" in package.version else "")


class LicensedFiles(msgspec.Struct, frozen=True):
    """The components of a package's files, and their license texts."""

    components: tuple[PlannedComponent, ...]
    texts: PrefixEntries
    """The license texts, keyed by path in the artifacts' prefix."""


def license_files(
    entries: Iterable[Entry], tree: PrefixEntries, recipe: Recipe, manifest: SdkManifest | None = None
) -> LicensedFiles:
    """Return the components of files, with their license texts from a prefix.

    A license text applies to the component with the same stage folder. The ``manifest`` lists the sources.
    """
    # The artifacts of the files, keyed by component.
    artifacts: dict[Component, set[str]] = {}
    for entry in entries:
        # Build information and links were added by the SDK's build itself, so they don't belong to a project.
        if entry.source and component_of(entry).project.rpartition("/")[2] != _OVERLAY:
            artifacts.setdefault(component_of(entry), set()).add(str(entry.artifact))
    patterns = PathPatterns(recipe.license_patterns) if recipe.license_patterns else None
    found = {path: entry for path, entry in tree.items() if patterns and entry.source and patterns.matches(path)}
    texts = {path: entry for path, entry in found.items() if component_of(entry) in artifacts}
    own: dict[Component, list[str]] = {}
    for path, entry in texts.items():
        own.setdefault(component_of(entry), []).append(path)

    def plan(component: Component, names: set[str]) -> PlannedComponent:
        return PlannedComponent(
            component.artifact,
            component.project,
            _license_of(component, recipe.licenses, recipe.license),
            tuple(own.get(component, ())),
            tuple(sorted(names)),
            *upstream_of(component, names, manifest),
        )

    return LicensedFiles(tuple(plan(*one) for one in sorted(artifacts.items())), texts)


def _license_of(component: Component, table: Mapping[str, str], default: str | None) -> str | None:
    """Return the SPDX expression of a component, or `None` if neither the ``table`` nor the ``default`` has one.

    The longest match with the end of the project's folder takes precedence, followed by the artifact's name.
    """
    parts = component.project.split("/")
    ends = ("/".join(parts[place:]) for place in range(len(parts)))
    found = next((table[name] for name in (*ends, component.artifact) if name in table), default)
    return found and canonicalize_license_expression(found)


def add_sboms(plan: Plan, digests: Mapping[str, ArtifactDigest], source_date: SourceDate) -> Plan:
    """Return a plan whose wheels contain SBOMs. ``digests`` contains the digests of the artifacts, keyed by name.

    A wheel variant that contains only requirements gets no SBOM.
    """
    from rocwheel.wheels.render_sbom import (
        render_bill,  # this import is slow, and other commands import this module
    )

    def with_bill(wheel: PlannedWheel) -> PlannedWheel:
        if not wheel.components:
            return wheel
        bill = render_bill(_make_bill(wheel, digests, source_date.seconds))
        return msgspec.structs.replace(wheel, info_texts=wheel.info_texts | {SBOM_NAME: bill.decode()})

    return msgspec.structs.replace(plan, wheels=tuple(map(with_bill, plan.wheels)))


def _make_bill(wheel: PlannedWheel, digests: Mapping[str, ArtifactDigest], seconds: int) -> BillOfMaterials:
    items = {item.key: item for component in wheel.components for item in _items(component, digests)}
    made_of = tuple(dict.fromkeys(key for one in wheel.components for key in (one.artifacts or (_key(one),))))
    name, version = wheel.name.distribution, wheel.name.version
    url = f"pkg:pypi/{name}@{version}"
    subject = BillItem(url, name, version, url, wheel.metadata.license_expression or "", made_of=made_of)
    # An artifact contains parts of several components.
    parts: dict[str, list[str]] = {}
    for component in wheel.components:
        for artifact in component.artifacts:
            parts.setdefault(artifact, []).append(_key(component))
    whole = (msgspec.structs.replace(item, made_of=(*item.made_of, *parts.get(key, ()))) for key, item in items.items())
    return BillOfMaterials(subject, tuple(whole), seconds)


def _key(component: PlannedComponent) -> str:
    return f"{component.artifact}/{component.project}"


def _items(component: PlannedComponent, digests: Mapping[str, ArtifactDigest]) -> Iterator[BillItem]:
    for artifact in component.artifacts:
        if digest := digests.get(artifact):
            facts = {"rocwheel:files": str(digest.files), "rocwheel:bytes": str(digest.size)}
            yield BillItem(artifact, artifact, sha256=digest.sha256, properties=facts)
        else:
            yield BillItem(artifact, artifact)
    repositories = [url for url in component.upstream if url.startswith("pkg:github/")]
    packages = [url for url in component.upstream if url not in repositories]
    yield BillItem(
        _key(component),
        component.name,
        component.version,
        repositories[0] if repositories else "",
        component.license or "",
        component.license_files,
        made_of=tuple(packages),
    )
    for url in packages:
        name, _, version = url.rpartition("/")[2].partition("?")[0].partition("@")
        yield BillItem(url, unquote(name), unquote(version), url)
