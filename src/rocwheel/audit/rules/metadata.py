"""Rules about metadata: METADATA and RECORD are correct (core metadata, :pep:`376`, :pep:`639`)."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.core.messages import quoted
from rocwheel.environment.check_record import installed_record_problems, wheel_record_problems
from rocwheel.wheels.metadata import is_license_name, license_places
from rocwheel.wheels.requirements import applies, is_refusing, readable_requirements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from packaging.requirements import Requirement

    from rocwheel.audit.subject import Subject
    from rocwheel.environment.tree import Distribution, InstalledFile, MetadataProblem

_MODULE = re.compile(r"(?P<name>[^\W\d]\w*)\.(?:py|(?:[\w-]+\.)*so)")


def _with_metadata(subject: Subject) -> Iterator[tuple[Distribution, tuple[InstalledFile, ...]]]:
    for owner in subject.tree.audited_distributions:
        if owner.dist_info:
            yield owner, subject.tree.files_of[owner.source]


def _license_files(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _with_metadata(subject):
        paths = {file.path for file in files}
        for name in owner.license_files:
            if paths.isdisjoint(license_places(owner.dist_info, name, owner.metadata_version)):
                misplaced = not paths.isdisjoint(license_places(owner.dist_info, name, ""))
                where = ", which isn't in .dist-info/licenses" if misplaced else ", but doesn't contain it"
                yield Evidence(owner.label, f"lists the license file {name}{where}", facts=(name,))


def _license_text(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _with_metadata(subject):
        folder = f"{owner.dist_info}/licenses/"
        if not any(file.path.startswith(folder) or is_license_name(file.name) for file in files):
            said = f"specifies the license {quoted(owner.license)}, but " if owner.license else ""
            yield Evidence(owner.label, f"{said}contains no license text")


def _component_texts(subject: Subject) -> Iterator[Evidence]:
    for owner, _ in _with_metadata(subject):
        if owner.unlicensed:
            names = ", ".join(owner.unlicensed)
            found = f"contains parts of {names} without the license text"
            yield Evidence(owner.label, found, facts=owner.unlicensed)


def _malformed(subject: Subject) -> Iterator[Evidence]:
    for owner, _ in _with_metadata(subject):
        for problem in owner.problems:
            yield Evidence(owner.label, problem.found, facts=problem.facts)
        for text in owner.requires:
            if not readable_requirements([text]):
                yield Evidence(owner.label, f"has a malformed Requires-Dist: {quoted(text)}", facts=(text,))


def _noted(
    problems_of: Callable[[Distribution], tuple[MetadataProblem, ...]],
) -> Callable[[Subject], Iterator[Evidence]]:
    """Return the check that reports problems found while reading the metadata."""

    def check(subject: Subject) -> Iterator[Evidence]:
        noted = ((owner, problem) for owner, _ in _with_metadata(subject) for problem in problems_of(owner))
        return (Evidence(owner.label, problem.found, facts=problem.facts) for owner, problem in noted)

    return check


def _unsatisfied(subject: Subject) -> Iterator[Evidence]:
    given = {owner.name: owner for owner in subject.tree.distributions if owner.name}
    for owner, _ in _with_metadata(subject):
        extras = _asked_extras(owner)
        for requirement in readable_requirements(owner.requires):
            found = given.get(canonicalize_name(requirement.name))
            if found is None or is_refusing(requirement) or not applies(requirement, extras):
                continue
            if not _satisfies(requirement, found.version):
                text = f"requires {requirement}, but version {found.version} is given"
                yield Evidence(owner.label, text, facts=("version", *_required(requirement)))
            elif unknown := _unknown_extras(requirement, found):
                what = f"{found.name} {found.version} has no extra {', '.join(unknown)}"
                text = f"requires {requirement}, but {what}: installers ignore the extras"
                yield Evidence(owner.label, text, facts=("extra", *_required(requirement)))


def _required(requirement: Requirement) -> tuple[str, ...]:
    """Return the name and the extras of a requirement, without its versions."""
    return (canonicalize_name(requirement.name), *sorted(requirement.extras))


def _asked_extras(owner: Distribution) -> frozenset[str]:
    """Return the possible extras of a distribution. An environment doesn't record which extras are installed."""
    return _extras_of(owner) if owner.is_wheel else frozenset({""})


def _extras_of(owner: Distribution) -> frozenset[str]:
    return frozenset({"", *map(canonicalize_name, owner.extras)})


def _unknown_extras(requirement: Requirement, found: Distribution) -> list[str]:
    known = {canonicalize_name(extra) for extra in found.extras}
    return sorted(extra for extra in requirement.extras if canonicalize_name(extra) not in known)


def _satisfies(requirement: Requirement, version: str) -> bool:
    try:
        return requirement.specifier.contains(Version(version), prereleases=True)
    except ValueError:
        return False


def _unavailable(subject: Subject) -> Iterator[Evidence]:
    if not subject.settings.closed:
        return
    given = {owner.name for owner in subject.tree.distributions} | subject.tree.unread
    for owner, _ in _with_metadata(subject):
        extras = _extras_of(owner)
        for requirement in readable_requirements(owner.requires):
            if canonicalize_name(requirement.name) not in given and applies(requirement, extras):
                text = f"requires {requirement}, but no given package provides it"
                yield Evidence(owner.label, text, facts=_required(requirement))


def _record(subject: Subject) -> Iterator[Evidence]:
    for owner, files in _with_metadata(subject):
        if owner.record:
            is_wheel, tree = owner.is_wheel, subject.tree
            found = wheel_record_problems(owner, files) if is_wheel else installed_record_problems(tree, owner)
            remedy = "" if is_wheel else "Reinstall the package."
            yield from (Evidence(owner.label, problem.found, remedy, problem.facts) for problem in found)


class _Names(msgspec.Struct, frozen=True):
    """The distributions that ship files under the same import name. Each set contains sources of distributions."""

    regular: set[str]
    """``NAME/__init__.py``"""
    portions: set[str]
    """Other Python files in ``NAME/`` and its subfolders."""
    modules: set[str]
    """``NAME.py`` or an extension module."""


def _names(files: Iterable[InstalledFile]) -> dict[str, _Names]:
    found: dict[str, _Names] = defaultdict(lambda: _Names(set(), set(), set()))
    for file in files:
        top, _, rest = file.path.partition("/")
        if not rest and (match := _MODULE.fullmatch(top)):
            found[match["name"]].modules.add(file.distribution)
        elif rest.endswith(".py") and top.isidentifier():
            users = found[top].regular if rest == "__init__.py" else found[top].portions
            users.add(file.distribution)
    return found


def _imports(subject: Subject) -> Iterator[Evidence]:
    """Find import names that are used by several packages.

    Python prefers packages to modules, and modules to namespace packages.
    """
    for top, names in sorted(_names(subject.tree.files).items()):
        portions = names.portions - names.regular
        ships = f"ships {top}/__init__.py"
        for winner, loser in _hidden(subject, names.regular, portions):
            yield _clash(winner, loser, top + "/", f"{ships} in a namespace that {loser.label} also uses")
        for winner, loser in _hidden(subject, names.regular, names.modules):
            yield _clash(winner, loser, top, f"{ships}, which shadows {top} in {loser.label}")
        if names.regular:
            continue
        for winner, loser in _hidden(subject, names.modules, portions):
            yield _clash(winner, loser, top + "/", f"ships the module {top}, which shadows {top}/ in {loser.label}")


def _clash(winner: Distribution, loser: Distribution, hidden: str, found: str) -> Evidence:
    return Evidence(winner.label, found, facts=(hidden, loser.name))


def _hidden(subject: Subject, winners: set[str], losers: set[str]) -> Iterator[tuple[Distribution, Distribution]]:
    """Yield the first pair of unrelated distributions where one shadows modules of the other."""
    owners = subject.tree.owners
    pairs = ((winner, loser) for winner in sorted(winners) for loser in sorted(losers - winners))
    for winner, loser in pairs:
        if winner not in owners or loser not in owners or (owners[winner].is_context and owners[loser].is_context):
            continue
        if not _are_related(subject, winner, loser):
            yield owners[winner], owners[loser]
            return


def _are_related(subject: Subject, first: str, second: str) -> bool:
    one, two = subject.tree.owners[first].name, subject.tree.owners[second].name
    return two in subject.required.get(one, ()) or one in subject.required.get(two, ())


_DEPENDENCIES = "Correct the dependencies, or publish the required packages."

RULES = (
    Rule(
        "license-file-missing",
        Severity.ERROR,
        "The wheel contains every license file that METADATA lists.",
        ("Copy the file to .dist-info/licenses. Build backends don't report a pattern that matches no file."),
        _license_files,
    ),
    Rule(
        "license-missing",
        Severity.WARNING,
        "A package contains its license.",
        "Add the license as a License-File.",
        _license_text,
    ),
    Rule(
        "component-license-missing",
        Severity.WARNING,
        "A package contains the license texts of all projects in its bill of materials.",
        "Add the texts to the artifacts as share/doc/NAME/LICENSE in the project's stage folder.",
        _component_texts,
    ),
    Rule(
        "metadata-malformed",
        Severity.ERROR,
        (
            "METADATA, WHEEL, RECORD, the declared targets, and the bill of materials are readable, "
            "variant.json matches the file name, and pip and uv install the wheel in the same way."
        ),
        "Build the package again.",
        _malformed,
    ),
    Rule(
        "metadata-invalid",
        Severity.ERROR,
        "METADATA has only fields that its core metadata version allows, as twine and PyPI require.",
        "Correct the field in the project's settings. 'twine check' also renders the description.",
        _noted(lambda owner: owner.invalid),
    ),
    Rule(
        "archive-refused",
        Severity.ERROR,
        "Installers accept the ZIP headers of a wheel: sizes, flags, extra fields, and comments.",
        "Repack the wheel. 'rocwheel repair' does this for you.",
        _noted(lambda owner: owner.refused),
    ),
    Rule(
        "script-broken",
        Severity.ERROR,
        "Every command's module and function exist.",
        "Define the function, or remove the command from entry_points.txt.",
        _noted(lambda owner: owner.script_problems),
    ),
    Rule(
        "requirement-unsatisfied",
        Severity.ERROR,
        "The given packages satisfy each other's version and extra requirements.",
        _DEPENDENCIES,
        _unsatisfied,
    ),
    Rule(
        "requirement-unavailable",
        Severity.ERROR,
        "In a closed set of packages, every requirement, including each extra's requirements, is in the set.",
        _DEPENDENCIES,
        _unavailable,
    ),
    Rule("record-wrong", Severity.ERROR, "RECORD lists every file and its hash.", "Pack the wheel again.", _record),
    Rule(
        "import-clash",
        Severity.ERROR,
        "A package's modules don't shadow modules of other packages.",
        "Remove the __init__.py of a namespace package, or rename the conflicting module or package.",
        _imports,
    ),
)
