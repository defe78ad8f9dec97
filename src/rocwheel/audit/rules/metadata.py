"""Rules on metadata: what METADATA and RECORD say of a package holds (core metadata, :pep:`376`, :pep:`639`)."""

from __future__ import annotations

import base64
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from rocwheel.audit.distribution_reading import SIGNATURES
from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.audit.subject import applies, parse_requirement, parse_requirements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.requirements import Requirement

    from rocwheel.audit.subject import Subject
    from rocwheel.audit.tree import Distribution, InstalledFile

__all__ = ["RULES"]

_LICENSE_WORDS = ("licen", "copying", "notice", "copyright")
_UNHASHED = ("RECORD", *SIGNATURES)


def _with_metadata(subject: Subject) -> Iterator[tuple[Distribution, tuple[InstalledFile, ...]]]:
    for owner in subject.tree.audited_distributions:
        if owner.dist_info:
            yield owner, subject.tree.files_of[owner.source]


def _license_files(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _with_metadata(subject):
        paths = {file.path for file in files}
        for name in owner.license_files:
            if not {f"{owner.dist_info}/licenses/{name}", f"{owner.dist_info}/{name}"} & paths:
                yield Evidence(owner.label, f"names the licence file {name}, which it doesn't hold")


def _license_text(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _with_metadata(subject):
        if not any(word in file.name.lower() for file in files for word in _LICENSE_WORDS):
            said = f"says {owner.license!r}, but " if owner.license else ""
            yield Evidence(owner.label, f"{said}holds no licence text")


def _malformed(subject: Subject) -> Iterator[Evidence]:
    for owner, _ in _with_metadata(subject):
        for problem in owner.problems:
            yield Evidence(owner.label, problem)
        for text in owner.requires:
            if parse_requirement(text) is None:
                yield Evidence(owner.label, f"Requires-Dist {text!r} is malformed")


def _unsatisfied(subject: Subject) -> Iterator[Evidence]:
    given = {owner.name: owner for owner in subject.tree.distributions if owner.name}
    for owner, _ in _with_metadata(subject):
        for requirement in parse_requirements(owner):
            found = given.get(canonicalize_name(requirement.name))
            if found and applies(requirement) and not _satisfies(requirement, found.version):
                yield Evidence(owner.label, f"requires {requirement}, but beside it is version {found.version}")


def _satisfies(requirement: Requirement, version: str) -> bool:
    try:
        return requirement.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False


def _unavailable(subject: Subject) -> Iterator[Evidence]:
    if not subject.configuration.closed:
        return
    given = {owner.name for owner in subject.tree.distributions}
    for owner, _ in _with_metadata(subject):
        for requirement in parse_requirements(owner):
            if canonicalize_name(requirement.name) not in given and applies(requirement, ("", *owner.extras)):
                yield Evidence(owner.label, f"requires {requirement}, which none of the given packages is")


def _record(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _with_metadata(subject):
        if not owner.is_wheel or not owner.record:
            continue
        rows = {entry.path: entry for entry in owner.record}
        members = {file.member: file for file in files}
        for path, count in Counter(entry.path for entry in owner.record).items():
            if count > 1:
                yield Evidence(owner.label, f"RECORD lists {path} {count} times")
        for path in sorted(rows.keys() - members.keys()):
            yield Evidence(owner.label, f"RECORD lists {path}, which is absent")
        for path, file in members.items():
            if path.rpartition("/")[2] in _UNHASHED and path.startswith(owner.dist_info):
                continue
            if path not in rows:
                yield Evidence(owner.label, f"RECORD doesn't list {path}")
            elif file.sha256 is not None and not _has_hash(rows[path].hash, file.sha256):
                yield Evidence(owner.label, f"RECORD has another hash for {path}")


def _has_hash(text: str, sha256: bytes) -> bool:
    algorithm, _, value = text.partition("=")
    # A hash by another algorithm is not compared: both pip and uv write and read this one.
    return algorithm != "sha256" or value == base64.urlsafe_b64encode(sha256).rstrip(b"=").decode()


def _imports(subject: Subject) -> Iterator[Evidence]:
    """Find folders that one package makes a regular package, and another fills as a namespace: one hides the other."""
    users: dict[str, set[str]] = defaultdict(set)
    regular: dict[str, set[str]] = defaultdict(set)
    for file in subject.tree.files:
        top, _, rest = file.path.partition("/")
        if rest.endswith(".py") and top.isidentifier():
            users[top].add(file.distribution)
            if rest == "__init__.py":
                regular[top].add(file.distribution)
    for top, owners in sorted(users.items()):
        others = owners - regular[top]
        if regular[top] and others:
            maker, other = min(regular[top]), min(others)
            labels = [subject.tree.owners[source].label for source in (maker, other) if source in subject.tree.owners]
            if len(labels) == 2 and not _are_related(subject, maker, other):
                yield Evidence(labels[0], f"ships {top}/__init__.py, in a namespace that {labels[1]} uses, too")


def _are_related(subject: Subject, first: str, second: str) -> bool:
    one, two = subject.tree.owners[first].name, subject.tree.owners[second].name
    return two in subject.required.get(one, ()) or one in subject.required.get(two, ())


_DEPENDENCIES = "Correct the dependencies, or publish what they name."

RULES = (
    Rule(
        "license-file-missing",
        Severity.ERROR,
        "Every licence file that METADATA names is in the wheel.",
        "Copy it to .dist-info/licenses: a pattern that matches nothing is no error for build backends.",
        _license_files,
    ),
    Rule("license-missing", Severity.WARNING, "A package holds its licence.", "Add it as License-File.", _license_text),
    Rule("metadata-malformed", Severity.ERROR, "METADATA, WHEEL and RECORD can be read.", "Build it anew.", _malformed),
    Rule(
        "requirement-unsatisfied",
        Severity.ERROR,
        "What a package requires of others given beside it, they are.",
        _DEPENDENCIES,
        _unsatisfied,
    ),
    Rule(
        "requirement-unavailable",
        Severity.ERROR,
        "In a closed set of packages, each requirement and extra names one of them.",
        _DEPENDENCIES,
        _unavailable,
    ),
    Rule("record-wrong", Severity.ERROR, "RECORD lists every file with its hash.", "Pack it anew.", _record),
    Rule(
        "import-clash",
        Severity.ERROR,
        "No package makes a regular package of a namespace that others use.",
        "Leave out its __init__.py.",
        _imports,
    ),
)
