"""What the commands about device code do with signed and damaged DLLs, alone, in folders, wheels and builds."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.pe_files import with_certificate
from tests.support.places import FIXTURES, ROOT
from tests.support.sdists import unpack_tar
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

TWO = (FIXTURES / "pe/two.dll").read_bytes()
SAMPLE = ROOT / "src/rocwheel/sample/windows"
SIGNED = with_certificate(TWO)
PE_AT = struct.unpack_from("<I", TWO, 0x3C)[0]
CERTIFICATES_AT = PE_AT + 24 + 112 + 4 * 8
IS_SIGNED = "is signed, and any change makes the signature void"
REMEDY = "Remove the signature first, and sign the result."
REFUSED = f"{IS_SIGNED}; expected a file without certificates. {REMEDY}"
CUT = "expected a whole PE file. It is truncated or damaged: copy or build it again."

COMMANDS = {
    "prune": (("prune", "--keep", "gfx906"), "-o"),
    "compress": (("compress",), "-o"),
    "trim": (("compress", "--trim"), "-o"),
    "retarget": (("retarget", "gfx1030=gfx1031"), "-o"),
    "split": (("split",), "-d"),
}


def command(name: str, path: Path, output: Path) -> tuple[object, ...]:
    words, option = COMMANDS[name]
    return ("device", *words, path, option, output)


def broken(at: int, layout: str, *values: int) -> bytes:
    data = bytearray(TWO)
    struct.pack_into(layout, data, at, *values)
    return bytes(data)


DAMAGED = {
    "cert.dll": (
        broken(CERTIFICATES_AT, "<II", len(TWO), 0x10000),
        f"the certificates would lie at 0xa000 to 0x1a000, but the file ends at 0xa000; {CUT}",
    ),
    "header.dll": (
        broken(0x3C, "<I", 0xFFFFFFF0),
        f"the PE signature would lie at 0xfffffff0 to 0xfffffff4, but the file ends at 0xa000; {CUT}",
    ),
    "short.dll": (
        TWO[:0x5000],
        f"the section .hip_fat would lie at 0xa00 to 0x9c00, but the file ends at 0x5000; {CUT}",
    ),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with a library and a signed copy of it."""
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "two.dll").write_bytes(TWO)
    (folder / "signed.dll").write_bytes(SIGNED)
    return folder


def test_split_leaves_a_signed_library_whole_among_others(run: Run, tree: Path, tmp_path: Path) -> None:
    status, out, _ = run("device", "split", tree, "--dest-dir", tmp_path / "out")
    remark = f"signed.dll: {IS_SIGNED}, expected a file without certificates"
    assert (status, out.splitlines()[0]) == (0, f"stays in the host folder: {remark}")
    assert (tmp_path / "out/host/signed.dll").read_bytes() == SIGNED


@pytest.mark.parametrize("name", ["prune", "compress"])
def test_a_signed_library_stays_as_it_is_in_a_folder_with_a_warning(
    run: Run, tree: Path, tmp_path: Path, name: str
) -> None:
    status, out, err = run(*command(name, tree, tmp_path / "out"))
    assert status == 0
    assert "device code of 1 file edited" in out
    assert f"warning: {tree}/signed.dll: {IS_SIGNED}, so its device code stays as it is. {REMEDY}" in err.splitlines()
    assert (tmp_path / "out/signed.dll").read_bytes() == SIGNED
    assert (tmp_path / "out/two.dll").read_bytes() != TWO


def test_a_signed_library_in_a_folder_is_offered_to_no_more_gpus(run: Run, tree: Path, tmp_path: Path) -> None:
    status, _, err = run("device", "retarget", "gfx1030=gfx1031", tree, "--compress", "-o", tmp_path / "out")
    assert (status, err.splitlines()) == (0, [f"warning: signed.dll: {REFUSED}"])
    assert (tmp_path / "out/signed.dll").read_bytes() == SIGNED


@pytest.mark.parametrize("words", [("prune", "--keep", "gfx906"), ("compress",), ("compress", "--trim")])
def test_a_signed_library_stays_as_it_is_in_a_wheel_with_a_warning(
    run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    files = {"demo/signed.dll": SIGNED, "demo/two.dll": TWO}
    wheel = make_wheel(tmp_path, "demo", files, tag="py3-none-win_amd64")
    status, _, err = run("device", *words, wheel, "-o", tmp_path / "out")
    assert status == 0, err
    assert f"demo/signed.dll: {IS_SIGNED}, so its device code stays as it is. {REMEDY}" in err
    with zipfile.ZipFile(tmp_path / "out" / wheel.name) as made:
        assert made.read("demo/signed.dll") == SIGNED
        assert made.read("demo/two.dll") != TWO


@pytest.mark.parametrize("name", COMMANDS)
def test_a_signed_library_by_itself_is_refused_in_the_same_words(
    run: Run, tree: Path, tmp_path: Path, name: str
) -> None:
    status, _, err = run(*command(name, tree / "signed.dll", tmp_path / "out.dll"))
    assert (status, err, (tmp_path / "out.dll").exists()) == (2, f"error: {tree}/signed.dll: {REFUSED}\n", False)


@pytest.mark.skipif(shutil.which("osslsigncode") is None, reason="osslsigncode signs DLLs")
def test_what_a_tool_signed_is_left_as_it_is(run: Run, tree: Path, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9", "-subj", "/CN=demo"]
    subprocess.run(["openssl", *request, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    (tree / "signed.dll").unlink()
    sign: list[str | Path] = ["osslsigncode", "sign", "-certs", certificate, "-key", key, "-in", tree / "two.dll"]
    subprocess.run([*sign, "-out", tree / "signed.dll"], check=True, capture_output=True)
    status, _, err = run(*command("compress", tree, tmp_path / "out"))
    assert (status, f"{tree}/signed.dll: {IS_SIGNED}" in err) == (0, True)
    assert (tmp_path / "out/signed.dll").read_bytes() == (tree / "signed.dll").read_bytes()


def write_sdk_with_a_signed_library(tmp_path: Path) -> Path:
    """Copy the sample SDK with a signed rocSPARSE to the folder ``sdk``, and return that library."""
    shutil.copytree(SAMPLE, tmp_path / "sdk")
    archive = tmp_path / "sdk/blas_lib_generic.tar.xz"
    with tarfile.open(archive) as packed:
        unpack_tar(packed, tmp_path / "sdk/blas_lib_generic")
    archive.unlink()
    [library] = (tmp_path / "sdk").rglob("rocsparse.dll")
    library.write_bytes(with_certificate(library.read_bytes()))
    return library


def test_a_signed_library_is_told_of_once_where_code_is_split_and_compressed(run: Run, tmp_path: Path) -> None:
    write_sdk_with_a_signed_library(tmp_path)
    options = ("--split-device", "kpack", "--device-code", "compress")
    planned = run("plan", "--artifact-dir", tmp_path / "sdk", *options, "--json")
    warnings = [one for one in json.loads(planned.stdout)["warnings"] if one["subject"] == "bin/rocsparse.dll"]
    assert [one["kind"] for one in warnings] == ["device-code-stays"]
    assert IS_SIGNED in warnings[0]["found"]


@pytest.mark.parametrize("device_code", ["compress", "trim"])
def test_a_build_leaves_a_signed_library_as_it_is_with_a_warning(run: Run, tmp_path: Path, device_code: str) -> None:
    library = write_sdk_with_a_signed_library(tmp_path)
    made = tmp_path / "made"
    status, out, err = run("build", "--artifact-dir", tmp_path / "sdk", "-d", made, f"--device-code={device_code}")
    shown = " ".join((out + err).split())
    assert status == 0, err
    assert f"bin/rocsparse.dll: keeps its device code as it is: {IS_SIGNED}" in shown
    assert "bin/rocrand.dll: keeps" not in shown
    [wheel] = [path for path in made.rglob("*.whl") if any("rocsparse.dll" in name for name in members(path))]
    with zipfile.ZipFile(wheel) as packed:
        [name] = [name for name in packed.namelist() if name.endswith("rocsparse.dll")]
        assert packed.read(name) == library.read_bytes()


@pytest.mark.deep
@pytest.mark.parametrize("name", [*COMMANDS, "inspect"])
@pytest.mark.parametrize("file", DAMAGED)
def test_a_damaged_library_has_one_verdict_in_all_commands(run: Run, tmp_path: Path, file: str, name: str) -> None:
    path = tmp_path / file
    path.write_bytes(DAMAGED[file][0])
    words = ("inspect", path) if name == "inspect" else command(name, path, tmp_path / "out")
    status, _, err = run(*words)
    assert (status, (tmp_path / "out").exists()) == (2, False)
    assert f"{path}: {DAMAGED[file][1]}" in err


@pytest.mark.parametrize("name", ["prune", "compress", "retarget", "split"])
def test_all_damaged_libraries_of_a_folder_are_named_together(run: Run, tree: Path, tmp_path: Path, name: str) -> None:
    for file, (data, _) in DAMAGED.items():
        (tree / file).write_bytes(data)
    status, _, err = run(*command(name, tree, tmp_path / "out"))
    assert (status, (tmp_path / "out").exists()) == (2, False)
    assert [line.rpartition("/")[2].strip() for line in err.splitlines()[1:]] == [
        f"{file}: {found}" for file, (_, found) in sorted(DAMAGED.items())
    ]


def test_a_text_that_begins_like_a_program_is_none(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/notes.txt").write_bytes(b"MZ is how this text begins. " * 9)
    status, _, err = run("device", "compress", tmp_path / "tree", "-o", tmp_path / "out")
    assert (status, err) == (0, "")
