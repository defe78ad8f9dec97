"""What a distribution becomes: its new name and the files that change, also where some GPU targets alone stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.artifacts.sdk_files import DIST_INFO_PATH, declared_targets, with_declared_targets
from rocwheel.build.planning.selector import refusing_extras, requires_txt, selector_requirements
from rocwheel.build.promoting.candidates import (
    BUILD_INFO,
    Candidate,
    VersionChange,
    read_build_info,
    says_version,
)
from rocwheel.build.sdk_source import render_literals
from rocwheel.core.errors import InputError
from rocwheel.core.messages import shortened
from rocwheel.environment.coherence import WheelFacts, check_coherence, wheel_package_targets
from rocwheel.targets.declaration import DECLARATION_NAME, Declaration, decode_declaration, encode_declaration
from rocwheel.wheels.metadata import parse_core_metadata, set_values
from rocwheel.wheels.requirements import RequirementError, is_refusing, read_requirement, readable_requirements
from rocwheel.wheels.zip_reader import read_member

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path


class KeptTargets(msgspec.Struct, frozen=True):
    """Which families of a set stay. Use `among`; the constructor checks nothing."""

    families: tuple[str, ...]
    """Targets or families, as the selector names them."""
    dropped: frozenset[str]
    """The names of the distributions for others, normalized."""
    served: frozenset[str]
    """The targets that families of those that stay serve."""
    dropped_targets: frozenset[str]
    """The targets that only others serve."""

    @classmethod
    def among(cls, info: Mapping[str, Any], processors: Collection[str]) -> KeptTargets:
        """Return what stays for these processors, maybe nothing, of the set whose selector has these literals."""
        served = {name: frozenset(row["targets"]) for name, row in info["FAMILIES"].items()}
        kept = tuple(name for name, targets in served.items() if targets & set(processors))
        names = [row["dist"] for row in info["PACKAGES"].values() if "{family}" in row["dist"]]
        gone = [name.replace("{family}", family) for name in names for family in served.keys() - set(kept)]
        left = _united(served[name] for name in kept)
        return cls(kept, frozenset(map(canonicalize_name, gone)), left, _united(served.values()) - left)

    @classmethod
    def together(cls, parts: Collection[KeptTargets]) -> KeptTargets:
        """Return what stays of what several sets share."""
        families = tuple(dict.fromkeys(family for part in parts for family in part.families))
        served = _united(part.served for part in parts)
        gone = _united(part.dropped_targets for part in parts)
        return cls(families, _united(part.dropped for part in parts), served, gone - served)

    def build_info(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the selector's literals without what is for other targets, which are refused by name from now on."""
        default = values["DEFAULT_FAMILY"]
        if default not in self.families:
            default = self.families[0] if len(self.families) == 1 else ""
        families = {name: values["FAMILIES"][name] for name in self.families}
        changed = {**values, "FAMILIES": families, "DEFAULT_FAMILY": default}
        if "BY_PLATFORM" in values:
            changed["BY_PLATFORM"] = {name: self._own_facts(facts) for name, facts in values["BY_PLATFORM"].items()}
        return {**changed, "EXTRAS": self._extras(changed)}

    def _own_facts(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is otherwise on a platform, without what is for other targets."""
        families = facts.get("FAMILIES")
        kept = {"FAMILIES": {name: families[name] for name in self.families}} if families else {}
        return {**facts, **kept}

    def _extras(self, values: Mapping[str, Any]) -> dict[str, list[list[str]]]:
        extras: dict[str, list[list[str]]] = {}
        served = {name: row["targets"] for name, row in values["FAMILIES"].items()}
        for extra, rows in values["EXTRAS"].items():
            left = [row for row in rows if not self._is_dropped(row[0])]
            if left or not rows:
                extras[extra] = left
            prefix = extra.removesuffix("-all")
            if prefix != extra and values["LAYOUT"] == "neutral" and rows:
                extras |= refusing_extras(prefix, values["REQUIRES"][0], served)
        return extras

    def _is_dropped(self, text: str) -> bool:
        """Return whether a requirement is of a dropped package, or refuses a target: those are made again."""
        found = readable_requirements([text])
        return any(is_refusing(item) or canonicalize_name(item.name) in self.dropped for item in found)

    def metadata(self, data: bytes, info: Mapping[str, Any], source: str) -> bytes:
        """Return METADATA of the selector as a wheel, with what its literals ``info`` require.

        Raises `InputError`, led by ``source``, for a text among these that is no requirement.
        """
        try:
            requires = [str(read_requirement(text)) for text in selector_requirements(info)]
        except RequirementError as e:
            found = f"requires what is no requirement ({shortened(str(e))})"
            raise InputError(source, found, remedy="Build the packages again.") from e
        return set_values(set_values(data, "Requires-Dist", requires), "Provides-Extra", list(info["EXTRAS"]))

    def dist_info(self, data: bytes, source: str, declared: Iterable[str]) -> bytes:
        """Return the core's list of targets without those that neither a package nor ``declared`` has any more."""
        gone = self.dropped_targets - set(declared)
        left = [target for target in declared_targets(source, data) if target not in gone]
        return with_declared_targets(source, data, left)


def _united(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


class Promotion(msgspec.Struct, frozen=True):
    """One distribution on its way: what it was, its new place, and the files that change."""

    candidate: Candidate
    place: str
    """The path of its file below the destination."""
    dist_info: str
    """A wheel's new metadata folder; empty for an sdist."""
    changed: dict[str, bytes]
    """The new content of files by their old paths in the distribution."""

    def renamed(self, member: str) -> str:
        """Return the new path of a wheel's member: the names of ``.dist-info`` and ``.data`` have the version."""
        old, new = self.candidate.dist_info.removesuffix(".dist-info"), self.dist_info.removesuffix(".dist-info")
        top, slash, rest = member.partition("/")
        return f"{new}{top.removeprefix(old)}{slash}{rest}" if top in {f"{old}.dist-info", f"{old}.data"} else member


def promote_set(packages: Sequence[Candidate], change: VersionChange, kept: KeptTargets | None) -> list[Promotion]:
    """Return what becomes of each distribution of a set that stays.

    Raises `InputError` for files that can't be read, and for wheels of one package that carry different code.
    """
    stay = [one for one in packages if kept is None or canonicalize_name(one.name) not in kept.dropped]
    places = {one.path: one.members.get(f"{one.dist_info}/{DECLARATION_NAME}") for one in stay} if kept else {}
    declarations = {
        path: decode_declaration(read_member(member), source=member.source) for path, member in places.items() if member
    }
    declared = {target.processor for found in declarations.values() for target in found.targets}
    made = [_promote(one, change, kept, declared) for one in stay]
    wheels = [promotion for promotion in made if promotion.dist_info and not promotion.candidate.info]
    # Packages that several sets share were compared with each set by itself.
    has_selector = any(one.info for one in packages)
    if kept and has_selector and all(promotion.candidate.path in declarations for promotion in wheels):
        _declare_again(wheels, declarations)
    return made


def _promote(candidate: Candidate, change: VersionChange, kept: KeptTargets | None, declared: set[str]) -> Promotion:
    texts = _texts(candidate)
    changed = {name: change.text(name, data) if says_version(name) else data for name, data in texts.items()}
    metadata = f"{candidate.dist_info}/METADATA" if candidate.is_wheel else "PKG-INFO"
    changed[metadata] = change.metadata(texts[metadata])
    if kept:
        _narrow(candidate, changed, metadata, kept, declared)
    changed = {name: data for name, data in changed.items() if data != texts[name]}
    dist_info = _versioned(candidate.dist_info.removesuffix(".dist-info"), change) + ".dist-info"
    return Promotion(candidate, _place(candidate, change), dist_info if candidate.is_wheel else "", changed)


def _narrow(
    candidate: Candidate, changed: dict[str, bytes], metadata: str, kept: KeptTargets, declared: set[str]
) -> None:
    """Take the targets that don't stay out of the files in ``changed``."""
    for name, data in list(changed.items()):
        if name.endswith(f"/{DIST_INFO_PATH}"):
            changed[name] = kept.dist_info(data, name, declared)
        elif candidate.info and name.rpartition("/")[2] == BUILD_INFO:
            info = kept.build_info(read_build_info(data, name))
            changed[name] = render_literals(info).encode()
            if candidate.is_wheel:
                changed[metadata] = kept.metadata(changed[metadata], info, f"{candidate.path}!{name}")
            else:
                listed = [path for path in changed if path.endswith(".egg-info/requires.txt")]
                changed.update(dict.fromkeys(listed, requires_txt(info).encode()))


def _texts(candidate: Candidate) -> Mapping[str, bytes]:
    """Return the files that may say the version or list targets."""
    if not candidate.is_wheel:
        return {name: data for name, data in candidate.files.items() if name == "PKG-INFO" or says_version(name)}
    own = f"{candidate.dist_info}/METADATA"
    members = candidate.members.items()
    found = {name: member for name, member in members if says_version(name) or name.endswith(f"/{DIST_INFO_PATH}")}
    return {name: read_member(member) for name, member in {**found, own: candidate.members[own]}.items()}


def _place(candidate: Candidate, change: VersionChange) -> str:
    prefix = f"{candidate.folder}/" if candidate.folder else ""
    if not candidate.is_wheel:
        return f"{prefix}{_versioned(candidate.path.name.removesuffix('.tar.gz'), change)}.tar.gz"
    distribution, _, *rest = candidate.path.name.split("-")
    return f"{prefix}{'-'.join([distribution, change.new, *rest])}"


def _versioned(stem: str, change: VersionChange) -> str:
    """Return ``NAME-VERSION`` with the new version."""
    return f"{stem.rpartition('-')[0]}-{change.new}"


def _declare_again(wheels: list[Promotion], declarations: Mapping[Path, Declaration]) -> None:
    """Have the wheels record how those that stay fit together, in the order in which they did before."""
    compared = next((found.coherence.packages for found in declarations.values() if found.coherence), ())
    order = {name: number for number, name in enumerate(compared)}
    ordered = sorted(wheels, key=lambda wheel: order.get(wheel.candidate.name, len(order)))
    facts = [_facts(wheel, declarations[wheel.candidate.path]) for wheel in ordered]
    report = check_coherence(wheel_package_targets(facts))
    for wheel, known in zip(ordered, facts, strict=True):
        name = f"{wheel.candidate.dist_info}/{DECLARATION_NAME}"
        wheel.changed[name] = encode_declaration(known.targets, report.recorded if known.targets else None)


def _facts(wheel: Promotion, declaration: Declaration) -> WheelFacts:
    metadata = parse_core_metadata(wheel.changed[f"{wheel.candidate.dist_info}/METADATA"])[0]
    tops = {name.partition("/")[0] for name in wheel.candidate.members}
    roots = frozenset(top for top in tops if not top.endswith((".dist-info", ".data")))
    requires = tuple(metadata.get("requires_dist", ()))
    return WheelFacts(wheel.place, canonicalize_name(wheel.candidate.name), requires, declaration.targets, roots)
