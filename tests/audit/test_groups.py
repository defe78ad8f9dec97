"""Findings as people read them: how many files, and what is said of them."""

from __future__ import annotations

import pytest

from rocwheel.audit.finding import Finding, Severity
from rocwheel.audit.groups import group_findings, in_plural

NOTHING = "needs {}, but neither the packages, the SDK, nor the allowed system libraries include it"
SHIP = "Ship the library, require the package that provides it, or build against the required SDK version."


def missing(path: str, library: str, found: str = NOTHING, remedy: str = SHIP) -> Finding:
    """Return the finding that a file lacks a library."""
    text = found.format(library)
    return Finding("unresolved-library", Severity.ERROR, f"a.whl!{path}", text, remedy, "a", path, "", (library, path))


def lines(*findings: Finding) -> list[str]:
    return [line.text for group in group_findings(findings) for line in group.lines]


def test_files_that_lack_the_same_library_share_one_line() -> None:
    found = [missing("a.so", "libx.so.1"), missing("b.so", "libx.so.1"), missing("a.so", "liby.so.2")]
    assert lines(*found) == [
        "2 files need libx.so.1, which nothing provides",
        "a.whl!a.so needs liby.so.2, which nothing provides",
    ]


def test_the_library_missing_from_most_files_comes_first() -> None:
    found = [
        missing(f"{number}.so", name) for name, files in (("liba.so", 2), ("libb.so", 3)) for number in range(files)
    ]
    assert lines(*found) == [
        "3 files need libb.so, which nothing provides",
        "2 files need liba.so, which nothing provides",
    ]


def test_host_hints_are_left_out_of_a_line_about_several_files() -> None:
    found = [
        missing("a.so", "libx.so.1", f"{NOTHING} (the file finds the library only on hosts that have it in /opt/a)"),
        missing("b.so", "libx.so.1", f"loads c.so, which {NOTHING}"),
    ]
    assert lines(*found) == ["2 files need libx.so.1, which nothing provides"]


def test_a_repeated_explanation_is_printed_once() -> None:
    text = "needs {}, which no given package contains; it may be in numpy, which a requires but which was not given"
    found = [missing("a.so", "libx.so", text, "Give it."), missing("a.so", "liby.so", text, "Give it.")]
    assert lines(*found) == [
        (
            "a.whl!a.so needs libx.so, which no given package contains; it may be in numpy, which a requires but "
            "which was not given"
        ),
        "a.whl!a.so needs liby.so, which no given package contains",
    ]


def test_findings_with_different_remedies_are_in_separate_groups() -> None:
    found = [missing("a.so", "libx.so", remedy="Install x."), missing("a.so", "liby.so", remedy="Install y.")]
    assert [group.remedy for group in group_findings(found)] == ["Install x.", "Install y."]


def test_findings_with_many_remedies_share_the_remedy_of_the_rule() -> None:
    found = [missing("a.so", f"lib{number}.so", remedy=f"Install {number}.") for number in range(4)]
    assert [(group.remedy, len(group.lines)) for group in group_findings(found)] == [(SHIP, 4)]


def test_run_paths_into_many_folders_share_one_line() -> None:
    found = [
        Finding(
            "run-path-build-folder",
            Severity.NOTE,
            f"a.whl!{name}.so",
            f"searches '/build/{name}' from the build machine",
            "Drop it.",
            "a",
            f"{name}.so",
            "",
            (f"/build/{name}",),
        )
        for name in "abcd"
    ]
    assert lines(*found) == ["4 files search folders on the build machine, such as '/build/a'"]


def test_errors_come_before_warnings_and_notes() -> None:
    rules = [("symbol-collision", Severity.WARNING), ("missing-build-id", Severity.NOTE), ("symlink", Severity.ERROR)]
    found = [Finding(rule, severity, "a.so", "has a fault", "Mend it.") for rule, severity in rules]
    assert [group.rule for group in group_findings(found)] == ["symlink", "symbol-collision", "missing-build-id"]


@pytest.mark.parametrize(
    ("one", "several"),
    [
        (
            "searches '/opt/rocm/lib' on the host",
            "search '/opt/rocm/lib' on the host",
        ),
        (
            "has no build id: its debug information can't be found",
            "have no build id: their debug information can't be found",
        ),
        (
            "needs a.so, which is in b, but its run path doesn't lead there",
            "need a.so, which is in b, but their run paths don't lead there",
        ),
        ("is a symlink to a.so", "are symlinks to a.so"),
        ("needs a.so, but its package a is absent", "need a.so, but its package a is absent"),
        ("mixes code objects", "mix code objects"),
        ("lists '$ORIGIN' more than once", "list '$ORIGIN' more than once"),
        ("uses PyA", "use PyA"),
        ("3 symbols are defined in both", "3 symbols are defined in both"),
    ],
)
def test_messages_about_one_file_are_converted_to_the_plural(one: str, several: str) -> None:
    assert in_plural(one) == several
