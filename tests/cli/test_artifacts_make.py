"""``rocwheel artifacts fetch``, ``from-deb``, ``from-prefix`` and ``merge``."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.archives import ArchiveFormat
from rocwheel.artifacts.transfer import archive_artifacts
from rocwheel.stores.open import open_store
from rocwheel.wheels.sdist import SourceDate
from tests.support.command_line import as_user, needs_setpriv, rocwheel
from tests.support.kpack_files import by_hand, make_kpack, toc
from tests.support.loopback import served
from tests.support.s3_server import BUCKET

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run
    from tests.support.s3_server import S3Server


@pytest.fixture
def archives(artifacts: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "archives"
    archive_artifacts(artifacts, folder, (), ArchiveFormat.ZST, SourceDate.from_environment({}))
    return folder


@pytest.mark.slow
def test_fetch_gets_the_archives_for_a_build_from_a_server(archives: Path, tmp_path: Path) -> None:
    with served(archives) as address:
        done = rocwheel("artifacts", "fetch", address, "--targets", "gfx906,gfx90a", "--output", tmp_path / "here")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.endswith("has no artifact that serves gfx906. Available: gfx90a:xnack+.\n")
        assert not (tmp_path / "here").exists()
        words = ("artifacts", "fetch", address, "--components", "lib", "--output", tmp_path / "here")
        assert json.loads(rocwheel(*words, "--dry-run", "--json").stdout)["archives"][0]["name"] == (
            "blas_lib_generic.tar.zst"
        )
        assert not (tmp_path / "here").exists()
        done = rocwheel(*words)
        assert (done.returncode, done.stdout) == (
            0,
            "2 archives fetched, 0 already present\nverified only by size: 2 archives\n",
        )
    listed = rocwheel("artifacts", "list", tmp_path / "here", "--json", "--quiet")
    assert [one["artifact"] for one in json.loads(listed.stdout)["artifacts"]] == [
        "blas_lib_generic",
        "blas_lib_gfx90a:xnack+",
    ]


@pytest.mark.slow
def test_fetch_gets_the_archives_for_a_build_from_s3(archives: Path, tmp_path: Path, run: Run, s3: S3Server) -> None:
    store = open_store(f"s3://{BUCKET}/12345-linux")
    for path in archives.iterdir():
        store.put(path.name, path)
    words = ("artifacts", "fetch", f"s3://{BUCKET}/12345-linux", "--targets", "gfx90a", "-o", tmp_path / "here")
    assert run(*words).stdout.startswith("3 archives fetched, 0 already present\n")
    assert run(*words).stdout.startswith("0 archives fetched, 3 already present\n")
    assert all((tmp_path / "here" / path.name).read_bytes() == path.read_bytes() for path in archives.iterdir())


@pytest.mark.slow
def test_a_missing_location_is_an_error(tmp_path: Path) -> None:
    done = rocwheel("artifacts", "fetch", tmp_path / "none", "--output", tmp_path / "here")
    assert done.returncode in {1, 2}
    assert done.stderr.startswith(f"error: {tmp_path}/none")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_killed_fetch_leaves_only_complete_archives_and_can_be_resumed(archives: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    large = archives / "blas_dev_generic.tar.zst"
    with large.open("ab") as file:
        file.truncate(1 << 28)
    command = [sys.executable, "-m", "rocwheel", "artifacts", "fetch", str(archives), "--output", str(here), "-q"]
    with subprocess.Popen(command) as process:
        part = here / f".{large.name}.rocwheel-part"
        limit = time.monotonic() + 60
        while not (part.exists() and part.stat().st_size) and time.monotonic() < limit:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert not (here / large.name).exists()
    assert all(path.stat().st_size == (archives / path.name).stat().st_size for path in here.glob("[a-z]*"))
    done = rocwheel(*command[3:])
    assert done.returncode == 0, done.stderr
    assert (here / large.name).stat().st_size == 1 << 28
    assert sorted(path.name for path in here.iterdir()) == sorted(path.name for path in archives.iterdir())
    shutil.rmtree(here)


run = partial(rocwheel, "artifacts")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb makes the package, and is not installed")
def test_packages_can_be_imported_with_a_custom_table(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        "Package: tool\nVersion: 3.1-2\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: text\n"
    )
    (root / "opt").mkdir()
    (root / "opt/tool").write_text("tool")
    subprocess.run(["dpkg-deb", "--build", root, tmp_path / "tool.deb"], check=True, stdout=subprocess.PIPE)
    table = tmp_path / "table.toml"
    table.write_text(
        "base_libraries = []\ncomponent = []\nversion_from = ['tool']\n"
        "[[artifact]]\nname = 'tools'\npackages = ['tool']\n[[place]]\nfrom = 'opt'\nto = 'bin'\n"
    )

    finished = run("import", tmp_path / "tool.deb", "--output", tmp_path / "a", "--table", table)

    assert finished.returncode == 0, finished.stderr
    assert "SDK version: 3.1" in finished.stdout.splitlines()
    assert (tmp_path / "a/tools_run_generic/tools/stage/bin/tool").read_text() == "tool"


@pytest.mark.slow
def test_a_file_that_is_not_a_package_is_refused_with_the_cause(tmp_path: Path) -> None:
    bad = tmp_path / "bad.deb"
    bad.write_text("rubbish")

    finished = run("import", bad, "--output", tmp_path / "artifacts")

    assert finished.returncode == 2
    assert finished.stderr == f"error: {bad}: is not an ar archive; expected a Debian package (.deb)\n"


run_from_prefix = partial(rocwheel, "artifacts")


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    root = tmp_path / "rocm"
    (root / "bin").mkdir(parents=True)
    (root / "bin/hipcc").write_text("#!/usr/bin/perl\n")
    (root / "bin/absent").symlink_to("nowhere")
    (root / "unknown").write_text("?")
    return root


@pytest.mark.slow
def test_import_reports_its_output_and_the_required_programs(prefix: Path, tmp_path: Path) -> None:
    finished = run_from_prefix("import", prefix, "--output", tmp_path / "artifacts", "-v")

    assert finished.returncode == 0
    assert [line.split() for line in finished.stdout.splitlines() if "_run_" in line] == [
        ["amd-llvm_run_generic", "1", "0", "16"],
        ["unsorted_run_generic", "1", "0", "1"],
    ]
    assert finished.stdout.endswith(
        "dropped links to files that aren't in the sources: 1\n"
        "  bin/absent\n"
        "files that match no rule, added to the catch-all artifact: 2\n"
        "  bin/absent\n"
        "  unknown\n"
        "programs required from the system:\n"
        "  /usr/bin/perl  for bin/hipcc\n"
    )


@pytest.mark.slow
def test_lists_are_summarized_as_counts_unless_requested(prefix: Path, tmp_path: Path) -> None:
    finished = run_from_prefix("import", prefix, "--output", tmp_path / "artifacts")

    assert "files that match no rule, added to the catch-all artifact: 2 (-v lists them)\n" in finished.stdout
    assert "  unknown\n" not in finished.stdout


@pytest.mark.slow
def test_the_report_is_available_as_json(prefix: Path, tmp_path: Path) -> None:
    finished = run_from_prefix("import", prefix, "--output", tmp_path / "artifacts", "--json", "--quiet")

    report = json.loads(finished.stdout)
    assert finished.stderr == ""
    assert report["schema"] == "rocwheel.artifact-import/1"
    assert report["artifacts"] == [
        {"name": "amd-llvm_run_generic", "files": 1, "links": 0, "size": 16},
        {"name": "unsorted_run_generic", "files": 1, "links": 0, "size": 1},
    ]
    assert report["programs"] == [{"name": "/usr/bin/perl", "needed_by": ["bin/hipcc"]}]


@pytest.mark.slow
def test_a_strict_import_of_unknown_files_fails(prefix: Path, tmp_path: Path) -> None:
    finished = run_from_prefix("import", prefix, "--output", tmp_path / "artifacts", "--strict", "--quiet")

    assert (finished.returncode, finished.stdout) == (2, "")
    assert f"unknown in {prefix}: does not match any rule in the table." in finished.stderr


@pytest.mark.slow
@needs_setpriv
def test_all_unreadable_files_and_folders_are_reported_together(prefix: Path, tmp_path: Path) -> None:
    for name in ("lib", "share"):
        (prefix / name).mkdir(mode=0)
    (prefix / "bin/hipcc").chmod(0)
    dest = tmp_path / "artifacts"
    finished = run_from_prefix("import", prefix, "--output", dest, before=as_user())
    (prefix / "lib").rmdir()
    (prefix / "share").rmdir()
    alone = run_from_prefix("import", prefix, "--output", dest, before=as_user())

    found = "contains 3 files and folders that can't be read (Permission denied): bin/hipcc, lib, share"
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr == f"error: {prefix}: {found}. Run the import as a user who can read these files.\n"
    reason = "can't be read (Permission denied). Check whether it exists and is readable."
    assert (alone.returncode, alone.stderr) == (2, f"error: {prefix}/bin/hipcc: {reason}\n")
    assert not dest.exists()


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make two builds, ``a`` and ``b``, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for shard, target in (("a", "gfx942"), ("b", "gfx1100")):
        for artifact, path, content in (
            ("blas_lib_generic", "lib/librocblas.so", b"host"),
            (f"blas_lib_{target}", f"lib/rocblas/library/{target}/x.dat", target.encode()),
        ):
            stage = tmp_path / shard / artifact / "stage"
            (stage / path).parent.mkdir(parents=True)
            (stage / path).write_bytes(content)
            (stage.parent / "artifact_manifest.txt").write_text("stage\n")


@pytest.mark.usefixtures("shards")
def test_a_merge_is_reported_as_a_table(run: Run, tmp_path: Path) -> None:
    status, stdout, _ = run("artifacts", "merge", "a", "b", "--primary", "a", "--output", "out")

    assert status == 0
    rows = [line.split() for line in stdout.splitlines() if "blas_lib" in line]
    assert rows == [
        ["blas_lib_generic", "1", "4", "a"],
        ["blas_lib_gfx1100", "1", "7", "b"],
        ["blas_lib_gfx942", "1", "6", "a"],
    ]
    assert stdout.endswith("targets: gfx1100, gfx942\nwritten to out\n")
    assert (tmp_path / "out/blas_lib_gfx1100/stage/lib/rocblas/library/gfx1100/x.dat").read_bytes() == b"gfx1100"


@pytest.mark.usefixtures("shards")
def test_a_dry_run_writes_nothing(run: Run, tmp_path: Path) -> None:
    status, stdout, _ = run("artifacts", "merge", "a", "b", "--primary", "b", "-o", "out", "--dry-run", "--json")

    report = json.loads(stdout)
    assert status == 0
    assert (report["schema"], report["primary"], report["dest_dir"]) == ("rocwheel.artifact-merge/1", "b", "")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("shards")
def test_an_output_folder_inside_a_shard_is_refused_before_reading(run: Run, tmp_path: Path) -> None:
    status, stdout, stderr = run("artifacts", "merge", "a", "b", "--primary", "a", "--output", "b/out", "--dry-run")

    assert (status, stdout) == (2, "")
    assert stderr == "error: b/out: is a folder in b, which this command copies; expected a folder outside b\n"
    assert not (tmp_path / "b/out").exists()


@pytest.mark.usefixtures("shards")
def test_different_host_files_are_an_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "b/blas_lib_generic/stage/lib/librocblas.so").write_bytes(b"other")

    status, stdout, stderr = run("artifacts", "merge", "a", "b", "--primary", "a", "--output", "out")

    assert (status, stdout) == (2, "")
    assert "b/blas_lib_generic/stage/lib/librocblas.so: differs from a/blas_lib_generic/stage/lib/" in stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("shards")
def test_an_accepted_difference_is_listed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "b/blas_lib_generic/stage/lib/librocblas.so").write_bytes(b"other")

    arguments = ("artifacts", "merge", "a", "b", "--primary", "a", "--output", "out", "--may-differ", "lib/*.so")
    status, stdout, _ = run(*arguments, "-v")

    assert status == 0
    assert "host files that differ: 1\n  lib/librocblas.so in b (bytes): primary's\n" in stdout


KERNEL = "stage/lib/rocblas/library/x_gfx942.co"


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    stage = next(folder for folder in path.parents if folder.name == "stage")
    stage.with_name("artifact_manifest.txt").write_text("stage\n")


@pytest.mark.usefixtures("shards")
@pytest.mark.parametrize(
    ("path", "contents", "found"),
    [
        pytest.param(KERNEL, (b"1", b"2"), "differs from a/blas_lib_gfx942/stage/", id="conflicting kernels"),
        pytest.param(
            "stage/.kpack/x_gfx942.kpack",
            (b"", make_kpack({("lib/x.so", 0, "gfx906"): b"code"})),
            "is named for gfx942, but contains code for gfx906",
            id="a name that lies",
        ),
        pytest.param(
            "stage/.kpack/x_gfx942.kpack",
            (b"", make_kpack({("lib/x.so", 0, "gfx942"): b"code"})[:-9]),
            "x_gfx942.kpack: offset 0x",
            id="truncated",
        ),
        pytest.param(
            "stage/.kpack/x_gfx942.kpack", (b"", by_hand(toc(), version=2)), ("offset 0x4: a kpack archive with "
                "version 2"),
            id="another version",
        ),
    ],
)  # fmt: skip
def test_a_bad_file_in_a_shard_is_reported_and_nothing_is_written(
    run: Run, tmp_path: Path, path: str, contents: tuple[bytes, bytes], found: str
) -> None:
    for shard, content in zip(("a", "b"), contents, strict=True):
        if content:
            write(tmp_path / shard / "blas_lib_gfx942" / path, content)
    status, _, stderr = run("artifacts", "merge", "a", "b", "--primary", "a", "--output", "out")
    assert (status, found in stderr, f"b/blas_lib_gfx942/{path}" in stderr) == (2, True, True), stderr
    assert sorted(made.name for made in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.usefixtures("shards")
def test_a_target_that_a_shard_declares_but_lacks_is_reported(run: Run, tmp_path: Path) -> None:
    for shard, targets in (("a", "gfx942;gfx950"), ("b", "gfx1100")):
        text = json.dumps({"dist_amdgpu_targets": targets}).encode()
        write(tmp_path / shard / "base_lib_generic/stage/share/therock/dist_info.json", text)
    status, _, stderr = run("artifacts", "merge", "a", "b", "--primary", "a", "--output", "out")
    assert (status, "lists gfx950, but a has no files for it; expected a file" in stderr) == (2, True)
    assert not (tmp_path / "out").exists()
    command = ("artifacts", "merge", "a", "b", "--primary", "a", "--output", "out", "--allow-missing")
    status, stdout, _ = run(*command)
    assert (status, "a has no files for gfx950, even though dist_info.json lists this target" in stdout) == (0, True)
