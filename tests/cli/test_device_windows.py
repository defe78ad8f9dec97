"""``rocwheel device`` on files of Windows, and which of them it refuses."""

from __future__ import annotations

import json
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.device.device_facts import list_device_code
from tests.support.kpack_reader import load_unit, units_of
from tests.support.pe_files import with_certificate
from tests.support.places import FIXTURES, ROOT
from tests.support.sdists import unpack_tar
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from tests.support.command_line import Run


TWO = (FIXTURES / "pe/two.dll").read_bytes()
SAMPLE = ROOT / "src/rocwheel/sample/windows"
LAUNCHERS = Path(sysconfig.get_path("purelib"), "installer", "_scripts")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree like that of an SDK, with files that are no libraries with device code."""
    folder = tmp_path / "tree/bin"
    folder.mkdir(parents=True)
    (folder / "two.dll").write_bytes(TWO)
    for name in ("t32.exe", "t64.exe"):
        (folder / name).write_bytes((LAUNCHERS / name).read_bytes())
    (folder / "notes.txt").write_bytes(b"MZ is how this text begins.")
    return tmp_path / "tree"


def code_of(library: Path, target: str) -> list[bytes]:
    """Return the code objects of each bundle for a target, cut out by hand."""
    data = library.read_bytes()
    found = []
    for bundle in list_device_code(library).bundles:
        count = struct.unpack_from("<Q", data, bundle.offset + 24)[0]
        position = bundle.offset + 32
        for _ in range(count):
            offset, size, length = struct.unpack_from("<QQQ", data, position)
            name = data[position + 24 : position + 24 + length].decode()
            position += 24 + length
            if name.endswith(f"--{target}"):
                found.append(data[bundle.offset + offset :][:size])
    return found


@pytest.mark.slow
def test_the_runtime_finds_the_code_of_a_split_tree(run: Run, tree: Path, tmp_path: Path) -> None:
    whole = code_of(tree / "bin/two.dll", "gfx906")
    status, out, err = run("device", "split", tree, "--output", tmp_path / "out")
    assert (status, err, len(whole)) == (0, "", 2)
    assert out.splitlines()[0] == f"{tmp_path}/out/host: 4 files, 1 library split, on disk 41.0 kB -> 4.1 kB"
    (tmp_path / "out/gfx906/.kpack").rename(tmp_path / "out/host/.kpack")
    library = tmp_path / "out/host/bin/two.dll"
    units = units_of(library)
    assert [unit.key for unit in units] == ["bin/two.dll#0", "bin/two.dll#1"]
    assert [load_unit(library, unit, ["gfx906"], old=old) for unit in units for old in (True, False)] == [
        code for code in whole for _ in range(2)
    ]


@pytest.mark.slow
def test_splitting_and_joining_a_wheel_restores_the_library(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/bin/two.dll": TWO}, tag="py3-none-win_amd64")
    status, _, err = run("device", "split", wheel, "--output", tmp_path / "split")
    made = sorted(path.name for path in (tmp_path / "split").iterdir())
    assert (status, err) == (0, "")
    assert made == [
        "demo-1.0-py3-none-win_amd64.whl",
        *(f"demo_device_{target}-1.0-py3-none-win_amd64.whl" for target in ("gfx1030", "gfx906", "gfx90a")),
    ]
    archives = [name for name in members(tmp_path / "split" / made[1]) if name.endswith(".kpack")]
    assert archives == ["demo/.kpack/two.dll_gfx1030.kpack"]
    status, _, err = run("device", "join", *(tmp_path / "split" / name for name in made), "-o", tmp_path / "joined")
    assert (status, err) == (0, "")
    with zipfile.ZipFile(tmp_path / "joined" / made[0]) as joined:
        assert joined.read("demo/bin/two.dll") == TWO


@pytest.mark.slow
@pytest.mark.parametrize("words", [("prune", "--targets", "gfx906"), ("compress",)], ids=lambda words: words[0])
def test_other_files_in_a_tree_are_not_changed(run: Run, tree: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    output = tmp_path / "out"
    status, _, _ = run("device", words[0], tree, *words[1:], "-o", output)
    assert status == 0
    changed = [
        path.name for path in (output / "bin").iterdir() if path.read_bytes() != (tree / "bin" / path.name).read_bytes()
    ]
    assert changed == ["two.dll"]


@pytest.mark.slow
def test_a_truncated_library_is_reported(run: Run, tree: Path, tmp_path: Path) -> None:
    (tree / "bin/two.dll").write_bytes(TWO[:0x5000])
    status, _, err = run("device", "split", tree, "--output", tmp_path / "out")
    assert (status, (tmp_path / "out").exists()) == (2, False)
    assert "bin/two.dll: the section .hip_fat would span 0xa00 to 0x9c00, but the file ends at 0x5000" in err


@pytest.mark.slow
def test_compressed_code_for_additional_gpus_fits_into_the_library(run: Run, tmp_path: Path) -> None:
    made = tmp_path / "a.dll"
    status, _, err = run("device", "retarget", "gfx1030=gfx1031", FIXTURES / "pe/two.dll", "--compress", "-o", made)
    assert status == 0, err
    targets = {entry.target for bundle in list_device_code(made).bundles for entry in bundle.entries}
    assert targets == {"gfx1030", "gfx1031", "gfx906", "gfx90a:xnack+"}


@pytest.mark.slow
def test_a_build_for_windows_splits_its_libraries(run: Run, tmp_path: Path) -> None:
    status, _, err = run("build", "--artifact-dir", SAMPLE, "-d", tmp_path / "made", "--split-device", "-q")
    assert (status, "keeps its device code" in err) == (0, False)
    device = tmp_path / "made/dist/rocm_sdk_device_gfx1030-7.0.0-py3-none-win_amd64.whl"
    archives = {name for name in members(device) if name.endswith(".dll_gfx1030.kpack")}
    assert archives == {f"_rocm_sdk_libraries/.kpack/{name}.dll_gfx1030.kpack" for name in ("rocrand", "rocsparse")}
    status, _, err = run("audit", tmp_path / "made/dist")
    assert status == 0, err
    status, out, err = run("targets", "coherent", tmp_path / "made/dist")
    assert (status, out.splitlines()[-1]) == (0, "coherent; supported by all: gfx1030, gfx1100"), err


@pytest.mark.slow
def test_a_build_for_windows_reports_that_it_has_no_overlays(run: Run, tmp_path: Path) -> None:
    status, out, err = run("build", "--artifact-dir", SAMPLE, "-d", tmp_path / "made", "--split-device=overlay")
    remark = "a Windows DLL or program, which can't be replaced by another file"
    assert (status, " ".join((out + err).split()).count(remark)) == (0, 2)


KILLED = """
import os, signal
from pathlib import Path
import {module} as module
from rocwheel.binary.bundles.storage import Storage
from rocwheel.device.edit_file import rewrite_device_code
module.{name} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
rewrite_device_code(Path({source!r}), Path({output!r}), None, Storage(compress=True), trim={trim})
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name", "trim"),
    [
        ("rocwheel.binary.pe.facts", "RunningChecksum.value", False),
        ("rocwheel.binary.pe.facts", "RunningChecksum.change", False),
        ("rocwheel.device.edit_file", "write_patched", True),
    ],
)
def test_a_killed_edit_leaves_no_output_file(run: Run, tmp_path: Path, module: str, name: str, *, trim: bool) -> None:
    source, output = FIXTURES / "pe/two-gnu.dll", tmp_path / "made/a.dll"
    output.parent.mkdir()
    script = KILLED.format(module=module, name=name, source=str(source), output=str(output), trim=trim)
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    assert not output.exists()
    status, _, _ = run("device", "compress", source, "-o", output)
    assert (status, [path.name for path in output.parent.iterdir()]) == (0, ["a.dll"])


SIGNED_TWO = (FIXTURES / "pe/two.dll").read_bytes()
SIGNED_SAMPLE = ROOT / "src/rocwheel/sample/windows"
SIGNED = with_certificate(SIGNED_TWO)
PE_AT = struct.unpack_from("<I", SIGNED_TWO, 0x3C)[0]
CERTIFICATES_AT = PE_AT + 24 + 112 + 4 * 8
IS_SIGNED = "is signed, and any change makes the signature invalid"
REMEDY = "Remove the signature first, and then sign the result."
REFUSED = f"{IS_SIGNED}; expected a file without certificates. {REMEDY}"
CUT = "expected a whole PE file. The file is truncated or damaged. Copy the file again, or rebuild it."

COMMANDS = {
    "prune": (("prune", "--targets", "gfx906"), "-o"),
    "compress": (("compress",), "-o"),
    "trim": (("compress", "--trim"), "-o"),
    "retarget": (("retarget", "gfx1030=gfx1031"), "-o"),
    "split": (("split",), "-o"),
}


def command(name: str, path: Path, output: Path) -> tuple[object, ...]:
    words, option = COMMANDS[name]
    return ("device", *words, path, option, output)


def broken(at: int, layout: str, *values: int) -> bytes:
    data = bytearray(SIGNED_TWO)
    struct.pack_into(layout, data, at, *values)
    return bytes(data)


DAMAGED = {
    "cert.dll": (
        broken(CERTIFICATES_AT, "<II", len(SIGNED_TWO), 0x10000),
        f"the certificates would span 0xa000 to 0x1a000, but the file ends at 0xa000; {CUT}",
    ),
    "header.dll": (
        broken(0x3C, "<I", 0xFFFFFFF0),
        f"the PE signature would span 0xfffffff0 to 0xfffffff4, but the file ends at 0xa000; {CUT}",
    ),
    "short.dll": (
        SIGNED_TWO[:0x5000],
        f"the section .hip_fat would span 0xa00 to 0x9c00, but the file ends at 0x5000; {CUT}",
    ),
}


@pytest.fixture
def signed_tree(tmp_path: Path) -> Path:
    """Return a tree with a library and a signed copy of it."""
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "two.dll").write_bytes(SIGNED_TWO)
    (folder / "signed.dll").write_bytes(SIGNED)
    return folder


@pytest.mark.slow
def test_split_keeps_the_code_in_a_signed_library(run: Run, signed_tree: Path, tmp_path: Path) -> None:
    status, out, _ = run("device", "split", signed_tree, "--output", tmp_path / "out")
    remark = f"signed.dll: {IS_SIGNED}, expected a file without certificates"
    assert (status, out.splitlines()[0]) == (0, f"stays in the host folder: {remark}")
    assert (tmp_path / "out/host/signed.dll").read_bytes() == SIGNED


@pytest.mark.slow
@pytest.mark.parametrize("name", ["prune", "compress"])
def test_a_signed_library_in_a_folder_is_left_unchanged_with_a_warning(
    run: Run, signed_tree: Path, tmp_path: Path, name: str
) -> None:
    status, out, err = run(*command(name, signed_tree, tmp_path / "out"))
    assert status == 0
    assert "device code in 1 file edited" in out
    assert (
        f"warning: {signed_tree}/signed.dll: {IS_SIGNED}, so its device code is left unchanged. {REMEDY}"
        in err.splitlines()
    )
    assert (tmp_path / "out/signed.dll").read_bytes() == SIGNED
    assert (tmp_path / "out/two.dll").read_bytes() != SIGNED_TWO


@pytest.mark.slow
def test_a_signed_library_in_a_folder_is_not_retargeted(run: Run, signed_tree: Path, tmp_path: Path) -> None:
    status, _, err = run("device", "retarget", "gfx1030=gfx1031", signed_tree, "--compress", "-o", tmp_path / "out")
    assert (status, err.splitlines()) == (0, [f"warning: signed.dll: {REFUSED}"])
    assert (tmp_path / "out/signed.dll").read_bytes() == SIGNED


@pytest.mark.slow
@pytest.mark.parametrize("words", [("prune", "--targets", "gfx906"), ("compress",), ("compress", "--trim")])
def test_a_signed_library_in_a_wheel_is_left_unchanged_with_a_warning(
    run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    files = {"demo/signed.dll": SIGNED, "demo/two.dll": SIGNED_TWO}
    wheel = make_wheel(tmp_path, "demo", files, tag="py3-none-win_amd64")
    status, _, err = run("device", *words, wheel, "-o", tmp_path / "out")
    assert status == 0, err
    assert f"demo/signed.dll: {IS_SIGNED}, so its device code is left unchanged. {REMEDY}" in err
    with zipfile.ZipFile(tmp_path / "out" / wheel.name) as made:
        assert made.read("demo/signed.dll") == SIGNED
        assert made.read("demo/two.dll") != SIGNED_TWO


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_single_signed_library_is_refused_with_the_same_message(
    run: Run, signed_tree: Path, tmp_path: Path, name: str
) -> None:
    status, _, err = run(*command(name, signed_tree / "signed.dll", tmp_path / "out.dll"))
    assert (status, err, (tmp_path / "out.dll").exists()) == (
        2,
        f"error: {signed_tree}/signed.dll: {REFUSED}\n",
        False,
    )


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("osslsigncode") is None, reason="osslsigncode signs DLLs")
def test_a_library_signed_by_osslsigncode_is_left_unchanged(run: Run, signed_tree: Path, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9", "-subj", "/CN=demo"]
    subprocess.run(["openssl", *request, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    (signed_tree / "signed.dll").unlink()
    sign: list[str | Path] = [
        "osslsigncode",
        "sign",
        "-certs",
        certificate,
        "-key",
        key,
        "-in",
        signed_tree / "two.dll",
    ]
    subprocess.run([*sign, "-out", signed_tree / "signed.dll"], check=True, capture_output=True)
    status, _, err = run(*command("compress", signed_tree, tmp_path / "out"))
    assert (status, f"{signed_tree}/signed.dll: {IS_SIGNED}" in err) == (0, True)
    assert (tmp_path / "out/signed.dll").read_bytes() == (signed_tree / "signed.dll").read_bytes()


def write_sdk_with_a_signed_library(tmp_path: Path) -> Path:
    """Copy the sample SDK with a signed rocSPARSE to the folder ``sdk``, and return that library."""
    shutil.copytree(SIGNED_SAMPLE, tmp_path / "sdk")
    archive = tmp_path / "sdk/blas_lib_generic.tar.xz"
    with tarfile.open(archive) as packed:
        unpack_tar(packed, tmp_path / "sdk/blas_lib_generic")
    archive.unlink()
    [library] = (tmp_path / "sdk").rglob("rocsparse.dll")
    library.write_bytes(with_certificate(library.read_bytes()))
    return library


@pytest.mark.slow
def test_a_build_that_splits_and_compresses_reports_a_signed_library_once(run: Run, tmp_path: Path) -> None:
    write_sdk_with_a_signed_library(tmp_path)
    options = ("--split-device", "kpack", "--device-code", "compress")
    planned = run("build", "--dry-run", "--artifact-dir", tmp_path / "sdk", *options, "--json")
    warnings = [one for one in json.loads(planned.stdout)["warnings"] if one["subject"] == "bin/rocsparse.dll"]
    assert [one["kind"] for one in warnings] == ["device-code-stays"]
    assert IS_SIGNED in warnings[0]["found"]


@pytest.mark.slow
@pytest.mark.parametrize("device_code", ["compress", "trim"])
def test_a_build_leaves_a_signed_library_unchanged_with_a_warning(run: Run, tmp_path: Path, device_code: str) -> None:
    library = write_sdk_with_a_signed_library(tmp_path)
    made = tmp_path / "made"
    status, out, err = run("build", "--artifact-dir", tmp_path / "sdk", "-d", made, f"--device-code={device_code}")
    shown = " ".join((out + err).split())
    assert status == 0, err
    assert f"bin/rocsparse.dll: keeps its device code unchanged: {IS_SIGNED}" in shown
    assert "bin/rocrand.dll: keeps" not in shown
    [wheel] = [path for path in made.rglob("*.whl") if any("rocsparse.dll" in name for name in members(path))]
    with zipfile.ZipFile(wheel) as packed:
        [name] = [name for name in packed.namelist() if name.endswith("rocsparse.dll")]
        assert packed.read(name) == library.read_bytes()


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("name", [*COMMANDS, "inspect"])
@pytest.mark.parametrize("file", DAMAGED)
def test_a_damaged_library_gets_the_same_error_in_all_commands(run: Run, tmp_path: Path, file: str, name: str) -> None:
    path = tmp_path / file
    path.write_bytes(DAMAGED[file][0])
    words = ("inspect", path) if name == "inspect" else command(name, path, tmp_path / "out")
    status, _, err = run(*words)
    assert (status, (tmp_path / "out").exists()) == (2, False)
    assert f"{path}: {DAMAGED[file][1]}" in err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["prune", "compress", "retarget", "split"])
def test_all_damaged_libraries_of_a_folder_are_reported_together(
    run: Run, signed_tree: Path, tmp_path: Path, name: str
) -> None:
    for file, (data, _) in DAMAGED.items():
        (signed_tree / file).write_bytes(data)
    status, _, err = run(*command(name, signed_tree, tmp_path / "out"))
    assert (status, (tmp_path / "out").exists()) == (2, False)
    assert [line.rpartition("/")[2].strip() for line in err.splitlines()[1:]] == [
        f"{file}: {found}" for file, (_, found) in sorted(DAMAGED.items())
    ]


@pytest.mark.slow
def test_a_text_file_that_begins_with_mz_is_not_a_program(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/notes.txt").write_bytes(b"MZ is how this text begins. " * 9)
    status, _, err = run("device", "compress", tmp_path / "tree", "-o", tmp_path / "out")
    assert (status, err) == (0, "")
