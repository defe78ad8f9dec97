"""``rocwheel audit`` as a user runs it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.audit.rules import ALL_RULES
from tests.support.command_line import as_user, needs_setpriv, rocwheel
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.command_line import Run

pytestmark = [pytest.mark.slow, needs_compiler, pytest.mark.usefixtures("in_an_empty_folder")]


FOUND = "searches 'rocm_dis/lib' relative to the folder in which the process was started"


def test_a_table_comes_first_and_each_finding_with_its_remedy_after(run: Run, bad_wheel: Path) -> None:
    finished = run("audit", bad_wheel)
    assert finished.status == 1
    lines = [line.strip() for line in finished.stdout.splitlines() if line.strip()]
    assert lines[0].split() == ["severity", "rule", "findings", "demand"]
    assert lines[2].split()[:3] == ["error", "run-path-relative", "1"]
    assert lines[3:] == [
        f"error run-path-relative {bad_wheel}!demo/a.so",
        FOUND,
        "-> Link with the list that 'rocwheel runpath for' prints. 'rocwheel repair' drops entries that nothing needs.",
        f"5 files, 1 of them programs and libraries; {len(ALL_RULES)} rules: 1 error, 0 warnings, 0 notes",
    ]


def test_many_findings_of_one_rule_are_cut_unless_all_are_asked_for(run: Run, tmp_path: Path) -> None:
    names = [f"demo/{number:02}.txt" for number in range(23)]
    wheel = make_wheel(tmp_path, "demo", dict.fromkeys(names, b""), tag="py3-none-any", links=names)
    finding = "error symlink"
    lines = run("audit", wheel, "--select", "symlink").stdout.splitlines()
    assert len([line for line in lines if line.startswith(finding)]) == 20
    assert lines[-2] == "and 3 more of symlink, which -v and --json list"
    every = run("audit", wheel, "--select", "symlink", "-v").stdout.splitlines()
    assert len([line for line in every if line.startswith(finding)]) == 23
    assert len(json.loads(run("audit", wheel, "--select", "symlink", "--json").stdout)["findings"]) == 23


def test_machines_get_every_finding(run: Run, bad_wheel: Path) -> None:
    document = json.loads(run("audit", bad_wheel, "--json").stdout)
    assert document["schema"] == "rocwheel.audit/1"
    assert document["errors"] == 1
    assert document["findings"] == [
        {
            "rule": "run-path-relative",
            "severity": "error",
            "file": f"{bad_wheel}!demo/a.so",
            "found": FOUND,
            "remedy": (
                "Link with the list that 'rocwheel runpath for' prints. "
                "'rocwheel repair' drops entries that nothing needs."
            ),
            "distribution": "demo",
            "path": "demo/a.so",
            "fingerprint": "63f818f5fea6ba13a9a0db99bd0c451d",
            "facts": ["rocm_dis/lib"],
        }
    ]


def test_code_scanning_gets_sarif(run: Run, bad_wheel: Path, tmp_path: Path) -> None:
    run("audit", bad_wheel, "--sarif", tmp_path / "audit.sarif", "--quiet")
    document = json.loads((tmp_path / "audit.sarif").read_text())
    (scan,) = document["runs"]
    (result,) = scan["results"]
    assert document["version"] == "2.1.0"
    assert scan["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "run-path-relative"
    assert result["level"] == "error"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == str(bad_wheel)
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "demo/a.so"


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--ignore", "run-path-relative"], 0),
        (["--select", "tag-*"], 0),
        (["--select", "run-path-*"], 1),
        (["--expect-runpath", "rocm_dis/lib", "--select", "run-path-unexpected"], 0),
        (["--expect-runpath", "$ORIGIN", "--select", "run-path-unexpected"], 1),
        (["--expect-tag", "rpath", "--select", "run-path-tag"], 1),
        (["--expect-tag", "runpath", "--select", "run-path-tag"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_choose_what_is_checked(run: Run, bad_wheel: Path, options: list[str], status: int) -> None:
    assert run("audit", bad_wheel, *options).status == status


def test_a_name_does_not_begin_a_line(run: Run, tmp_path: Path, bad_wheel: Path) -> None:
    folder = tmp_path / "a\nerror forged"
    folder.mkdir()
    bad_wheel.rename(folder / bad_wheel.name)
    lines = run("audit", folder, "--quiet").stdout.splitlines()
    assert [line for line in lines if line.startswith("error forged")] == []
    assert any("a\\nerror forged" in line for line in lines)


def test_names_that_are_not_unicode_are_reported_in_every_form(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "pre\udcfffix"
    build_tree(folder, Lib("lib/libgood.so", ("libnowhere.so.1",)))
    (folder / "lib/libgood.so").rename(folder / "lib/e\udcfe.so")
    report, known = tmp_path / "report.sarif", tmp_path / "known.json"
    options = ("--select", "unresolved-library")
    assert run("audit", folder, *options).status == 1
    assert json.loads(run("audit", folder, *options, "--json").stdout)["findings"][0]["path"] == "lib/e\udcfe.so"
    assert run("audit", folder, *options, "--sarif", report).status == 1
    (result,) = json.loads(report.read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith("/pre%FFfix/lib/e%FE.so")
    assert result["message"]["text"].split(" needs ")[0].endswith("/pre\\xfffix/lib/e\\xfe.so")
    written = run("audit", folder, *options, "--baseline", known, "--update-baseline")
    assert (written.status, written.stderr) == (0, f"wrote 1 known finding to {known}\n")
    assert run("audit", folder, *options, "--baseline", known).status == 0


def test_an_audit_of_nothing_says_what_is_missing(run: Run) -> None:
    expected = "error: rocwheel audit: the argument PATH is missing. See rocwheel audit --help.\n"
    assert run("audit") == (2, "", expected)


@needs_setpriv
@pytest.mark.parametrize("closed", ["demo-1.0.dist-info/METADATA", "other", "other/inner", "other/a.so"])
def test_what_may_not_be_read_is_named(tmp_path: Path, closed: str) -> None:
    for name in ("demo-1.0.dist-info/METADATA", "other/inner/x", "other/a.so"):
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_bytes(b"text")
    path = tmp_path / "site" / closed
    path.chmod(0)
    done = rocwheel("audit", tmp_path / "site", before=as_user())
    path.chmod(0o755)
    problem = f"error: {path}: can't be read (Permission denied). Check that it exists and may be read.\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", problem)


@needs_setpriv
def test_a_folder_that_may_hold_artifacts_and_may_not_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "tree/bad").mkdir(parents=True)
    (tmp_path / "tree/bad").chmod(0)
    done = rocwheel("audit", tmp_path / "tree", before=as_user())
    (tmp_path / "tree/bad").chmod(0o755)
    assert (done.returncode, done.stderr.startswith(f"error: {tmp_path}/tree/bad: can't be read (Perm")) == (2, True)


@pytest.mark.parametrize("command", [("audit",), ("repair", "--check")], ids=["audit", "repair"])
def test_a_folder_given_by_with_that_has_no_package_is_refused(
    run: Run, bad_wheel: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "beside/dist").mkdir(parents=True)
    (tmp_path / "beside/README.md").write_text("See dist.\n")
    finished = run(*command, bad_wheel, "--with", tmp_path / "beside")
    found = "contains neither a package nor a library; expected wheels, an environment or artifacts"
    assert finished == (2, "", f"error: {tmp_path / 'beside'}: {found}\n")


def test_a_baseline_to_update_has_to_be_named(run: Run, bad_wheel: Path) -> None:
    finished = run("audit", bad_wheel, "--update-baseline")
    assert finished.status == 2
    words = " ".join(finished.stderr.replace("│", " ").split())
    assert "--update-baseline needs '--baseline FILE', or 'baseline' in the settings." in words


def test_a_pattern_that_fits_no_rule_is_refused(run: Run, bad_wheel: Path) -> None:
    finished = run("audit", bad_wheel, "--ignore", "runpath-*")
    assert finished.status == 2
    assert finished.stderr == (
        "error: audit rules: 'runpath-*' matches no rule; expected a rule such as run-path-tag, run-path-dead, "
        "run-path-mixed. 'rocwheel audit --rules' lists them.\n"
    )


def test_a_wrong_pattern_of_rules_is_reported_before_anything_is_read(run: Run) -> None:
    finished = run("audit", "absent.whl", "--select", "zzz")
    assert (finished.status, finished.stderr) == (
        2,
        (
            "error: audit rules: 'zzz' matches no rule; expected the name of a rule, or a pattern of names. "
            "'rocwheel audit --rules' lists them.\n"
        ),
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Path.exists, "does not exist; expected a wheel or a folder"),
        (os.mkfifo, "is neither a file nor a folder; expected a wheel or a folder"),
        (Path.mkdir, "is an empty folder; expected wheels, an environment, artifacts or files"),
        (
            lambda path: path.write_text("x"),
            "is not a wheel; expected a wheel or a folder. Use rocwheel inspect for other files.",
        ),
    ],
    ids=["absent", "a pipe", "empty", "another file"],
)
def test_what_can_not_be_audited_is_refused(
    run: Run, tmp_path: Path, make: Callable[[Path], object], message: str
) -> None:
    make(tmp_path / "it")
    assert run("audit", tmp_path / "it") == (2, "", f"error: {tmp_path / 'it'}: {message}\n")


def test_a_file_that_only_looks_like_a_wheel_is_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    path.write_text("no archive")
    finished = run("audit", path)
    assert finished == (
        2,
        "",
        f"error: {path}: a damaged archive (File is not a zip file). Build or download it again.\n",
    )


def test_the_rules_can_be_listed(run: Run) -> None:
    lines = run("audit", "--rules").stdout.splitlines()
    assert sum(" error " in line or " warning " in line or " note " in line for line in lines) == len(ALL_RULES)


def test_the_rules_can_be_listed_as_json(run: Run) -> None:
    document = json.loads(run("audit", "--rules", "--json").stdout)
    assert document["schema"] == "rocwheel.audit-rules/1"
    assert [rule["name"] for rule in document["rules"]] == [rule.name for rule in ALL_RULES]
    assert document["rules"][0]["severity"] == "error"


def test_of_the_rules_those_that_are_selected_are_listed(run: Run) -> None:
    given = ("audit", "--rules", "--select", "tag-*", "--ignore", "tag-too-*")
    document = json.loads(run(*given, "--json").stdout)
    assert [rule["name"] for rule in document["rules"]] == ["tag-unknown", "tag-local", "tag-mismatch"]
    done = run("audit", "--rules", "--select", "no-such-rule")
    assert done.status == 2
    assert "'no-such-rule' matches no rule" in done.stderr


def test_verbose_says_nothing_of_folders_that_are_no_artifacts(run: Run, tmp_path: Path) -> None:
    for number in range(30):
        folder = tmp_path / f"it/{number}-{'long' * 30}"
        folder.mkdir(parents=True)
        (folder / "a.txt").touch()
    assert run("audit", "-v", tmp_path / "it").stderr == ""
