"""Findings as they are reported, and what stays the same of them from run to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.audit.finding import fingerprint
from rocwheel.environment.tree import Distribution, InstalledFile, Tree
from rocwheel.wheels.record import RecordEntry
from tests.support.breaches import one
from tests.support.trees import code, data, find, library, package, tree

if TYPE_CHECKING:
    from rocwheel.audit.finding import Finding


def of_version(audited: Tree, version: str) -> Tree:
    """Return the same packages, each in another version."""

    def text(old: str) -> str:
        return old.replace("-1.0", f"-{version}")

    def owner(old: Distribution) -> Distribution:
        rows = tuple(RecordEntry(text(row.path), row.hash, row.size) for row in old.record)
        changes = {"source": text(old.source), "dist_info": text(old.dist_info), "version": version, "record": rows}
        return msgspec.structs.replace(old, **changes)

    def file(old: InstalledFile) -> InstalledFile:
        changes = {"path": text(old.path), "source": text(old.source), "distribution": text(old.distribution)}
        return msgspec.structs.replace(old, **changes)

    return Tree(tuple(map(owner, audited.distributions)), tuple(map(file, audited.files)))


def prints(findings: list[Finding]) -> set[str]:
    return {finding.fingerprint for finding in findings}


BAD = library("demo/a.so", "libnothing.so", runpath="/opt/x", executable_stack=True, build_id=None)
ODD = data("demo-1.0.dist-info/odd", mode=0o100666)
FAULTY = tree(
    (
        package(license="", requires=("other = 1",)),
        [BAD, data("shared/x"), data("demo-1.0.dist-info/odd", mode=0o100666)],
    ),
    (package("other"), [data("shared/x", sha256=b"1" * 32)]),
)


def test_a_fingerprint_depends_on_facts_and_not_on_wording() -> None:
    (finding,) = find(FAULTY, select=("run-path-absolute",))
    assert finding.fingerprint == fingerprint("run-path-absolute", "demo", "demo/a.so", ["/opt/x"])


@pytest.mark.parametrize(
    ("audited", "rule"),
    [
        (one(library("demo/a.so", "libx.so", "liby.so")), "unresolved-library"),
        (one(owner=package(requires=("a = 1", "b = 1"))), "metadata-malformed"),
        (one(data("demo/x"), data("demo/y"), owner=package(record=(RecordEntry("demo/z", "", ""),))), "record-wrong"),
        (one(library("demo/a.so", device=code(("gfx906",), ("gfx942",)))), "device-target-missing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_several_findings_of_one_rule_in_a_file_have_different_fingerprints(audited: Tree, rule: str) -> None:
    found = find(audited, select=(rule,))
    assert len(prints(found)) == len(found) > 1


def test_findings_keep_their_fingerprints_in_the_next_version() -> None:
    before, after = find(FAULTY), find(of_version(FAULTY, "1.1.post2"))
    assert len(prints(before)) == len(before) > 5
    assert prints(before) == prints(after)


@pytest.mark.parametrize(
    ("extra", "settings"), [("", {}), ("[gpu]", {}), ("", {"closed": True})], ids=["version", "extra", "not given"]
)
def test_unmet_requirements_keep_their_fingerprints_in_the_next_version(extra: str, settings: dict[str, bool]) -> None:
    def found(version: str) -> set[str]:
        asked = version if extra else f"{version}.post9"
        user = package(version=version, requires=(f"sdk{extra}=={asked}",))
        sdk = package("other" if settings else "sdk", version=version)
        return prints(find(tree((user, []), (sdk, [])), **settings))

    assert len(found("1.0")) == 1
    assert found("1.0") == found("1.1")


def test_unmet_requirements_have_different_fingerprints() -> None:
    user = package(requires=("sdk[a]==2", "sdk[b]==2", "other==2"))
    assert len(prints(find(tree((user, []), (package("sdk"), []), (package("other"), []))))) == 3


def test_files_with_the_same_name_in_two_folders_have_different_fingerprints() -> None:
    files = tuple(library(path, executable_stack=True) for path in ("/env/one/_ext.so", "/env/two/_ext.so"))
    assert len(prints(find(Tree((), files, is_prefix=True)))) == 2


@pytest.mark.parametrize("folder", ["/home/me/env", "/ci/env"])
def test_findings_in_an_environment_have_the_fingerprints_of_the_wheel(folder: str) -> None:
    (owner,), files = FAULTY.distributions[:1], [file for file in FAULTY.files if "demo" in file.path]
    installed = msgspec.structs.replace(owner, source=f"{folder}/{owner.dist_info}", is_wheel=False)
    moved = [
        msgspec.structs.replace(file, source=f"{folder}/{file.path}", distribution=installed.source) for file in files
    ]
    rules = ("executable-stack", "license-missing", "unresolved-library")
    wheel = Tree((owner,), tuple(files))
    assert prints(find(Tree((installed,), tuple(moved)), select=rules)) == prints(find(wheel, select=rules))


def test_a_finding_names_its_distribution_and_its_path() -> None:
    found = find(FAULTY, select=("executable-stack", "license-missing"))
    assert [(finding.rule, finding.distribution, finding.path) for finding in found] == [
        ("executable-stack", "demo", "demo/a.so"),
        ("license-missing", "demo", ""),
    ]
