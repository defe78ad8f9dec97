"""``rocwheel audit``: its options, what it prints, and its exit status."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from rocwheel.audit.rules import ALL_RULES
from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.demo import SAMPLE_WINDOWS
from tests.support.command_line import as_user, needs_setpriv, rocwheel
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.loopback import served
from tests.support.pe_files import ARM64, pe_file
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.command_line import Run
    from tests.support.dask_clusters import DaskCluster


FOUND = "searches 'rocm_dis/lib' relative to the working directory"


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
def test_the_rule_is_printed_before_its_findings_and_the_remedy(run: Run, bad_wheel: Path) -> None:
    finished = run("audit", bad_wheel)
    assert finished.status == 1
    lines = [line.strip() for line in finished.stdout.splitlines() if line.strip()]
    assert lines == [
        "error run-path-relative",
        f"{bad_wheel}!demo/a.so {FOUND}",
        "-> Link with the run path that 'rocwheel runpath for' prints. 'rocwheel repair' removes unused entries.",
        f"5 files, 1 of them programs and libraries; {len(ALL_RULES)} rules: 1 error, 0 warnings, 0 notes",
    ]


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
def test_long_lists_of_findings_are_truncated_unless_verbose(run: Run, tmp_path: Path) -> None:
    names = [f"demo/{number:02}.txt" for number in range(23)]
    files = {name: f"to-{name}".encode() for name in names}
    wheel = make_wheel(tmp_path, "demo", files, tag="py3-none-any", links=names)
    lines = run("audit", wheel, "--select", "symlink").stdout.splitlines()
    assert lines[0] == "error symlink (23 findings)"
    assert len([line for line in lines if f"    {wheel}!demo/" in line]) == 10
    assert lines[11] == "    and 13 more (-v)"
    every = run("audit", wheel, "--select", "symlink", "-v").stdout.splitlines()
    assert len([line for line in every if f"    {wheel}!demo/" in line]) == 23
    assert len(json.loads(run("audit", wheel, "--select", "symlink", "--json").stdout)["findings"]) == 23


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
def test_json_has_every_finding(run: Run, bad_wheel: Path) -> None:
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
                "Link with the run path that 'rocwheel runpath for' prints. 'rocwheel repair' removes unused entries."
            ),
            "distribution": "demo",
            "path": "demo/a.so",
            "fingerprint": "63f818f5fea6ba13a9a0db99bd0c451d",
            "facts": ["rocm_dis/lib"],
        }
    ]


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
def test_findings_can_be_written_as_sarif(run: Run, bad_wheel: Path, tmp_path: Path) -> None:
    run("audit", bad_wheel, "--sarif", tmp_path / "audit.sarif", "--quiet")
    document = json.loads((tmp_path / "audit.sarif").read_text())
    (scan,) = document["runs"]
    (result,) = scan["results"]
    assert document["version"] == "2.1.0"
    assert scan["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "run-path-relative"
    assert result["level"] == "error"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == str(bad_wheel)
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "demo/a.so"


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--ignore", "run-path-relative"], 0),
        (["--select", "tag-*"], 0),
        (["--select", "run-path-*"], 1),
        (["--expect", "runpath=rocm_dis/lib", "--select", "run-path-unexpected"], 0),
        (["--expect", "runpath=$ORIGIN", "--select", "run-path-unexpected"], 1),
        (["--expect", "tag=rpath", "--select", "run-path-tag"], 1),
        (["--expect", "tag=runpath", "--select", "run-path-tag"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_select_the_rules_that_are_checked(run: Run, bad_wheel: Path, options: list[str], status: int) -> None:
    assert run("audit", bad_wheel, *options).status == status


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
def test_a_newline_in_a_file_name_does_not_start_a_new_output_line(run: Run, tmp_path: Path, bad_wheel: Path) -> None:
    folder = tmp_path / "a\nerror forged"
    folder.mkdir()
    bad_wheel.rename(folder / bad_wheel.name)
    lines = run("audit", folder, "--quiet").stdout.splitlines()
    assert [line for line in lines if line.startswith("error forged")] == []
    assert any("a\\nerror forged" in line for line in lines)


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
def test_names_that_are_not_unicode_are_reported_in_every_format(run: Run, tmp_path: Path) -> None:
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


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
def test_audit_without_a_path_reports_the_missing_argument(run: Run) -> None:
    expected = "error: rocwheel audit: the argument PATH is missing. See rocwheel audit --help.\n"
    assert run("audit") == (2, "", expected)


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
@needs_setpriv
@pytest.mark.parametrize("closed", ["demo-1.0.dist-info/METADATA", "other", "other/inner", "other/a.so"])
def test_an_unreadable_file_or_folder_is_reported(tmp_path: Path, closed: str) -> None:
    for name in ("demo-1.0.dist-info/METADATA", "other/inner/x", "other/a.so"):
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_bytes(b"text")
    path = tmp_path / "site" / closed
    path.chmod(0)
    done = rocwheel("audit", tmp_path / "site", before=as_user())
    path.chmod(0o755)
    problem = f"error: {path}: can't be read (Permission denied). Check whether it exists and is readable.\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", problem)


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
@needs_setpriv
def test_an_unreadable_folder_that_may_contain_artifacts_is_reported(tmp_path: Path) -> None:
    (tmp_path / "tree/bad").mkdir(parents=True)
    (tmp_path / "tree/bad").chmod(0)
    done = rocwheel("audit", tmp_path / "tree", before=as_user())
    (tmp_path / "tree/bad").chmod(0o755)
    assert (done.returncode, done.stderr.startswith(f"error: {tmp_path}/tree/bad: can't be read (Perm")) == (2, True)


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
@pytest.mark.parametrize("command", [("audit",), ("repair", "--check")], ids=["audit", "repair"])
def test_a_folder_without_packages_is_refused_by_the_with_option(
    run: Run, bad_wheel: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "beside/dist").mkdir(parents=True)
    (tmp_path / "beside/README.md").write_text("See dist.\n")
    finished = run(*command, bad_wheel, "--with", tmp_path / "beside")
    found = "contains neither packages nor libraries; expected wheels, an environment, or artifacts"
    assert finished == (2, "", f"error: {tmp_path / 'beside'}: {found}\n")


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
def test_updating_a_baseline_requires_a_baseline_file(run: Run, bad_wheel: Path) -> None:
    finished = run("audit", bad_wheel, "--update-baseline")
    assert finished.status == 2
    words = " ".join(finished.stderr.replace("│", " ").split())
    assert "--update-baseline requires '--baseline FILE', or 'baseline' in the settings." in words


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
def test_a_pattern_that_matches_no_rule_is_refused(run: Run, bad_wheel: Path) -> None:
    finished = run("audit", bad_wheel, "--ignore", "runpath-*")
    assert finished.status == 2
    assert finished.stderr == (
        "error: audit rules: 'runpath-*' matches no rule; expected a rule such as run-path-tag, run-path-dead, "
        "run-path-mixed. To list the rules, run 'rocwheel audit --rules'.\n"
    )


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
def test_an_invalid_rule_pattern_is_reported_before_any_file_is_read(run: Run) -> None:
    finished = run("audit", "absent.whl", "--select", "zzz")
    assert (finished.status, finished.stderr) == (
        2,
        (
            "error: audit rules: 'zzz' matches no rule; expected a rule name, or a pattern for rule names. "
            "To list the rules, run 'rocwheel audit --rules'.\n"
        ),
    )


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Path.exists, "doesn't exist; expected a wheel or a folder"),
        (os.mkfifo, "is neither a file nor a folder; expected a wheel or a folder"),
        (Path.mkdir, "is an empty folder; expected wheels, an environment, artifacts, or files"),
        (
            lambda path: path.write_text("x"),
            "isn't a wheel; expected a wheel or a folder. For other files, use rocwheel inspect.",
        ),
    ],
    ids=["absent", "a pipe", "empty", "another file"],
)
def test_input_that_is_not_auditable_is_refused(
    run: Run, tmp_path: Path, make: Callable[[Path], object], message: str
) -> None:
    make(tmp_path / "it")
    assert run("audit", tmp_path / "it") == (2, "", f"error: {tmp_path / 'it'}: {message}\n")


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
def test_a_file_that_only_has_the_name_of_a_wheel_is_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    path.write_text("no archive")
    finished = run("audit", path)
    assert finished == (
        2,
        "",
        f"error: {path}: is a damaged archive (File is not a zip file). Build or download it again.\n",
    )


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
def test_the_rules_can_be_listed(run: Run) -> None:
    lines = run("audit", "--rules").stdout.splitlines()
    assert sum(" error " in line or " warning " in line or " note " in line for line in lines) == len(ALL_RULES)


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
def test_the_rules_can_be_listed_as_json(run: Run) -> None:
    document = json.loads(run("audit", "--rules", "--json").stdout)
    assert document["schema"] == "rocwheel.audit-rules/1"
    assert [rule["name"] for rule in document["rules"]] == [rule.name for rule in ALL_RULES]
    assert document["rules"][0]["severity"] == "error"


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
def test_select_and_ignore_filter_the_list_of_rules(run: Run) -> None:
    given = ("audit", "--rules", "--select", "tag-*", "--ignore", "tag-too-*")
    document = json.loads(run(*given, "--json").stdout)
    assert [rule["name"] for rule in document["rules"]] == ["tag-unknown", "tag-local", "tag-mismatch"]
    done = run("audit", "--rules", "--select", "no-such-rule")
    assert done.status == 2
    assert "'no-such-rule' matches no rule" in done.stderr


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("in_an_empty_folder")
def test_verbose_does_not_mention_folders_that_are_not_artifacts(run: Run, tmp_path: Path) -> None:
    for number in range(30):
        folder = tmp_path / f"it/{number}-{'long' * 30}"
        folder.mkdir(parents=True)
        (folder / "a.txt").touch()
    assert run("audit", "-v", tmp_path / "it").stderr == ""


WHEEL = "demo-1.0-py3-none-win_amd64.whl"
INFO = {
    "METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
    "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-win_amd64\n",
}
FAULTY: dict[str, bytes] = {
    "demo/a.dll": pe_file("a.dll", "absent.dll", "KERNEL32.dll"),
    "demo/cut.dll": pe_file("cut.dll")[:700],
    "demo/cut-early.dll": pe_file("cut-early.dll")[:70],
    "demo/empty.dll": b"",
    "demo/text.exe": b"version https://git-lfs.github.com/spec/v1\n",
    "demo/arm.dll": pe_file("arm.dll", machine=ARM64),
    "demo/loop1.dll": pe_file("loop1.dll", "loop1.dll", "loop2.dll"),
    "demo/loop2.dll": pe_file("loop2.dll", "LOOP1.DLL"),
    "demo/Notes.txt": b"1",
    "demo/notes.txt": b"2",
    "demo/gfx90a:xnack+.kpack": b"3",
    f"demo/{'x' * 100}/{'y' * 194}": b"4",
    "demo/initials.txt": b"MZ",
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the packages of the sample SDK for Windows."""
    dest = tmp_path_factory.mktemp("windows")
    BuildJob(PlanJob(SAMPLE_WINDOWS), dest).run()
    return dest / "dist"


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """Return the folder of a wheel with one fault of each kind."""
    (tmp_path / "faulty").mkdir()
    with ZipFile(tmp_path / "faulty" / WHEEL, "w") as archive:
        for name, data in FAULTY.items():
            archive.writestr(name, data)
        for name, text in INFO.items():
            archive.writestr(f"demo-1.0.dist-info/{name}", text)
    return tmp_path / "faulty"


def findings(document: str) -> set[tuple[str, str]]:
    """Return rule and member of each finding on Windows."""
    found = json.loads(document)["findings"]
    pairs = {(one["rule"], one["file"].partition("!")[2]) for one in found}
    return {pair for pair in pairs if pair[1]}


@pytest.mark.slow
@pytest.mark.usefixtures("in_an_empty_folder")
def test_the_sample_packages_have_no_findings(run: Run, sample: Path) -> None:
    finished = run("audit", sample)
    assert (finished.status, "0 errors, 0 warnings, 0 notes" in finished.stdout) == (0, True), finished.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("in_an_empty_folder")
def test_archives_of_split_dlls_are_found_if_their_wheels_are_given(run: Run, sample: Path, tmp_path: Path) -> None:
    (wheel,) = sample.glob("rocm_sdk_libraries-*.whl")
    assert run("device", "split", wheel, "--output", tmp_path / "split", "--quiet").status == 0
    closed = ("--closed", "--select", "image-*", "--json")
    together = run("audit", tmp_path / "split", *closed)
    assert json.loads(together.stdout)["findings"] == []
    alone = run("audit", tmp_path / "split" / wheel.name, *closed)
    assert {(one["rule"], one["path"]) for one in json.loads(alone.stdout)["findings"]} == {
        ("image-archives", "_rocm_sdk_libraries/bin/rocrand.dll"),
        ("image-archives", "_rocm_sdk_libraries/bin/rocsparse.dll"),
    }


@pytest.mark.slow
@pytest.mark.usefixtures("in_an_empty_folder")
def test_plugins_that_the_packages_omit_are_reported_in_the_artifacts(run: Run) -> None:
    finished = run("audit", SAMPLE_WINDOWS, "--json")
    rules = {(one["rule"], one["path"]) for one in json.loads(finished.stdout)["findings"]}
    assert rules == {
        ("dll-unreachable", "bin/test_plugins/custom/test_good_plugin.dll"),
        ("import-library", "lib/libhipblaslt.dll.a"),
    }


@pytest.mark.slow
@pytest.mark.usefixtures("in_an_empty_folder")
def test_every_fault_is_reported_and_does_not_stop_the_audit(run: Run, faulty: Path) -> None:
    finished = run("audit", faulty, "--json")
    assert (finished.status, finished.stderr) == (1, "")
    assert findings(finished.stdout) == {
        ("dll-missing", "demo/a.dll"),
        ("unreadable-binary", "demo/cut.dll"),
        ("unreadable-binary", "demo/cut-early.dll"),
        ("unreadable-binary", "demo/empty.dll"),
        ("unreadable-binary", "demo/text.exe"),
        ("wrong-machine", "demo/arm.dll"),
        ("windows-case", "demo/Notes.txt"),
        ("windows-name", "demo/gfx90a:xnack+.kpack"),
        ("windows-path", f"demo/{'x' * 100}/{'y' * 194}"),
    }


@pytest.mark.slow
@pytest.mark.usefixtures("in_an_empty_folder")
def test_sarif_has_the_same_findings(run: Run, faulty: Path, tmp_path: Path) -> None:
    run("audit", faulty, "--select", "dll-*", "--sarif", tmp_path / "found.sarif")
    (result,) = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("dll-missing", "error")


@pytest.mark.slow
@pytest.mark.usefixtures("in_an_empty_folder")
def test_a_finding_in_the_baseline_does_not_fail_the_audit(run: Run, faulty: Path) -> None:
    known = ("--baseline", "known.json", "--select", "dll-*")
    assert run("audit", faulty, *known, "--update-baseline").status == 0
    assert run("audit", faulty, *known).status == 0


@pytest.mark.slow
@pytest.mark.usefixtures("in_an_empty_folder")
def test_packages_at_a_url_produce_the_same_findings(run: Run, faulty: Path) -> None:
    local = run("audit", faulty, "--json", "--quiet")
    with served(faulty) as address:
        remote = run("audit", f"{address}/{WHEEL}", "--json", "--quiet")
    assert findings(remote.stdout) == findings(local.stdout)


@pytest.mark.slow
@pytest.mark.usefixtures("in_an_empty_folder")
def test_cluster_workers_produce_the_same_findings(faulty: Path, dask_cluster: DaskCluster) -> None:
    here = rocwheel("audit", faulty, "--json", "-q")
    there = rocwheel("audit", faulty, "--json", "-q", "--scheduler", dask_cluster.address)
    assert (there.returncode, there.stdout) == (1, here.stdout)


@pytest.mark.slow
@pytest.mark.usefixtures("in_an_empty_folder")
@pytest.mark.parametrize("command", ["report", "diff"])
def test_other_commands_name_the_damaged_file_and_report_the_rest(
    run: Run, sample: Path, faulty: Path, command: str
) -> None:
    paths = [sample, faulty] if command == "diff" else [faulty]
    finished = run(command, *paths, "--json", "--quiet")
    assert finished.status == 2
    assert {line for line in finished.stderr.splitlines() if "cut.dll" in line}
    assert "demo/a.dll" in finished.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("in_an_empty_folder")
def test_verify_checks_any_kind_of_file_against_record(run: Run, sample: Path, faulty: Path) -> None:
    assert run("verify", sample, "--quiet").status == 0
    assert run("verify", faulty, "--quiet").status == 1
