"""``rocwheel audit`` and ``rocwheel runpath for`` as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.audit.rules import ALL_RULES
from rocwheel.demo.demo import SAMPLE_SDK
from rocwheel.packages.job import BuildJob, PlanJob
from tests.support.command_line import as_user, needs_setpriv, rocwheel
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.command_line import Run


pytestmark = [pytest.mark.slow, needs_compiler]


@pytest.fixture(autouse=True)
def in_an_empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep settings of this checkout from being found."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Return a wheel with a relative run path entry."""
    tree = build_tree(tmp_path / "tree", Lib("a.so", (), "rocm_dis/lib"))
    tag = "py3-none-manylinux_2_5_x86_64"
    return make_wheel(tmp_path / "dist", "demo", {"demo/a.so": tree / "a.so"}, tag=tag)


FOUND = "searches 'rocm_dis/lib' relative to the folder in which the process was started"


def test_a_table_comes_first_and_each_finding_with_its_remedy_after(run: Run, wheel: Path) -> None:
    finished = run("audit", wheel)
    assert finished.status == 1
    lines = [line.strip() for line in finished.stdout.splitlines() if line.strip()]
    assert lines[0].split() == ["severity", "rule", "findings", "demand"]
    assert lines[2].split()[:3] == ["error", "run-path-relative", "1"]
    assert lines[3:] == [
        f"error run-path-relative {wheel}!demo/a.so",
        FOUND,
        "-> Link with the list that 'rocwheel runpath for' prints, or run rocwheel repair.",
        f"5 files, 1 of them programs and libraries; {len(ALL_RULES)} rules: 1 error, 0 warnings, 0 notes",
    ]


def test_machines_get_every_finding(run: Run, wheel: Path) -> None:
    document = json.loads(run("audit", wheel, "--json").stdout)
    assert document["schema"] == "rocwheel.audit/1"
    assert document["errors"] == 1
    assert document["findings"] == [
        {
            "rule": "run-path-relative",
            "severity": "error",
            "file": f"{wheel}!demo/a.so",
            "found": FOUND,
            "remedy": "Link with the list that 'rocwheel runpath for' prints, or run rocwheel repair.",
            "distribution": "demo",
            "path": "demo/a.so",
            "fingerprint": "63f818f5fea6ba13a9a0db99bd0c451d",
        }
    ]


def test_code_scanning_gets_sarif(run: Run, wheel: Path, tmp_path: Path) -> None:
    run("audit", wheel, "--sarif", tmp_path / "audit.sarif", "--quiet")
    document = json.loads((tmp_path / "audit.sarif").read_text())
    (scan,) = document["runs"]
    (result,) = scan["results"]
    assert document["version"] == "2.1.0"
    assert scan["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "run-path-relative"
    assert result["level"] == "error"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == str(wheel)
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
def test_options_choose_what_is_checked(run: Run, wheel: Path, options: list[str], status: int) -> None:
    assert run("audit", wheel, *options).status == status


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
    assert run("audit", folder, *options, "--baseline", known, "--update-baseline").status == 0
    assert run("audit", folder, *options, "--baseline", known).status == 0


@pytest.mark.parametrize("options", [("--sarif",), ("--update-baseline", "--baseline")], ids=["SARIF", "baseline"])
def test_what_is_audited_is_never_written_over(run: Run, wheel: Path, options: tuple[str, ...]) -> None:
    before = wheel.read_bytes()
    done = run("audit", wheel, *options, wheel)
    assert (done.status, wheel.read_bytes() == before) == (2, True)
    assert "is itself audited; expected another file to write to" in " ".join(done.stderr.split())


@pytest.mark.parametrize("options", [("--sarif",), ("--update-baseline", "--baseline")], ids=["SARIF", "baseline"])
@pytest.mark.parametrize("place", ["folder of wheels", "environment", "linked environment"])
def test_no_file_of_what_is_audited_is_written_over(
    run: Run, wheel: Path, tmp_path: Path, place: str, options: tuple[str, ...]
) -> None:
    environment = tmp_path / "env"
    (environment / "demo").mkdir(parents=True)
    (tmp_path / "link").symlink_to(environment)
    target = wheel if place == "folder of wheels" else environment / "demo/a.so"
    if target != wheel:
        target.write_bytes((tmp_path / "tree/a.so").read_bytes())
    before = target.read_bytes()
    audited = {"folder of wheels": wheel.parent, "environment": environment, "linked environment": tmp_path / "link"}
    done = run("audit", audited[place], *options, target)
    assert (done.status, target.read_bytes() == before) == (2, True)
    assert "is itself audited; expected another file to write to" in " ".join(done.stderr.split())


def test_reports_are_renewed_wherever_they_lie(run: Run, wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    options = (folder, "--sarif", folder / "a.sarif", "--update-baseline", "--baseline", folder / "known.json")
    assert run("audit", *options).status == 0
    (folder / "known.json").write_text(
        known := (folder / "known.json").read_text().replace("audit-baseline/3", "audit-baseline/1")
    )
    assert run("audit", *options).status == 0
    assert (folder / "known.json").read_text() != known
    assert run("audit", wheel.parent, "--sarif", wheel.parent / "a.sarif").status == 1


NESTED = "[" * 100_000


def test_settings_nested_without_end_are_an_error(run: Run, wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(f"x = {NESTED}")
    done = run("audit", wheel, "--config", tmp_path / "settings.toml")
    assert (done.status, done.stderr.startswith(f"error: {tmp_path}/settings.toml: ")) == (2, True)


def test_a_baseline_nested_without_end_is_an_error(run: Run, wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "known.json").write_text(f'{{"x": {NESTED}')
    done = run("audit", wheel, "--baseline", tmp_path / "known.json")
    assert (
        done.status,
        done.stderr.startswith(f"error: {tmp_path}/known.json: is not a baseline (maximum recursion"),
    ) == (
        2,
        True,
    )


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
    problem = f"error: {path}: cannot be read (Permission denied). Check that it exists and may be read.\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", problem)


@needs_setpriv
def test_a_folder_that_may_hold_artifacts_and_may_not_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "tree/bad").mkdir(parents=True)
    (tmp_path / "tree/bad").chmod(0)
    done = rocwheel("audit", tmp_path / "tree", before=as_user())
    (tmp_path / "tree/bad").chmod(0o755)
    assert (done.returncode, done.stderr.startswith(f"error: {tmp_path}/tree/bad: cannot be read (Perm")) == (2, True)


@pytest.mark.parametrize("options", [("--sarif",), ("--update-baseline", "--baseline")], ids=["SARIF", "baseline"])
def test_no_folder_is_made_for_a_report(run: Run, wheel: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    target = tmp_path / "nosuch/report.json"
    assert run("audit", wheel, *options, target) == (
        2,
        "",
        f"error: {target}: would be written to {target.parent}; expected a folder that exists\n",
    )
    assert not target.parent.exists()


@pytest.mark.parametrize("command", [("audit",), ("repair", "--check")], ids=["audit", "repair"])
def test_a_folder_beside_without_a_package_is_refused(
    run: Run, wheel: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "beside/dist").mkdir(parents=True)
    (tmp_path / "beside/README.md").write_text("See dist.\n")
    finished = run(*command, wheel, "--with", tmp_path / "beside")
    found = "contains neither a package nor a library; expected wheels, an environment or artifacts"
    assert finished == (2, "", f"error: {tmp_path / 'beside'}: {found}\n")


@pytest.mark.parametrize(
    "text", ["", '[project]\nname = "demo"\n', "[tool.rocwheel]\n"], ids=["none", "others", "tool"]
)
def test_settings_that_are_named_have_to_be_there(run: Run, wheel: Path, tmp_path: Path, text: str) -> None:
    settings = tmp_path / "pyproject.toml"
    settings.write_text(text)
    assert run("audit", wheel).status == 1
    expected = "expected [tool.rocwheel.audit], or [audit] in a recipe. Check --config."
    assert run("audit", wheel, "--config", settings) == (
        2,
        "",
        f"error: {settings}: has no audit settings; {expected}\n",
    )


def test_known_findings_do_not_fail_wherever_the_wheel_lies(run: Run, wheel: Path, tmp_path: Path) -> None:
    assert run("audit", wheel, "--baseline", tmp_path / "known.json", "--update-baseline").status == 0
    moved = wheel.rename(tmp_path / wheel.name)
    finished = run("audit", moved, "--baseline", tmp_path / "known.json")
    assert finished.status == 0
    assert finished.stdout.endswith("0 errors, 0 warnings, 0 notes, 1 known\n")


def test_a_project_may_settle_things_in_its_pyproject(run: Run, wheel: Path, tmp_path: Path) -> None:
    settings = '[tool.rocwheel.audit.per-file-ignore]\n"demo/*.so" = ["run-path-*"]\n'
    (tmp_path / "pyproject.toml").write_text(settings)
    assert run("audit", wheel).status == 0


def test_a_baseline_lies_beside_the_settings_that_name_it(run: Run, wheel: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings/audit.toml"
    settings.parent.mkdir()
    settings.write_text('[tool.rocwheel.audit]\nbaseline = "known.json"\n')
    assert run("audit", wheel, "--config", settings, "--update-baseline").status == 0
    assert (settings.parent / "known.json").exists()
    assert run("audit", wheel, "--config", settings).stdout.endswith("0 errors, 0 warnings, 0 notes, 1 known\n")


def test_a_baseline_to_update_has_to_be_named(run: Run, wheel: Path) -> None:
    finished = run("audit", wheel, "--update-baseline")
    assert finished.status == 2
    words = " ".join(finished.stderr.replace("│", " ").split())
    assert "--update-baseline needs '--baseline FILE', or 'baseline' in the settings." in words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, "cannot be read (No such file or directory). Use --update-baseline to make one."),
        ("{}", "is not a baseline (Object missing required field `schema`). Use --update-baseline to make a new one."),
        (
            '{"schema": "other/1", "findings": []}',
            (
                "is a baseline of schema 'other/1'; expected rocwheel.audit-baseline/3. "
                "Use --update-baseline to make a new one."
            ),
        ),
    ],
    ids=["absent", "another file", "another schema"],
)
def test_a_baseline_that_is_none_is_refused(
    run: Run, wheel: Path, tmp_path: Path, text: str | None, found: str
) -> None:
    path = tmp_path / "known.json"
    if text is not None:
        path.write_text(text)
    assert run("audit", wheel, "--baseline", path) == (2, "", f"error: {path}: {found}\n")


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ('select = ["tag-*"]', 0),
        ('select = ["run-path-*"]', 1),
        ('ignore = ["run-path-relative"]', 0),
        ('expect-tag = "rpath"\nselect = ["run-path-tag"]', 1),
        ('expect-runpath = "rocm_dis/lib"\nselect = ["run-path-unexpected"]', 0),
        ('system-libraries = ["libx.so"]\ncpu-level = "x86-64-v2"\nclosed = true\nignore = ["run-path-relative"]', 0),
    ],
)
def test_settings_choose_what_is_checked(run: Run, wheel: Path, tmp_path: Path, settings: str, status: int) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.rocwheel.audit]\n{settings}\n")
    assert run("audit", wheel).status == status


def test_options_come_before_settings(run: Run, wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.rocwheel.audit]\nselect = ["tag-*"]\n')
    assert run("audit", wheel, "--select", "run-path-*").status == 1


def test_a_pattern_for_files_that_fits_no_rule_is_refused(run: Run, wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.rocwheel.audit.per-file-ignore]\n"*" = ["runpath-*"]\n')
    finished = run("audit", wheel)
    assert finished.status == 2
    assert finished.stderr.startswith("error: audit rules: 'runpath-*' matches no rule; expected one of")


def test_a_folder_with_a_wheel_for_each_python_is_audited_at_once(run: Run, tmp_path: Path) -> None:
    built = build_tree(tmp_path / "tree", Lib("a.so", ("libb.so",), "$ORIGIN"), Lib("libb.so"))
    files: dict[str, Path | bytes] = {f"demo/{name}": built / name for name in ("a.so", "libb.so")}
    for python in ("cp311", "cp312"):
        make_wheel(tmp_path / "dist", "demo", files, tag=f"{python}-{python}-manylinux_2_5_x86_64")
    make_wheel(tmp_path / "dist", "more", {"more/__init__.py": b""}, tag="py3-none-any", requires=("demo==1.0",))
    finished = run("audit", "dist", "--with", tmp_path / "dist")
    rules = len(ALL_RULES)
    assert (finished.status, finished.stdout) == (
        0,
        f"17 files, 4 of them programs and libraries; {rules} rules: 0 errors, 0 warnings, 0 notes\n",
    )


@pytest.mark.parametrize("setting", ["dlopen", "loaded-by", "per-file-ignore"])
def test_a_pattern_of_paths_that_fits_no_file_is_told(run: Run, wheel: Path, tmp_path: Path, setting: str) -> None:
    table = '"dmo/*" = ["run-path-relative"]\n"demo/*" = ["run-path-relative"]\n'
    (tmp_path / "pyproject.toml").write_text(f"[tool.rocwheel.audit.{setting}]\n{table}")
    finished = run("audit", wheel)
    assert finished.stderr == f"warning: the setting {setting} 'dmo/*' matches no file\n"
    assert json.loads(run("audit", wheel, "--json").stdout)["idle_patterns"] == [f"{setting} 'dmo/*'"]


def test_a_recipe_may_say_what_is_opened_by_name(run: Run, wheel: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[audit]\nselect = ["unresolved-dlopen"]\n[audit.dlopen]\n"demo/*.so" = ["libfoo.so.1"]\n')
    finished = run("audit", wheel, "--config", recipe)
    assert finished.status == 1
    assert (
        "opens libfoo.so.1 at run time, but no package, SDK library or allowed system library provides it"
        in finished.stdout
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[tool.rocwheel.audit]\nselct = []\n", "Object contains unknown field `selct` - at `$.tool.rocwheel.audit`"),
        (
            "[tool.rocwheel.audit]\nclosed = 1\n",
            "Expected `bool | null`, got `int` - at `$.tool.rocwheel.audit.closed`",
        ),
    ],
    ids=["misspelled", "wrong type"],
)
def test_settings_that_are_wrong_are_named(run: Run, wheel: Path, tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "settings.toml").write_text(text)
    finished = run("audit", wheel, "--config", tmp_path / "settings.toml")
    expected = "settings under [tool.rocwheel.audit] as the documentation describes them"
    assert finished == (2, "", f"error: {tmp_path / 'settings.toml'}: {found}; expected {expected}\n")


def test_a_pattern_that_fits_no_rule_is_refused(run: Run, wheel: Path) -> None:
    finished = run("audit", wheel, "--ignore", "runpath-*")
    assert finished.status == 2
    assert finished.stderr.startswith(
        "error: audit rules: 'runpath-*' matches no rule; expected one of unresolved-library,"
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


def install(site: Path, *wheels: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(site)]
    subprocess.run([*pip, *map(str, wheels)], check=True)
    return site


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Return an environment with a package that needs HIP, and one that has nothing to do with it."""
    built = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7",), "$ORIGIN/../_rocm_sdk_core/lib"))
    tag = "py3-none-manylinux_2_5_x86_64"
    wheels = [
        make_wheel(tmp_path / "dist", "demo", {"demo/a.so": built / "a.so"}, tag=tag, requires=("rocm-sdk-core",)),
        make_wheel(
            tmp_path / "dist", "more", {"more/x.py": b""}, tag="py3-none-any", requires=("absent; extra == 'x'",)
        ),
    ]
    return install(tmp_path / "site", *wheels)


def test_an_sdk_that_an_environment_lacks_is_told(run: Run, environment: Path) -> None:
    finished = run("audit", environment)
    assert finished.status == 1
    assert "needs libamdhip64.so.7, but its package rocm-sdk-core is absent" in finished.stdout
    assert "-> Install rocm-sdk-core, or give it with --with." in finished.stdout
    assert finished.stdout.endswith(" rules: 1 error, 0 warnings, 0 notes\n")


def test_an_sdk_may_still_come_to_an_environment(run: Run, environment: Path, tmp_path: Path) -> None:
    assert run("audit", environment, "--no-closed").status == 0
    coming = make_wheel(
        tmp_path / "coming", "third", {"third/x.py": b""}, tag="py3-none-any", requires=("rocm-sdk-core",)
    )
    assert run("audit", environment, coming).status == 0
    (tmp_path / "pyproject.toml").write_text("[tool.rocwheel.audit]\nclosed = false\n")
    assert run("audit", environment).status == 0


def test_what_is_to_be_installed_may_bring_an_sdk(run: Run, environment: Path, tmp_path: Path) -> None:
    (wheel,) = tmp_path.glob("dist/demo-*.whl")
    assert run("audit", wheel, "--with", environment).status == 0
    assert run("audit", wheel, "--closed").status == 1
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked")
    assert run("audit", tmp_path / "unpacked").status == 0


def test_an_environment_with_its_sdk_is_right(run: Run, environment: Path, tmp_path: Path) -> None:
    BuildJob(PlanJob(SAMPLE_SDK), tmp_path / "made").run()
    (core,) = tmp_path.glob("made/dist/rocm_sdk_core-*.whl")
    assert run("audit", environment, "--with", core).status == 0
    install(environment, core)
    finished = run("audit", environment)
    assert finished.stdout.endswith(" rules: 0 errors, 0 warnings, 0 notes\n")


def test_packages_made_of_the_sample_sdk_have_no_findings(run: Run, tmp_path: Path) -> None:
    BuildJob(PlanJob(SAMPLE_SDK), tmp_path / "made").run()
    finished = run("audit", tmp_path / "made/dist")
    assert finished.status == 0
    assert finished.stdout.endswith(f"{len(ALL_RULES)} rules: 0 errors, 0 warnings, 0 notes\n")


def test_the_artifacts_of_the_sample_sdk_have_no_findings(run: Run) -> None:
    finished = run("audit", SAMPLE_SDK)
    assert finished.stdout.endswith(f"{len(ALL_RULES)} rules: 0 errors, 0 warnings, 0 notes\n")


def test_runpath_for_prints_the_entries_and_what_they_are_for(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7", "libhipblas.so.3")))
    options = ["--at", "site-packages/demo/", "--with", "rocm-sdk-core", "--with", "rocm-sdk-libraries"]
    lines = [line.split() for line in run("runpath", "for", tree / "a.so", *options).stdout.splitlines()]
    assert [line for line in lines if line and line[0].startswith("$ORIGIN")] == [
        ["$ORIGIN/../_rocm_sdk_core/lib", "libamdhip64.so.7"],
        ["$ORIGIN/../_rocm_sdk_libraries/lib", "libhipblas.so.3"],
    ]
    plain = run("runpath", "for", tree / "a.so", *options, "--spell", "plain").stdout
    assert plain == "$ORIGIN/../_rocm_sdk_core/lib:$ORIGIN/../_rocm_sdk_libraries/lib\n"


def test_runpath_for_names_a_library_that_looks_like_markup(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("lib[/l].so",)))
    finished = run("runpath", "for", tree / "a.so", "--at", "demo/")
    assert (finished.status, finished.stderr) == (1, "lib[/l].so: neither in the packages nor on every system\n")


def test_runpath_for_fails_where_a_library_is_nowhere(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libfoo.so.1",)))
    finished = run("runpath", "for", tree / "a.so", "--at", "demo/", "--json")
    assert finished.status == 1
    assert json.loads(finished.stdout) == {
        "schema": "rocwheel.runpath.for/1",
        "entries": [],
        "system": [],
        "missing": ["libfoo.so.1"],
        "spellings": {},
    }
    assert finished.stderr == "libfoo.so.1: neither in the packages nor on every system\n"


def test_runpath_for_finds_what_a_processor_alone_finds(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libb.so",)), Lib("sdk/glibc-hwcaps/x86-64-v2/libb.so"))
    command = ("runpath", "for", tree / "a.so", "--at", "demo/", "--with", tree / "sdk", "--spell", "plain")
    assert run(*command).status == 1
    assert run(*command, "--cpu-level", "x86-64-v2") == (0, "$ORIGIN/..\n", "")


def test_runpath_for_names_packages_that_it_does_not_know(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so"))
    finished = run("runpath", "for", tree / "a.so", "--at", "demo/", "--with", "rocm-sdk-cor")
    expected = "a wheel, a folder, or one of rocm-sdk-core, rocm-sdk-libraries"
    assert finished == (2, "", f"error: --with rocm-sdk-cor: does not exist; expected {expected}\n")
