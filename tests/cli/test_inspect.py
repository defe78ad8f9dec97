"""Tests of the inspect command."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tracemalloc
import zipfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import installer._scripts
import pytest

from rocwheel.device.inspection import FileFacts, inspect_paths
from tests.support.command_line import as_user, needs_setpriv, rocwheel
from tests.support.debs import write_deb
from tests.support.kpack_files import split_two
from tests.support.libraries import needs_compiler
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow


LIBRARY = FIXTURES / "v22/libtwo.plain.so"
NOT_A_BINARY = "not a binary; expected an ELF or PE file, an archive, a bundle, a kpack archive, a folder, or a wheel"


@pytest.fixture
def run(run: Run) -> Run:
    """Return a function that runs ``rocwheel inspect``."""
    return partial(run, "inspect")


@pytest.mark.parametrize(
    ("name", "readers"),
    [
        ("v18/saxpy.ccob.hipfb", ", which no ROCm release can read"),
        ("v19/saxpy.ccob.hipfb", ", for ROCm 6.2 and later"),
        ("v22/libtwo.ccob.so", ", for ROCm 7.1 and later"),
        ("v22/saxpy.hipfb", " kB"),
    ],
)
def test_the_rocm_releases_that_can_read_a_compressed_bundle_are_listed(run: Run, name: str, readers: str) -> None:
    (line,) = (line for line in run(FIXTURES / name)[1].splitlines() if "bundle" in line and line.startswith("  "))
    assert line.endswith(readers)


def test_a_fat_binary_is_described(run: Run) -> None:
    status, out, err = run(LIBRARY)
    assert (status, err) == (0, "")
    assert [line.rstrip() for line in out.splitlines()] == [
        f"{LIBRARY}: 46.6 kB",
        "  shared object",
        "  fat binary, 2 bundles, 33.8 kB",
        "target             size    in the file    kernels    bundles    missing from",
        "gfx906           7.1 kB         7.1 kB          2          2",
        "gfx90a:xnack+    9.2 kB         9.2 kB          2          2",
        "gfx1030          7.3 kB         7.3 kB          2          2",
    ]


def test_a_dll_is_described(run: Run) -> None:
    library = FIXTURES / "pe/api7.dll"
    status, out, err = run(library, "-v")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        f"{library}: 4.1 kB",
        "  DLL api.dll for x86-64 version 7.2.26015.3",
        "  imports when called dep6.dll",
        "  exports 2 names",
    ]


def test_a_dll_is_described_in_json(run: Run) -> None:
    _, out, _ = run(FIXTURES / "pe/api7.dll", FIXTURES / "pe/two.dll", "--json")
    api, two = json.loads(out)["files"]
    assert api["pe"] == {
        "kind": "DLL",
        "machine": "x86-64",
        "name": "api.dll",
        "imports": [],
        "delay_imports": ["dep6.dll"],
        "exports": 2,
        "version": "7.2.26015.3",
        "is_signed": False,
    }
    assert (api["elf"], api["device"]) == (None, None)
    assert two["device"]["targets_in_all_bundles"] == ["gfx906", "gfx90a:xnack+", "gfx1030"]


def test_a_truncated_dll_is_reported(run: Run, tmp_path: Path) -> None:
    library = tmp_path / "a.dll"
    library.write_bytes((FIXTURES / "pe/two.dll").read_bytes()[:0x900])
    status, _, err = run(library)
    assert status == 2
    assert err.startswith(f"error: {library}: the section .hipFatB would span 0x800 to 0xa00, but the file ends at")


def test_a_32_bit_program_is_reported_but_not_parsed(run: Run) -> None:
    launcher = Path(installer._scripts.__path__[0], "t32.exe")
    status, out, err = run(launcher)
    assert (status, err) == (0, "")
    assert out.splitlines()[1:] == ["  32-bit DLL or program"]


def test_kernels_of_compressed_bundles_are_counted_with_deep(run: Run) -> None:
    _, out, _ = run(FIXTURES / "v22/libtwo.ccob.so", "--json")
    _, deep, _ = run(FIXTURES / "v22/libtwo.ccob.so", "--json", "--deep")
    kernels = [[target["kernels"] for target in json.loads(t)["files"][0]["device"]["targets"]] for t in (out, deep)]
    assert kernels == [[None] * 3, [2, 2, 2]]


def test_common_and_missing_targets_of_the_bundles_are_reported(run: Run, tmp_path: Path) -> None:
    both = tmp_path / "both.fatbin"
    both.write_bytes((FIXTURES / "v16/saxpy.hipfb").read_bytes() + (FIXTURES / "v22/saxpy.hipfb").read_bytes())
    _, out, _ = run(both, "--json")
    device = json.loads(out)["files"][0]["device"]
    assert device["targets_in_all_bundles"] == ["gfx906", "gfx90a:xnack+", "gfx90a:xnack-", "gfx1030", "gfx1100"]
    assert {target["target"]: target["missing"] for target in device["targets"] if target["missing"]} == {"gfx942": 1}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_binaries_in_a_wheel_are_found(run: Run, tmp_path: Path, method: int) -> None:
    wheel = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", method) as archive:
        archive.writestr("x/__init__.py", "")
        archive.write(LIBRARY, "x/libtwo.so")
    status, out, _ = run(wheel, "--json")
    [file] = json.loads(out)["files"]
    assert (status, file["path"], file["size"]) == (0, f"{wheel}!x/libtwo.so", LIBRARY.stat().st_size)
    assert [bundle["offset"] for bundle in file["device"]["bundles"]] == [0x1000, 0x6000]


def test_binaries_in_a_folder_are_found_and_other_files_are_skipped(run: Run, tmp_path: Path) -> None:
    (tmp_path / "readme").write_text("no binary")
    shutil.copy(LIBRARY, tmp_path / "b.so")
    shutil.copy(FIXTURES / "v22/saxpy.hipfb", tmp_path / "a.co")
    _, out, _ = run(tmp_path, "--json")
    assert [Path(file["path"]).name for file in json.loads(out)["files"]] == ["a.co", "b.so"]


def test_unreadable_files_do_not_stop_the_report_on_others(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.so", "b.so", "locked/c.so"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(LIBRARY, tmp_path / name)
    refuse_to_open(monkeypatch, tmp_path / "a.so", tmp_path / "locked")
    status, out, err = run(tmp_path)
    assert (status, f"{tmp_path}/b.so: 46.6 kB" in out) == (2, True)
    assert err.splitlines() == [
        "error: Files that can't be read: 2 problems",
        f"  {tmp_path}/a.so: can't be read (Permission denied). Check whether it exists and is readable.",
        f"  {tmp_path}/locked: can't be read (Permission denied)",
    ]
    _, out, _ = run(tmp_path, "--json")
    assert [bool(file["error"]) for file in json.loads(out)["files"]] == [True, False, True]


def refuse_to_open(monkeypatch: pytest.MonkeyPatch, file: Path, folder: Path) -> None:
    """Refuse a file and a folder as the kernel does without permission, which root always has."""
    refuse = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    open_file, scan = os.open, os.scandir

    def open_or_refuse(path: str | Path, *arguments: Any, **options: Any) -> int:
        if Path(path) == file:
            raise refuse
        return open_file(path, *arguments, **options)

    def scan_or_refuse(path: str | Path | int) -> Any:
        if not isinstance(path, int) and Path(path) == folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scan(path)

    monkeypatch.setattr(os, "open", open_or_refuse)
    monkeypatch.setattr(os, "scandir", scan_or_refuse)


@needs_setpriv
def test_files_of_a_listable_but_inaccessible_folder_are_reported(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    shutil.copy(LIBRARY, tmp_path / "closed/a.so")
    shutil.copy(LIBRARY, tmp_path / "b.so")
    (tmp_path / "closed").chmod(0o400)
    done = rocwheel("inspect", tmp_path, tmp_path / "closed/a.so", before=as_user())
    (tmp_path / "closed").chmod(0o755)
    assert (done.returncode, f"{tmp_path}/b.so: 46.6 kB" in done.stdout) == (2, True)
    problem = f"  {tmp_path}/closed/a.so: can't be read (Permission denied). Check whether it exists and is readable."
    assert done.stderr.splitlines() == ["error: Files that can't be read: 2 problems", problem, problem]


def test_a_path_that_is_too_long_is_an_error(run: Run) -> None:
    name = "x" * 300
    message = f"error: {name}: can't be read (File name too long). Check whether it exists and is readable.\n"
    assert run(name) == (2, "", message)


def test_a_library_with_an_appended_zip_archive_is_a_library(run: Run, tmp_path: Path) -> None:
    wheel, library = tmp_path / "x.zip", tmp_path / "libx.so"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("readme", "text")
    library.write_bytes(LIBRARY.read_bytes() + wheel.read_bytes())
    assert zipfile.is_zipfile(library)
    status, out, err = run(library)
    assert (status, err) == (0, "")
    assert "  fat binary, 2 bundles, 33.8 kB" in out.splitlines()


def test_a_path_without_binaries_does_not_stop_the_report_on_others(run: Run, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    status, out, err = run(tmp_path / "text", LIBRARY)
    assert (status, f"{LIBRARY}: 46.6 kB" in out) == (2, True)
    assert err.startswith(f"error: {tmp_path}/text: not a binary; expected ")


def test_a_file_that_is_not_a_binary_has_its_size_in_json(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    (facts,) = inspect_paths([tmp_path / "text"])
    assert (facts.size, str(facts.error)) == (4, f"{tmp_path}/text: {NOT_A_BINARY}")


def test_a_pipe_is_refused_without_blocking(run: Run, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    status, _, errors = run(pipe)
    assert status == 2
    assert f"{pipe}: isn't a regular file; expected a binary, a folder, or a wheel" in errors


def test_wheels_in_a_folder_are_opened(run: Run, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x-1.0-py3-none-any.whl", "w") as wheel:
        wheel.write(LIBRARY, "x/libtwo.so")
    status, output, _ = run(tmp_path)
    assert status == 0
    assert "x-1.0-py3-none-any.whl!x/libtwo.so: " in output


def test_inconsistent_device_code_produces_a_warning_and_exit_status_1(run: Run) -> None:
    path = FIXTURES / "edge/zlib.v3.badhash.ccob"
    assert run(path)[0] == 0
    status, _, err = run(path, "--deep")
    hashes = "its header has the hash 0000000000000000, but its content has ceddc72cae1760d9"
    assert (status, err) == (1, f"warning: {path}: bundle 0 at offset 0x0: {hashes}\n")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            (FIXTURES / "edge/v3.pad1.ccob").read_bytes(),
            "bundle 0 at offset 0xa18: 1 byte after the compressed bundle, which LLVM's bundler rejects",
        ),
        (
            (FIXTURES / "edge/zlib.v2.ccob").read_bytes() + bytes(3),
            "bundle 0 at offset 0xb13: 3 bytes after the compressed bundle",
        ),
        (
            (FIXTURES / "v22/saxpy.hipfb").read_bytes().replace(b"--gfx906", b"--gfx908", 1),
            "bundle 0 at offset 0x0: the entry 'hipv4-amdgcn-amd-amdhsa--gfx908' contains code for gfx906",
        ),
    ],
    ids=["trailing byte", "trailing bytes, zlib", "other processor"],
)
def test_bundles_that_other_tools_misread_are_reported(run: Run, tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "x.hipfb"
    path.write_bytes(content)
    status, _, err = run(path)
    assert (status, err.splitlines()[0]) == (1, f"warning: {path}: {problem}")


def test_a_code_object_with_an_invalid_processor_is_reported(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.co"
    data = bytearray((FIXTURES / "elf/gfx906.co").read_bytes())
    data[0x30:0x34] = (0xFF).to_bytes(4, "little")
    path.write_bytes(data)
    found = "a code object whose flags 0xff don't identify a processor"
    status, _, err = run(path)
    assert (status, err) == (1, f"warning: {path}: offset 0x0: {found}\n")


def test_the_needed_line_is_omitted_for_a_library_without_dependencies(run: Run) -> None:
    assert "NEEDED" not in run(LIBRARY, "-v")[1]


def test_control_characters_in_names_are_not_printed_to_the_terminal(run: Run, tmp_path: Path) -> None:
    shutil.copy(LIBRARY, tmp_path / "\x1b]0;sound\x07.so")
    (tmp_path / "\x1b[31mdamaged.so").write_bytes(LIBRARY.read_bytes()[:9000])
    _, out, err = run(tmp_path)
    assert out.startswith(f"{tmp_path}/\\x1b]0;sound\\x07.so: ")
    assert err.startswith(f"error: {tmp_path}/\\x1b[31mdamaged.so: ")
    assert "\x1b" not in out + err


def test_debian_packages_are_refused_even_in_a_folder(run: Run, tmp_path: Path) -> None:
    path = write_deb(tmp_path, "librocsparse0", {})
    error = f"{path}: a Debian package, which 'dpkg-deb --extract' unpacks; expected an ELF or PE file, "
    for given in (path, tmp_path):
        status, out, err = run(given)
        assert (status, out, err.startswith(f"error: {error}")) == (2, "", True)


def test_a_thin_archive_is_reported(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "libx.a"
    path.write_bytes(b"!<thin>\n")
    status, _, err = run(path)
    assert (status, err.startswith(f"error: {path}: a thin archive; expected an ELF or PE file, ")) == (2, True)


def test_a_bundle_too_large_to_check_is_reported() -> None:
    path = FIXTURES / "v22/saxpy.ccob.hipfb"
    [facts] = inspect_paths([path], deep=True, limit=37431)
    found = "the bundle wasn't read, because it contains 37432 bytes, more than the limit of 37431"
    assert facts.device is not None
    assert facts.device.problems == (f"{path}: bundle 0 at offset 0x0: {found}",)


def test_a_bundle_that_expands_too_far_does_not_stop_the_inspection_of_others(run: Run, tmp_path: Path) -> None:
    bomb, good = tmp_path / "a.hipfb", tmp_path / "b.hipfb"
    shutil.copy(FIXTURES / "edge/big.22.ccob", bomb)
    shutil.copy(FIXTURES / "v22/saxpy.hipfb", good)
    status, out, err = run(tmp_path)
    assert (status, str(good) in out) == (2, True)
    assert err.startswith(f"error: {bomb}: bundle 0 at offset 0x0: 140964 bytes that decompress to 4613738496 bytes; ")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("v22/saxpy.hipfb", "  1 bundle, 37.4 kB"),
        ("edge/two.plain.fatbin", "  2 bundles, 33.8 kB"),
        ("v22/libtwo.rdc.so", "  fat binary, 1 bundle, 2 wrappers, 25.8 kB"),
        ("v22/libtwo.plain.so", "  fat binary, 2 bundles, 33.8 kB"),
        ("v19/saxpy.rdc.o", "  object file, 12.4 kB"),
    ],
)
def test_each_container_is_summarized_on_one_line(run: Run, name: str, line: str) -> None:
    assert line in run(FIXTURES / name)[1].splitlines()


def test_damaged_files_are_reported_after_the_intact_ones(run: Run, tmp_path: Path) -> None:
    shutil.copy(LIBRARY, tmp_path / "b.so")
    (tmp_path / "a.so").write_bytes(LIBRARY.read_bytes()[:9000])
    status, out, err = run(tmp_path)
    assert status == 2
    assert f"{tmp_path}/b.so: 46.6 kB" in out
    assert err.startswith(f"error: {tmp_path}/a.so: ")
    assert "but the file ends at 0x2328; expected a whole ELF file" in err


def _damage_stream(data: bytearray, info: zipfile.ZipInfo) -> None:
    data[info.header_offset + 30 + len(info.filename)] = 0xFF


def _encrypt(data: bytearray, _: zipfile.ZipInfo) -> None:
    data[data.index(b"PK\x01\x02") + 8] |= 1


def _promise_less(data: bytearray, _: zipfile.ZipInfo) -> None:
    start = data.index(b"PK\x01\x02") + 24
    data[start : start + 4] = (1000).to_bytes(4, "little")


def _promise_more_than_fits(data: bytearray, _: zipfile.ZipInfo) -> None:
    start = data.index(b"PK\x01\x02") + 16
    data[start : start + 4] = bytes(4)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_damage_stream, "!x/libtwo.so: can't be unpacked ("),
        (_encrypt, "!x/libtwo.so: is encrypted; expected a stored or deflated member, which installers can read"),
        (_promise_less, "!x/libtwo.so: "),
        (_promise_more_than_fits, "!x/libtwo.so: "),
    ],
    ids=["deflate", "encrypted", "larger", "checksum"],
)
def test_a_damaged_member_is_one_error_and_other_files_are_reported(
    run: Run, tmp_path: Path, damage: Callable[[bytearray, zipfile.ZipInfo], None], message: str
) -> None:
    wheel = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(LIBRARY, "x/libtwo.so")
        archive.write(LIBRARY, "x/other.so")
    data = bytearray(wheel.read_bytes())
    damage(data, archive.infolist()[0])
    wheel.write_bytes(data)
    status, out, err = run(wheel, LIBRARY)
    assert status == 2
    assert err.startswith(f"error: {wheel}{message}")
    assert f"{LIBRARY}: 46.6 kB" in out


def _deflated_wheel(folder: Path) -> Path:
    wheel = folder / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(LIBRARY, "x/libtwo.so")
    return wheel


def test_a_member_that_does_not_fit_in_the_temporary_folder_is_reported(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    wheel = _deflated_wheel(tmp_path)
    monkeypatch.setattr("rocwheel.core.scratch.os.write", full)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found = f"its {LIBRARY.stat().st_size} unpacked bytes can't be written to {tmp_path} (No space left on device)"
    remedy = "Free some space in this folder, or set TMPDIR to another folder."
    assert run(wheel) == (1, "", f"error: {wheel}!x/libtwo.so: {found}. {remedy}\n")


def test_a_member_above_the_size_limit_is_reported_and_not_unpacked(tmp_path: Path) -> None:
    wheel = _deflated_wheel(tmp_path)
    size = LIBRARY.stat().st_size
    [facts] = inspect_paths([wheel], limit=size - 1)
    assert str(facts.error) == (
        f"{wheel}!x/libtwo.so: unpacks to {size} bytes; expected at most {size - 1}. "
        "Set a higher limit if you trust the file."
    )
    [facts] = inspect_paths([wheel], limit=size)
    assert facts.error is None


def test_the_limit_option_allows_larger_bundles(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []

    def look(_: list[Path], *, deep: bool, limit: int, readers: object, progress: object) -> list[FileFacts]:
        assert readers is None
        assert progress is not None
        limits.append((deep, limit))
        return []

    monkeypatch.setattr("rocwheel.cli.inspect.inspect_paths", look)
    run(LIBRARY, "--deep", "--limit", "6")
    run(LIBRARY)
    assert limits == [(True, 6 << 30), (False, 4 << 30)]


def test_a_truncated_wheel_is_reported_as_truncated(run: Run, tmp_path: Path) -> None:
    wheel = _deflated_wheel(tmp_path)
    wheel.write_bytes(wheel.read_bytes()[:500])
    found = "is a truncated or damaged archive; expected a complete wheel, with its central directory at the end"
    assert run(wheel) == (2, "", f"error: {wheel}: {found}\n")


def test_deflated_members_are_not_held_in_memory(run: Run, tmp_path: Path) -> None:
    wheel = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/libtwo.so", LIBRARY.read_bytes() + bytes(64 << 20))
    tracemalloc.start()
    try:
        assert run(wheel)[0] == 0
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"text",
            "not a binary; expected an ELF or PE file, an archive, a bundle, a kpack archive, a folder, or a wheel",
        ),
        (b"", NOT_A_BINARY),
        (None, "can't be read (No such file or directory)"),
        (b"PK\x05\x06" + bytes(10) + b"\xff\xff" + bytes(6), "is a damaged archive ("),
    ],
    ids=["text", "empty", "absent", "zip"],
)
def test_a_path_that_is_not_a_binary_is_refused(run: Run, tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "x"
    if content is not None:
        path.write_bytes(content)
    status, out, err = run(path)
    assert (status, out) == (2, "")
    assert err.startswith(f"error: {path}: {message}")


def test_a_folder_without_binaries_produces_a_warning(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    assert run(tmp_path) == (0, "", f"warning: {tmp_path}: contains no binaries\n")
    assert run("-q", tmp_path) == (0, "", "")


@needs_compiler
def test_a_split_library_is_described_with_its_archives(tmp_path: Path) -> None:
    done = rocwheel("inspect", "-v", split_two(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    folder = tmp_path / ".kpack"
    for line in (
        "  kpacked fat binary, 2 wrappers, its code in 3 kpack archives, ",
        "    wrapper at 0x2018: lib/libtwo.so#1 in ../.kpack/two_@GFXARCH@.kpack",
        f"    {folder}/two_gfx90a.kpack: zstd-per-kernel, gfx90a:xnack+",
    ):
        assert line in done.stdout


@needs_compiler
def test_a_split_library_without_its_archives_results_in_exit_status_1(tmp_path: Path) -> None:
    library = split_two(tmp_path)
    (tmp_path / ".kpack").rename(tmp_path / "elsewhere")
    done = rocwheel("inspect", library)
    assert done.returncode == 1
    assert "  kpacked fat binary, 2 wrappers, its code in kpack archives elsewhere\n" in done.stdout
    assert "the code is in kpack archives that don't exist: ../.kpack/two_@GFXARCH@.kpack" in done.stderr
