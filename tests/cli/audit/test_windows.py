"""``rocwheel audit`` on packages for Windows, as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.demo import SAMPLE_WINDOWS
from tests.support.command_line import rocwheel
from tests.support.loopback import served
from tests.support.pe_files import ARM64, pe_file

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run
    from tests.support.dask_clusters import DaskCluster

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_an_empty_folder")]

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


def test_the_packages_of_the_sample_have_nothing_wrong(run: Run, sample: Path) -> None:
    finished = run("audit", sample)
    assert (finished.status, "0 errors, 0 warnings, 0 notes" in finished.stdout) == (0, True), finished.stdout


def test_split_dlls_lead_to_their_archives_where_these_are_given(run: Run, sample: Path, tmp_path: Path) -> None:
    (wheel,) = sample.glob("rocm_sdk_libraries-*.whl")
    assert run("device", "split", wheel, "--dest-dir", tmp_path / "split", "--quiet").status == 0
    closed = ("--closed", "--select", "image-*", "--json")
    together = run("audit", tmp_path / "split", *closed)
    assert json.loads(together.stdout)["findings"] == []
    alone = run("audit", tmp_path / "split" / wheel.name, *closed)
    assert {(one["rule"], one["path"]) for one in json.loads(alone.stdout)["findings"]} == {
        ("image-archives", "_rocm_sdk_libraries/bin/rocrand.dll"),
        ("image-archives", "_rocm_sdk_libraries/bin/rocsparse.dll"),
    }


def test_artifacts_show_the_plugins_that_packages_leave_out(run: Run) -> None:
    finished = run("audit", SAMPLE_WINDOWS, "--json")
    rules = {(one["rule"], one["path"]) for one in json.loads(finished.stdout)["findings"]}
    assert rules == {
        ("dll-unreachable", "bin/test_plugins/custom/test_good_plugin.dll"),
        ("import-library", "lib/libhipblaslt.dll.a"),
    }


def test_every_fault_is_told_and_none_ends_the_run(run: Run, faulty: Path) -> None:
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


def test_code_scanning_gets_the_same_findings(run: Run, faulty: Path, tmp_path: Path) -> None:
    run("audit", faulty, "--select", "dll-*", "--sarif", tmp_path / "found.sarif")
    (result,) = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("dll-missing", "error")


def test_a_baseline_keeps_a_finding_known(run: Run, faulty: Path) -> None:
    known = ("--baseline", "known.json", "--select", "dll-*")
    assert run("audit", faulty, *known, "--update-baseline").status == 0
    assert run("audit", faulty, *known).status == 0


def test_packages_at_a_url_have_the_same_findings(run: Run, faulty: Path) -> None:
    local = run("audit", faulty, "--json", "--quiet")
    with served(faulty) as address:
        remote = run("audit", f"{address}/{WHEEL}", "--json", "--quiet")
    assert findings(remote.stdout) == findings(local.stdout)


def test_workers_of_a_cluster_have_the_same_findings(faulty: Path, dask_cluster: DaskCluster) -> None:
    here = rocwheel("audit", faulty, "--json", "-q")
    there = rocwheel("audit", faulty, "--json", "-q", "--scheduler", dask_cluster.address)
    assert (there.returncode, there.stdout) == (1, here.stdout)


@pytest.mark.parametrize("command", ["report", "diff"])
def test_other_commands_name_what_is_damaged_and_tell_of_all_else(
    run: Run, sample: Path, faulty: Path, command: str
) -> None:
    paths = [sample, faulty] if command == "diff" else [faulty]
    finished = run(command, *paths, "--json", "--quiet")
    assert finished.status == 2
    assert {line for line in finished.stderr.splitlines() if "cut.dll" in line}
    assert "demo/a.dll" in finished.stdout


def test_verify_compares_files_with_record_whatever_they_are(run: Run, sample: Path, faulty: Path) -> None:
    assert run("verify", sample, "--quiet").status == 0
    assert run("verify", faulty, "--quiet").status == 1
