"""Development files on Windows: made of regular files and a manifest, without symlinks."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

from tests.sdk.devel.trees import member
from tests.sdk.installed import FROM_INDEX
from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.sdk.windows.windows_side import WindowsSite

DEVEL = "_rocm_sdk_devel"
LINKS = {
    "bin/amdhip64_7.dll": "_rocm_sdk_core/bin/amdhip64_7.dll",
    "bin/rocblas.dll": "_rocm_sdk_libraries/bin/rocblas.dll",
}


@pytest.fixture
def devel(site: WindowsSite) -> WindowsSite:
    """Return packages with development files that are not expanded yet: a header, and two DLLs of other packages."""
    site.write("rocm_sdk_devel/__init__.py")
    write_archive(site, {"include/hip.h": b"#pragma once\n"}, LINKS)
    return site


def write_archive(
    site: WindowsSite, files: Mapping[str, bytes], links: Mapping[str, str], *others: tarfile.TarInfo
) -> None:
    with tarfile.open(site.path / "rocm_sdk_devel/_devel.tar", "w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(f"{DEVEL}/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in others:
            archive.addfile(info)
    manifest = {"version": "7.2.0", "links": links}
    site.write("rocm_sdk_devel/_links.json", json.dumps(manifest).encode())


def expand(site: WindowsSite) -> Path:
    root: Path = site.load("rocm_sdk._devel").get_devel_root()
    return root


def fail(site: WindowsSite) -> str:
    """Return what an expansion says that fails, after checking that it left no part of a tree."""
    with pytest.raises(RuntimeError) as caught:
        expand(site)
    assert not (site.path / DEVEL).exists()
    assert (site.path / "rocm_sdk_devel/_devel.tar").exists()
    return str(caught.value)


def files_of(root: Path) -> list[str]:
    own = ("__init__.py", ".expanded.json")
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if not p.is_dir() and p.name not in own)


def test_files_of_other_packages_become_hard_links(devel: WindowsSite) -> None:
    root = expand(devel)
    assert files_of(root) == ["bin/amdhip64_7.dll", "bin/rocblas.dll", "include/hip.h"]
    assert all((root / path).samefile(devel.path / target) for path, target in LINKS.items())
    assert not any(path.is_symlink() for path in root.rglob("*"))


def test_files_are_copied_if_hard_links_are_not_possible(devel: WindowsSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    root = expand(devel)
    assert (root / "bin/rocblas.dll").stat().st_nlink == 1
    assert (root / "bin/rocblas.dll").read_bytes() == (devel.path / LINKS["bin/rocblas.dll"]).read_bytes()


def test_archive_symlinks_become_hard_links_in_any_member_order(devel: WindowsSite) -> None:
    # Given a link to a folder, one to a link, and one through the folder, all before the file
    links = (("llvm", "lib/llvm"), ("bin/hipcc.exe", "clang.exe"), ("bin/clang.exe", "../llvm/bin/clang.exe"))
    members = [member(f"{DEVEL}/{name}", tarfile.SYMTYPE, text) for name, text in links]
    write_archive(devel, {}, {}, *members, member(f"{DEVEL}/lib/llvm/bin/clang.exe"))
    root = expand(devel)
    names = ["bin/clang.exe", "bin/hipcc.exe", "lib/llvm/bin/clang.exe", "llvm/bin/clang.exe"]
    assert files_of(root) == names
    assert all((root / name).samefile(root / "lib/llvm/bin/clang.exe") for name in names)


def test_an_interrupted_expansion_starts_over(devel: WindowsSite, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a process that was killed, with part of the tree made and the lock in its hands
    devel.write("rocm_sdk_devel/.tree/bin/rocblas.dll", b"half of")
    (devel.path / DEVEL).mkdir()
    devel.calls.refusals = 2
    root = expand(devel)
    assert (root / "bin/rocblas.dll").samefile(devel.path / LINKS["bin/rocblas.dll"])
    assert devel.calls.asked[:5] == [
        *([("lock", "refused"), ("pause", "0.1")] * 2),
        ("lock", "byte 1073741824"),
    ]


def test_a_rename_blocked_by_a_scanner_is_retried(devel: WindowsSite, monkeypatch: pytest.MonkeyPatch) -> None:
    path_type = type(devel.path)
    rename, refusals = path_type.rename, [PermissionError(13, "The process cannot access the file")] * 2

    def refuse_first(self: Path, target: Path) -> Path:
        if refusals:
            raise refusals.pop()
        return rename(self, target)

    monkeypatch.setattr(path_type, "rename", refuse_first)
    assert files_of(expand(devel)) == ["bin/amdhip64_7.dll", "bin/rocblas.dll", "include/hip.h"]


def test_a_file_that_cannot_be_created_is_reported_with_a_remedy(
    devel: WindowsSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: object, target: object) -> None:
        raise PermissionError(13, "Access is denied", str(source), None, str(target))

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr("shutil.copy2", refuse)
    assert fail(devel) == (
        f"The ROCm development files can't be expanded in {devel.path} (Access is denied: "
        f"{devel.path}/_rocm_sdk_core/bin/amdhip64_7.dll). Run `rocm-sdk init` once, while no other program has open "
        "files there, as a user with write access and with enough free space, before you use the files read-only."
    )


def test_a_file_missing_from_its_package_is_reported(devel: WindowsSite) -> None:
    write_archive(devel, {}, {"bin/gone.dll": "_rocm_sdk_core/bin/gone.dll"})
    assert fail(devel) == (
        "The ROCm development files link to _rocm_sdk_core/bin/gone.dll, which the installed packages lack. "
        "All packages must have version 7.2.0; reinstall them together."
    )


def test_a_missing_package_is_reported_with_the_install_command(devel: WindowsSite) -> None:
    write_archive(devel, {}, {"bin/x.dll": "_rocm_profiler/bin/x.dll"})
    assert fail(devel) == (
        "The ROCm development files link to packages that are not installed: _rocm_profiler. "
        f'Install with: pip install "rocm[devel,profiler]==7.2.0" {FROM_INDEX}'
    )


@pytest.mark.parametrize(
    ("name", "what"),
    [
        (
            "lib/gfx90a:xnack+.co",
            "can't be created on Windows: 'gfx90a:xnack+.co' has ':', which Windows doesn't allow",
        ),
        (
            "lib\\..\\..\\x",
            "can't be created on Windows: 'lib\\\\..\\\\..\\\\x' has '\\\\', which Windows doesn't allow",
        ),
        ("include/AUX.h", "can't be created on Windows: 'AUX.h' is a Windows device name"),
        (
            "include/HIP.h",
            f"is the same as '{DEVEL}/include/hip.h' on Windows: only the case differs",
        ),
    ],
    ids=["colon", "backslash", "device", "case"],
)
def test_a_name_that_is_invalid_on_windows_is_refused(devel: WindowsSite, name: str, what: str) -> None:
    write_archive(devel, {"include/hip.h": b"", name: b""}, {})
    assert fail(devel) == (
        f"The archive of the ROCm development files has an unsafe member: {f'{DEVEL}/{name}'!r} {what}."
    )


@pytest.mark.parametrize(
    "links", [{"../x": "_rocm_sdk_core/x"}, {"x": "../x"}, {"x": "C:/x"}, {"x": 1}, {"x": "/etc/passwd"}], ids=str
)
def test_a_manifest_that_points_outside_the_tree_is_refused(devel: WindowsSite, links: dict[str, str]) -> None:
    write_archive(devel, {}, links)
    message = fail(devel)
    assert message.startswith(f"{devel.path}/rocm_sdk_devel/_links.json: has the path ")
    assert message.endswith(
        f'inside the tree. Reinstall: pip install "rocm[devel]==7.2.0" --force-reinstall {FROM_INDEX}'
    )


def test_a_device_package_file_is_copied_if_a_hard_link_is_not_possible(
    devel: WindowsSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = expand(devel)
    kernels = "bin/rocblas/library/kernels_gfx1151.co"
    devel.write(f"_rocm_sdk_libraries/{kernels}", b"code")
    manifest = {"version": "7.2.0", "links": [{"relpath": kernels, "target": ""}]}
    devel.write("_rocm_sdk_libraries/.devel_links/gfx1151.json", json.dumps(manifest).encode())

    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    expand(devel)
    assert (root / kernels).read_bytes() == b"code"
    assert not (root / kernels).is_symlink()


KILLER = """if True:
    import os, signal, sys
    from pathlib import Path
    from rocm_sdk._platform import Windows, use_platform
    from tests.sdk.windows.windows_side import Recorder
    use_platform(Windows(Recorder(Path("System32"))))
    from rocm_sdk._devel import get_devel_root
    import rocm_sdk._devel_expansion, tarfile, lzma
    steps = int(sys.argv[1])
    def count(event, arguments):
        global steps
        if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link"):
            steps -= 1
            if steps < 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(count)
    get_devel_root()
"""


@pytest.mark.deep
@pytest.mark.slow
def test_the_next_process_repairs_the_tree_after_a_kill_at_any_step(devel: WindowsSite) -> None:
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(devel.path), str(ROOT)])}
    step, status = 0, -signal.SIGKILL
    while status == -signal.SIGKILL:
        # Each process goes a step further than the one before, from whatever that left.
        command = [sys.executable, "-c", KILLER, str(step)]
        status = subprocess.run(command, env=variables, check=False, capture_output=True).returncode
        root = devel.path / DEVEL
        assert not (root / ".expanded.json").exists() or len(files_of(root)) == 3
        step += 1
    assert (status, step > 20) == (0, True)
    assert files_of(expand(devel)) == ["bin/amdhip64_7.dll", "bin/rocblas.dll", "include/hip.h"]
    assert not (devel.path / "rocm_sdk_devel/.tree").exists()


def test_tree_paths_have_no_extended_prefix(devel: WindowsSite) -> None:
    assert str(expand(devel)) == f"{devel.path}/{DEVEL}"
