"""Tests of `rocwheel.environment.run_path_entries`."""

from __future__ import annotations

import pytest

from rocwheel.audit.finding import Severity
from rocwheel.audit.rules.run_paths import RULES
from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.environment.run_path_entries import (
    BUILD_FOLDER,
    ENTRY_RULES,
    doubtful_entries,
    entry_problems,
    searched_folders,
)
from tests.support.breaches import one
from tests.support.trees import library


def test_processor_specific_folders_are_searched_through_their_parent() -> None:
    assert searched_folders(["a/glibc-hwcaps/x86-64-v2", "b"], "x86-64-v2") == ("b",)
    assert searched_folders(["glibc-hwcaps/x86-64-v2"], "x86-64-v2") == ("",)
    assert searched_folders(["a/glibc-hwcaps/x86-64-v3"], "x86-64-v2") == ()


ENTRIES = [
    "$ORIGIN",
    "${ORIGIN}/../lib",
    "$ORIGINAL/lib",
    "$$ORIGIN/..",
    "\\$ORIGIN/..",
    "'$ORIGIN'",
    "ORIGIN/..",
    "RIGIN/..",
    "@loader_path",
    "@rpath/lib",
    "/../lib",
    "/..",
    "",
    ".",
    "lib",
    "$LIB/x",
    "/opt/rocm/lib",
    "/usr/local/cuda/lib64",
    "/home/me/build",
    "/usr/src/x",
    "$ORIGIN/../_solib_k8/x",
    "bazel-out/x",
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_entries_are_wrong_or_doubtful_as_in_the_audit_and_build_folders_are_wrong(entry: str) -> None:
    subject = Subject(one(library("demo/a.so", runpath=f"{entry}:$ORIGIN/x")), AuditSettings())
    names = {rule.name for rule in ENTRY_RULES}
    found = {
        is_error: tuple(
            evidence.found
            for rule in RULES
            if rule.name in names and (rule.severity is Severity.ERROR or rule.name == BUILD_FOLDER.name) is is_error
            for evidence in rule.check(subject)
        )
        for is_error in (True, False)
    }
    assert tuple(problem.found for problem in entry_problems("it", [entry])) == found[True]
    assert doubtful_entries([entry]) == found[False]


def test_relative_entries_and_build_machine_folders_are_reported_together() -> None:
    problems = entry_problems("it", ["lib", "/home/me", "lib64", "$ORIGIN"])
    assert [problem.found for problem in problems] == [
        "searches 'lib', 'lib64' relative to the working directory",
        "searches '/home/me' from the build machine",
    ]
