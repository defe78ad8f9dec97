"""The public API as a user's program has it."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

import rocwheel
from rocwheel import api
from rocwheel.demo import SAMPLE_SDK
from tests.support.places import FIXTURES, ROOT
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

FUNCTIONS = [
    "audit", "build", "diff", "index", "inspect", "join", "join_wheels", "lock", "plan", "promote", "publish", "repair",
    "split", "split_wheel", "targets", "verify",
]  # fmt: skip
CORE = "rocm_sdk_core-7.0.0-py3-none-manylinux_2_17_x86_64.whl"


def test_there_are_exactly_sixteen_functions() -> None:
    assert [name for name in api.__all__ if inspect.isfunction(getattr(api, name))] == FUNCTIONS


def test_the_top_level_package_exports_only_its_version() -> None:
    assert rocwheel.__all__ == ["__version__"]


def test_every_public_name_has_a_docstring() -> None:
    assert [name for name in api.__all__ if not inspect.getdoc(getattr(api, name))] == []


def test_the_docs_page_shows_exactly_the_public_names() -> None:
    shown = re.findall(r"^::: rocwheel\.api\.(\w+)$", (ROOT / "docs/python-api.md").read_text(), re.MULTILINE)
    assert sorted(shown) == api.__all__


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_each_function_calls_the_function(name: str) -> None:
    example = _example(name)
    called = {ast.unparse(node.func) for node in ast.walk(ast.parse(example)) if isinstance(node, ast.Call)}
    assert f"api.{name}" in called


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_parameter_is_documented(name: str) -> None:
    function = getattr(api, name)
    explained = re.findall(r"^    (\w+): ", inspect.getdoc(function) or "", re.MULTILINE)
    assert explained == list(inspect.signature(function).parameters)


def test_the_command_line_does_not_load_the_api(tmp_path: Path) -> None:
    code = "import sys, rocwheel.cli; sys.exit('rocwheel.api' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=tmp_path).returncode == 0


@pytest.mark.deep
def test_examples_pass_type_checking(tmp_path: Path) -> None:
    # Given the examples of the docstrings, of the documentation and of examples/, as programs
    for name in FUNCTIONS:
        (tmp_path / f"example_{name}.py").write_text(_example(name))
    page = re.search(r"```python\n(.*?)```", (ROOT / "docs/python-api.md").read_text(), re.DOTALL)
    assert page
    (tmp_path / "example_page.py").write_text(page[1])
    (tmp_path / "package_sdk.py").write_text((ROOT / "examples/python-api/package_sdk.py").read_text())
    # When mypy checks them strictly
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache/api"), "."]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    # Then it finds nothing
    assert done.stdout.splitlines()[-1] == "Success: no issues found in 18 source files"


def test_a_plan_lists_the_wheels_that_a_build_makes(sample_dist: Path) -> None:
    made = api.plan(str(SAMPLE_SDK))
    assert made.version == "7.0.0"
    assert {wheel.name.file_name for wheel in made.wheels} == {path.name for path in sample_dist.glob("*.whl")}


def test_a_build_can_be_indexed(tmp_path: Path) -> None:
    result = api.build(SAMPLE_SDK, tmp_path, version="7.0.1", level=1, jobs=1)
    report = api.index(tmp_path / "dist", tmp_path / "simple", files="copy")
    assert f"{tmp_path}/dist/rocm-7.0.1.tar.gz" in [built.path for built in result.distributions]
    assert report.projects["rocm"] == ["rocm-7.0.1.tar.gz"]
    assert (tmp_path / "simple/rocm/rocm-7.0.1.tar.gz").exists()


def test_builds_cache_packed_files_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    plain = api.build(SAMPLE_SDK, tmp_path / "plain")
    assert not (tmp_path / "cache").exists()
    first = api.build(SAMPLE_SDK, tmp_path / "first", cache=True)
    second = api.build(SAMPLE_SDK, tmp_path / "second", cache=True)
    assert (plain.members.kept, first.members.packed > 0, second.members.packed) == (0, True, 0)


def test_packages_are_promoted_for_selected_targets(sample_dist: Path, tmp_path: Path) -> None:
    result = api.promote(str(sample_dist), "7.0.1", str(tmp_path / "release"), targets=["gfx90a:xnack+"])
    assert (result.old_version, result.version, result.targets) == ("7.0.0", "7.0.1", ("gfx90a",))
    assert sorted(path.name for path in (tmp_path / "release").iterdir()) == sorted(
        made.path.rpartition("/")[2] for made in result.distributions
    )
    assert {path.rpartition("/")[2].split("-")[0] for path in result.left_out} == {
        "rocm_sdk_device_gfx906",
        "rocm_sdk_device_gfx1030",
    }


def test_unknown_targets_are_not_promoted(sample_dist: Path, tmp_path: Path) -> None:
    with pytest.raises(api.RocwheelError, match=r"^targets: 'gfx9zz' isn't a known GPU target"):
        api.promote(sample_dist, "7.0.1", tmp_path / "release", targets="gfx9zz")
    assert not (tmp_path / "release").exists()


def test_the_facts_of_a_binary_are_returned(sample_dist: Path) -> None:
    facts = {facts.path.rpartition("/")[2]: facts for facts in api.inspect([sample_dist / CORE])}
    elf = facts["libamdhip64.so.7"].elf
    assert elf
    assert (elf.kind, elf.soname) == ("shared object", "libamdhip64.so.7")


def test_an_unreadable_file_is_returned_with_its_error(tmp_path: Path) -> None:
    (facts,) = api.inspect(tmp_path / "absent")
    assert isinstance(facts.error, api.InputError)


def test_facts_can_be_counted_and_iterated_again(sample_dist: Path) -> None:
    facts = api.inspect(str(sample_dist / CORE))
    assert isinstance(facts, tuple)
    assert len(facts) > 0


def test_an_index_goes_next_to_its_folder_by_default(sample_dist: Path, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    shutil.copy(sample_dist / CORE, tmp_path / "dist")
    report = api.index(str(tmp_path / "dist"))
    assert (report.output, list(report.projects)) == (f"{tmp_path}/simple", ["rocm-sdk-core"])


def test_an_unknown_file_placement_is_refused(tmp_path: Path) -> None:
    with pytest.raises(api.InputError, match=r"^files: is 'move'; expected one of relative, hardlink, copy$"):
        api.index(tmp_path, files="move")  # type: ignore[arg-type]


def test_a_negative_number_of_workers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        api.InputError, match=r"^jobs: is -1; expected a number of workers, or 0 for one worker per core$"
    ):
        api.build(SAMPLE_SDK, tmp_path, jobs=-1)


def test_an_unknown_level_is_refused(tmp_path: Path) -> None:
    with pytest.raises(api.InputError, match=r"^level: is 13; expected a level from 0 to 12$"):
        api.build(SAMPLE_SDK, tmp_path, level=13)


@pytest.mark.parametrize("convert", [str, lambda path: path, lambda path: [path], lambda path: iter([str(path)])])
def test_audit_accepts_one_path_or_several(sample_dist: Path, convert: Callable[[Path], str]) -> None:
    report = api.audit(convert(sample_dist))
    assert (report.errors, report.files > 100) == (0, True)


@pytest.mark.parametrize(
    ("call", "name"),
    [(api.audit, "paths"), (api.inspect, "paths"), (lambda paths: api.repair(paths, None), "wheels")],
    ids=["audit", "inspect", "repair"],
)
def test_an_empty_list_of_paths_is_refused(call: Callable[[list[str]], object], name: str) -> None:
    with pytest.raises(api.InputError, match=f"^{name}: is empty; expected at least one path$"):
        call([])


def test_one_wheel_is_repaired_with_one_context_package(sample_dist: Path) -> None:
    result = api.repair(str(sample_dist / CORE), None, with_packages=str(sample_dist))
    assert [wheel.file_name for wheel in result.wheels] == [CORE]


def test_the_packages_of_a_build_pass_the_audit(sample_dist: Path) -> None:
    assert api.audit([sample_dist]).errors == 0


def test_settings_select_the_rules(sample_dist: Path) -> None:
    settings = api.AuditSettings(select=("unresolved-library",))
    report = api.audit([sample_dist / CORE], settings=settings)
    assert report.rules == ("unresolved-library",)


def test_a_baseline_of_known_findings_is_applied(sample_dist: Path, tmp_path: Path) -> None:
    # Given an expectation that the packages don't keep, and a baseline of all breaches
    settings = api.AuditSettings(select=("run-path-unexpected",), expect_runpath="$ORIGIN/none")
    found = api.audit([sample_dist / CORE], settings=settings)
    assert {finding.rule for finding in found.findings} == {"run-path-unexpected"}
    known = {
        "schema": "rocwheel.audit-baseline/4",
        "findings": [{"fingerprint": one.fingerprint} for one in found.findings],
    }
    (tmp_path / "known.json").write_text(json.dumps(known))
    # Then none of them is found again
    report = api.audit([sample_dist / CORE], settings=settings, baseline=tmp_path / "known.json")
    assert (report.findings, report.known) == ((), len(found.findings))


def test_an_unknown_rule_is_refused(sample_dist: Path) -> None:
    with pytest.raises(api.InputError, match="'nope' matches no rule"):
        api.audit([sample_dist / CORE], settings=api.AuditSettings(select=("nope",)))


def test_a_repair_without_a_destination_writes_nothing(sample_dist: Path) -> None:
    result = api.repair([sample_dist / CORE], None)
    assert ([wheel.file_name for wheel in result.wheels], result.written) == ([CORE], ())


def test_repair_copies_a_correct_wheel(sample_dist: Path, tmp_path: Path) -> None:
    others = [path for path in sample_dist.glob("*.whl") if path.name != CORE]
    result = api.repair([sample_dist / CORE], tmp_path / "repaired", with_packages=others)
    assert result.written == (f"{tmp_path}/repaired/{CORE}",)
    assert (tmp_path / "repaired" / CORE).read_bytes() == (sample_dist / CORE).read_bytes()


def test_split_files_can_be_joined_again(tmp_path: Path) -> None:
    (tmp_path / "tree/lib").mkdir(parents=True)
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", tmp_path / "tree/lib/libtwo.so")
    made = api.split(str(tmp_path / "tree"), tmp_path / "parts", targets="gfx906,gfx1030", level=1, jobs=1)
    assert [share.target for share in made.targets] == ["gfx906", "gfx1030"]
    joined = api.join(tmp_path / "parts/host", [tmp_path / "parts/gfx906"], str(tmp_path / "fat"))
    assert [(library.path, library.targets) for library in joined.libraries] == [("lib/libtwo.so", ("gfx906",))]


def test_a_split_wheel_can_be_joined_again(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/a.so": FIXTURES / "v22/libtwo.plain.so"})
    made = api.split_wheel(wheel, tmp_path / "parts", device_name="amd-demo-device")
    assert "amd_demo_device_gfx906" in [device.path.rpartition("/")[2].split("-")[0] for device in made.devices]
    joined = api.join_wheels(made.host, [device.path for device in made.devices], tmp_path / "fat")
    assert (joined.path, joined.libraries) == (f"{tmp_path}/fat/{wheel.name}", ("demo/a.so",))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": 20}, "level: is 20; expected a level from 1 to 19"),
        ({"scheme": "lzma"}, "scheme: is 'lzma'; expected one of none, zstd-per-kernel"),
    ],
)
def test_unknown_split_settings_are_refused(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(api.InputError, match=f"^{message}$"):
        api.split(tmp_path, tmp_path / "out", **settings)


def test_a_file_as_the_destination_is_refused(sample_dist: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(api.RocwheelError, match=re.escape(str(tmp_path / "file"))):
        api.repair([sample_dist / CORE], tmp_path / "file")


def test_the_example_program_builds_and_checks(tmp_path: Path) -> None:
    program = ROOT / "examples/python-api/package_sdk.py"
    command = [sys.executable, str(program), str(SAMPLE_SDK), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONUTF8": "1"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ROCm 7.0.0 for gfx906, gfx90a, gfx1030: 7 wheels\n")


def _example(name: str) -> str:
    found = re.search(r"```python\n(.*?)```", inspect.getdoc(getattr(api, name)) or "", re.DOTALL)
    assert found
    return textwrap.dedent(found[1])


def test_a_plan_with_targets_has_packages_only_for_these_targets() -> None:
    made = api.plan(SAMPLE_SDK, version="7.0.2", targets="gfx906")
    devices = [wheel.name.distribution for wheel in made.wheels if "device" in wheel.name.distribution]
    assert (made.version, devices) == ("7.0.2", ["rocm-sdk-device-gfx906"])


def test_packages_are_verified_and_compared(sample_dist: Path) -> None:
    (verified,) = api.verify(sample_dist / CORE)
    assert (verified.kind, verified.faults) == ("wheel", ())
    assert api.diff(sample_dist, sample_dist).findings == ()


def test_packages_are_published_to_a_folder(sample_dist: Path, tmp_path: Path) -> None:
    report = api.publish(sample_dist, str(tmp_path / "store"), dry_run=True)
    assert (report.is_dry_run, CORE in report.uploaded) == (True, True)


def test_targets_are_listed() -> None:
    assert [row.name for row in api.targets(["gfx906", "MI300X"])] == ["gfx906", "gfx942"]
