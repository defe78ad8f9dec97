"""``rocwheel device``: what its commands share, and which files, archives and wheels they refuse."""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.compression import zstd
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from tests.support.device_commands import targets_of
from tests.support.fat_libraries import build_fat_library, code_of, lay_over, make_bundle
from tests.support.kpack_files import by_hand, frames, make_kpack, split_two, toc
from tests.support.libraries import needs_compiler
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


@pytest.mark.slow
def test_a_library_is_compressed_pruned_and_retargeted(run: Run, tmp_path: Path) -> None:
    small, fewer, more = tmp_path / "small.so", tmp_path / "fewer.so", tmp_path / "more.so"
    status, out, err = run("device", "compress", FIXTURES / "v22/libtwo.plain.so", "-o", small)
    assert (status, out) == (0, f"{small}: 2 of 2 bundles changed, 33.8 kB -> 4.1 kB of device code\n")
    assert err.endswith("note: the result requires ROCm 6.2 or later\n")
    assert run("device", "prune", small, "--targets", "gfx1030,gfx906", "-o", fewer)[0] == 0
    assert targets_of(run, fewer) == [["gfx1030", "gfx906"]] * 2
    assert run("device", "retarget", "gfx1030=gfx1031,gfx1036", fewer, "-o", more)[0] == 0
    assert targets_of(run, more) == [["gfx1030", "gfx1031", "gfx1036", "gfx906"]] * 2
    assert len({path.stat().st_size for path in (small, fewer, more)}) == 1


@pytest.mark.slow
def test_a_code_object_is_kept_or_retargeted(run: Run, tmp_path: Path) -> None:
    run("device", "extract", FIXTURES / "v22/saxpy.hipfb", "-t", "gfx1030", "-o", tmp_path, "-q")
    source, output = tmp_path / "saxpy.hipfb.0.gfx1030.co", tmp_path / "out.co"
    status, out, _ = run("device", "prune", source, "-k", "gfx1030", "-o", output)
    assert (status, out) == (0, f"{output}: a code object, unchanged\n")
    status, out, _ = run("device", "retarget", "gfx1030=gfx1032", source, "-o", output)
    assert (status, out) == (0, f"{output}: a code object, now for another target\n")
    assert run("inspect", output)[1].splitlines()[1] == "  code object, 3.7 kB"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "options"),
    [
        (["list"], []),
        (["extract"], []),
        (["compress"], ["-o", "out"]),
        (["prune"], ["-k", "gfx906", "-o", "out"]),
        (["retarget", "gfx1030=gfx1031"], ["-o", "out"]),
    ],
    ids=["list", "extract", "compress", "prune", "retarget"],
)
def test_a_thin_archive_is_refused_with_its_file_type(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "libx.a"
    path.write_bytes(b"!<thin>\n")
    status, _, err = run("device", *command, path, *options)
    assert (status, err.startswith(f"error: {path}: a thin archive; expected a fat binary")) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "options"), [("list", ()), ("extract", ("--output", "out")), ("split", ("--output", "out"))]
)
def test_a_debian_package_is_refused_with_its_file_type(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x.deb"
    path.write_bytes(b"!<arch>\ndebian-binary   0           0     0     100644  4         `\n2.0\n")
    status, _, err = run("device", command, path, *options)
    assert (status, f"{path}: a Debian package, which 'dpkg-deb --extract' unpacks; expected a fat binary" in err) == (
        2,
        True,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["prune", "--targets", "gfx906"],
        ["compress"],
        ["compress", "--header-version", "2"],
        ["retarget", "gfx1030=gfx1031"],
    ],
    ids=["prune", "compress", "compress anew", "retarget"],
)
def test_a_bundle_with_a_bad_hash_is_rewritten_only_with_force(run: Run, tmp_path: Path, arguments: list[str]) -> None:
    command, *options = arguments
    words = ["device", command, *options, FIXTURES / "edge/zlib.v3.badhash.ccob", "-o", tmp_path / "out.ccob"]
    status, _, err = run(*words)
    assert (status, "use --force to accept the bundle anyway" in err, list(tmp_path.iterdir())) == (2, True, [])
    status, _, err = run(*words, "--force")
    found = "bundle 0 at offset 0x0: its header has the hash 0000000000000000, but its content has ceddc72cae1760d9"
    assert (status, f"warning: {words[-3]}: {found}\n" in err) == (0, True)
    assert (tmp_path / "out.ccob").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["compress", "v22/libtwo.plain.so", "--rocm", "6.1"],
            "compressed bundles of version 2, which ROCm 6.1 doesn't read; expected ROCm 6.2 or later.",
        ),
        (["compress", "v22/libtwo.plain.so", "--rocm", "six"], "ROCm version: 'six'; expected a version such as 6.4"),
        (
            ["prune", "v22/libtwo.plain.so", "--targets", "gfx906", "--rocm", "banana"],
            "ROCm version: 'banana'; expected a version such as 6.4",
        ),
        (["compress", "mach/flags.22"], "no bundles of device code; expected a fat binary or a bundle file"),
        (["prune", "v22/libtwo.plain.so", "--targets", "gfx942"], "has no code for any of the targets to keep"),
        (
            ["retarget", "gfx1030=gfx1100", "v22/libtwo.plain.so"],
            "FROM=TO: no rule allows code for gfx1030 on gfx1100; expected one of gfx1031, gfx1032, gfx1033, ",
        ),
        (["retarget", "gfx1030", "v22/libtwo.plain.so"], "FROM=TO: 'gfx1030'; expected FROM=TO[,TO...]"),
        (
            ["retarget", "gfx900=gfx902", "v22/libtwo.plain.so", "--compress"],
            "no code for gfx900 to offer to other GPUs; expected one of its targets gfx906, gfx90a:xnack+, gfx1030",
        ),
        (["retarget", "gfx1030=gfx1031", "v22/libtwo.plain.so"], "Compress the device code to make room (--compress)."),
        (
            ["retarget", "gfx1030=gfx1031", "/dev/null"],
            "/dev/null: is neither a regular file nor a folder; expected a file or a folder",
        ),
    ],
    ids=[
        "runtime",
        "version",
        "version that does not matter",
        "no device code",
        "nothing left",
        "no rule",
        "no pair",
        "no code to offer",
        "no room",
        "device",
    ],
)
def test_unusable_input_produces_one_error_and_no_output(
    run: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    command, *rest = [str(FIXTURES / word) if (FIXTURES / word).is_file() else word for word in arguments]
    status, out, err = run("device", command, *rest, "-o", tmp_path / "out", "--quiet")
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "line"),
    [
        (["compress"], "device code in 1 file edited (29.7 kB saved), 2 files copied"),
        (
            ["prune", "--targets", "gfx906"],
            "1 file left out, device code in 1 file edited (18.5 kB saved), 1 file copied",
        ),
        (
            ["retarget", "gfx1030=gfx1031", "--compress"],
            "device code in 1 file edited (29.7 kB saved), 2 files copied",
        ),
    ],
    ids=["compress", "prune", "retarget"],
)
def test_a_wheel_is_edited_into_a_folder(run: Run, tmp_path: Path, wheel: Path, command: list[str], line: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    done = run("device", *command, wheel, "-o", out)
    assert (done.status, done.stdout) == (0, f"{out / wheel.name}: {line}\n")
    assert members(out / wheel.name)["demo/a.so"] != members(wheel)["demo/a.so"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "targets"),
    [
        (["compress"], ["gfx906", "gfx942", "gfx1030"]),
        (["prune", "--targets", "gfx906"], ["gfx906"]),
        (["retarget", "gfx1030=gfx1031", "--compress"], ["gfx906", "gfx942", "gfx1030", "gfx1031"]),
    ],
    ids=["compress", "prune", "retarget"],
)
def test_the_declared_targets_match_the_edited_code(
    run: Run, tmp_path: Path, command: list[str], targets: list[str]
) -> None:
    declaration = {"schema": "rocwheel.rocm-targets/1", "rocm_targets": ["gfx906", "gfx942", "gfx1030"]}
    name = "demo-1.0.dist-info/rocm_targets.json"
    files = {"demo/a.so": (FIXTURES / "v22/libtwo.plain.so").read_bytes(), name: json.dumps(declaration).encode()}
    wheel = make_wheel(tmp_path / "in", "demo", files)
    assert run("device", *command, wheel, "-o", tmp_path / "out").status == 0
    assert json.loads(members(tmp_path / "out" / wheel.name)[name])["rocm_targets"] == targets


EXTRACT = r"Extract code objects with 'rocwheel device extract', and specify the extracted files\."
HOST = r"no library with code in archives\. Specify the (folder 'host' from the split|host wheel from the split)"

COMMANDS = {
    "list": ("{}",),
    "list --kernels": ("{}", "--kernels"),
    "extract": ("{}", "-o", "out"),
    "compress": ("{}", "-o", "out"),
    "prune": ("{}", "-k", "gfx1030", "-o", "out"),
    "retarget": ("gfx1030=gfx1031", "{}", "--compress", "-o", "out"),
    "bundle": ("{}", "-o", "out"),
    "split": ("{}", "-o", "out"),
    "join": ("{}", "-o", "out"),
}
"""The arguments of each command."""

REFUSED = {
    **{("bundle", kind): EXTRACT for kind in ("file", "folder", "wheel", "archive")},
    **{("join", kind): HOST for kind in ("file", "folder", "wheel", "archive")},
}
"""What is refused, and the words that say what to do instead; all else is done."""


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Path]:
    """Make one thing of each kind, all with the code of one fat library."""
    library = FIXTURES / "v22/libtwo.plain.so"
    (tmp_path / "tree/lib").mkdir(parents=True)
    shutil.copy(library, tmp_path / "tree/lib/libtwo.so")
    split_two(tmp_path / "split")
    return {
        "file": library,
        "folder": tmp_path / "tree",
        "wheel": make_wheel(tmp_path / "in", "demo", {"demo/a.so": library}),
        "archive": tmp_path / "split/.kpack/two_gfx1030.kpack",
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "folder", "wheel", "archive"])
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_accepts_each_kind_of_input_or_says_what_to_do(
    run: Run, tmp_path: Path, inputs: dict[str, Path], command: str, kind: str
) -> None:
    words = [word.replace("{}", str(inputs[kind])) for word in COMMANDS[command]]
    words = [str(tmp_path / "out") if word == "out" else word for word in words]
    done = run("device", command.split(maxsplit=1)[0], *words)
    refusal = REFUSED.get((command, kind))
    if refusal is None:
        assert done.status == 0, done.stderr
        assert done.stdout
        return
    assert (done.status, done.stdout) == (2, "")
    assert re.match(f"error: {re.escape(str(inputs[kind]))}.*{refusal}", done.stderr), done.stderr
    assert not (tmp_path / "out").exists()


NAME, ARCHIVE = "lib/libx.so", ".kpack/libx.so_gfx906.kpack"
CODES = [code_of(unit, "gfx906") for unit in range(2)]
SIZE = len(CODES[0])
MEMORY = 1 << 30
"""Bytes of addresses for a command that meets a frame of gigabytes."""


def entries(*ordinals: int, size: int = SIZE, target: str = "gfx906") -> dict[str, object]:
    found = {"type": "hsaco", "original_size": size}
    return {f"{NAME}#{unit}": {target: {**found, "ordinal": ordinal}} for unit, ordinal in enumerate(ordinals)}


def plain(*, overlap: int = 0, ordinals: tuple[int, int] = (0, 1), target: str = "gfx906") -> bytes:
    blobs = [{"offset": 16, "size": SIZE}, {"offset": 16 + SIZE - overlap, "size": SIZE}]
    table = toc(blobs=blobs, gfx_arches=[target], toc=entries(*ordinals, target=target))
    return by_hand(table, b"".join(CODES))


def framed(first: bytes, size: int = SIZE) -> bytes:
    blob = frames(first, zstd.compress(CODES[1]))
    places = {"zstd_offset": 16, "zstd_size": len(blob), "blobs": None, "compression_scheme": "zstd-per-kernel"}
    return by_hand(toc(**places, toc=entries(0, 1, size=size)), blob)


def zeros(gigabytes: int) -> bytes:
    """Return a frame that decompresses to gigabytes, made of a few kilobytes."""
    compressor = zstd.ZstdCompressor()
    pieces = [compressor.compress(bytes(1 << 26)) for _ in range(gigabytes << 4)]
    return b"".join((*pieces, compressor.flush()))


GOOD = make_kpack({(NAME, unit, "gfx906"): code for unit, code in enumerate(CODES)})
UNREADABLE = {
    "of version 2": (by_hand(toc(), version=2), "offset 0x4: a kpack archive with version 2; expected version 1"),
    "cut off in its table": (GOOD[:-30], "MessagePack that ends early"),
    "cut off in its code": (GOOD[:80], "offset 0x8: a table of contents at "),
    "empty": (b"", "offset 0x0: a file that begins with b''; expected a kpack archive"),
    "with overlapping code": (plain(overlap=1), "code object 1 begins inside code object 0, which ends at "),
    "with an ordinal out of range": (
        plain(ordinals=(0, 7)),
        f"{NAME}#1 for gfx906 has the ordinal 7; expected less than",
    ),
}
READERS = {
    "split": ["device", "split", "TREE", "--output", "OUT"],
    "mend": ["device", "split", "TREE", "--mend", "--output", "OUT"],
    "join": ["device", "join", "TREE", "--output", "OUT"],
    "extract": ["device", "extract", "LIBRARY", "--output", "OUT"],
    "runs-on": ["targets", "runs-on", "gfx906", "LIBRARY"],
    "list": ["device", "list", "-v", "LIBRARY"],
    "inspect": ["inspect", "LIBRARY"],
}
"""Commands that follow markers or take trees; the last two report what they find, with another status."""
DECODERS = {
    "join": READERS["join"],
    "extract": READERS["extract"],
    "inspect": ["inspect", "--deep", "LIBRARY"],
    "compress": ["device", "compress", "--level", "5", "ARCHIVE", "-o", "OUT"],
    "compress a folder": ["device", "compress", "--level", "5", "TREE", "-o", "OUT"],
    "retarget": ["device", "retarget", "gfx906=gfx900", "--force", "TREE", "-o", "OUT"],
}
"""Commands that look into code."""


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tree with a split library and its archives."""
    folder = tmp_path_factory.mktemp("split")
    bundles = [make_bundle(unit, "gfx906 gfx90a") for unit in range(2)]
    build_fat_library(folder / "tree" / NAME, bundles)
    split_tree(folder / "tree", folder / "out", SplitOrder(choice=SplitChoice()))
    return lay_over(folder / "out", folder / "made")


@pytest.fixture
def tree(split: Path, tmp_path: Path) -> Path:
    return shutil.copytree(split, tmp_path / "tree")


def words(command: list[str], tree: Path) -> list[str | Path]:
    places = {"TREE": tree, "LIBRARY": tree / NAME, "ARCHIVE": tree / ARCHIVE, "OUT": tree.with_name("out")}
    return [places.get(word, word) for word in command]


@needs_compiler
@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("archive", UNREADABLE)
def test_an_unreadable_archive_is_reported_with_the_offset(run: Run, tree: Path, command: str, archive: str) -> None:
    data, found = UNREADABLE[archive]
    (tree / ARCHIVE).write_bytes(data)
    finished = run(*words(READERS[command], tree))
    assert finished.status == (1 if command in {"list", "inspect"} else 2)
    assert f"{ARCHIVE}: offset 0x" in finished.stderr
    assert found in finished.stderr
    assert list(tree.parent.iterdir()) == [tree]


@needs_compiler
@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("command", DECODERS)
@pytest.mark.parametrize(
    ("frame", "size", "found"),
    [
        pytest.param(zstd.compress(bytes(64 << 20)), SIZE, f"a zstd frame of more than {SIZE} bytes", id="larger"),
        pytest.param(zstd.compress(b"x"), SIZE, f"a zstd frame of 1 byte; expected {SIZE}, as declared", id="smaller"),
        pytest.param(b"noise", SIZE, "a damaged zstd frame", id="noise"),
    ],
)
def test_a_frame_that_differs_from_its_declaration_is_reported_with_its_offset(
    run: Run, tree: Path, command: str, frame: bytes, size: int, found: str
) -> None:
    (tree / ARCHIVE).write_bytes(framed(frame, size))
    finished = run(*words(DECODERS[command], tree))
    assert finished.status == 2
    assert f"{ARCHIVE}: offset 0x18: {found}" in finished.stderr
    assert list(tree.parent.iterdir()) == [tree]


@needs_compiler
@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("command", DECODERS)
def test_memory_is_bounded_for_any_decompressed_frame_size(tree: Path, command: str) -> None:
    (tree / ARCHIVE).write_bytes(framed(zeros(4)))
    done = subprocess.run(
        [sys.executable, "-m", "rocwheel", *words(DECODERS[command], tree)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    assert (done.returncode, f"a zstd frame of more than {SIZE} bytes" in done.stderr) == (2, True), done.stderr
    assert list(tree.parent.iterdir()) == [tree]


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "status"), [("split", 2), ("join", 2), ("list", 1), ("inspect", 1), ("runs-on", 1)]
)
def test_an_archive_that_contradicts_its_name_is_reported(run: Run, tree: Path, command: str, status: int) -> None:
    (tree / ARCHIVE).write_bytes(plain(target="gfx90a"))
    finished = run(*words(READERS[command], tree))
    said = {
        "list": "is named for gfx906, but lists gfx90a",
        "inspect": "is named for gfx906, but lists gfx90a",
        "runs-on": "gfx906 on a stock runtime since ROCm 7.14: finds nothing",
    }.get(command, "is named for gfx906, but contains code for gfx90a")
    assert (finished.status, said in finished.stdout + finished.stderr) == (status, True)
    assert list(tree.parent.iterdir()) == [tree]


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("command", ["split", "join", "extract", "runs-on"])
def test_an_archive_with_an_invalid_target_is_reported(run: Run, tree: Path, command: str) -> None:
    (tree / ARCHIVE).write_bytes(plain(target="a b"))
    finished = run(*words(READERS[command], tree))
    assert (finished.status, ARCHIVE in finished.stderr, "a b" in finished.stderr) == (2, True, True)
    assert list(tree.parent.iterdir()) == [tree]


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "status", "found"),
    [
        (
            "join",
            2,
            (
                f"error: {NAME}: the archives with its code are missing; expected at least one of "
                f"../.kpack/libx.so_@GFXARCH@."
            ),
        ),
        ("extract", 2, "the code is in kpack archives that don't exist: ../.kpack/libx.so_@GFXARCH@.kpack"),
        ("list", 1, "the code is in kpack archives that don't exist: ../.kpack/libx.so_@GFXARCH@.kpack"),
        ("inspect", 1, "the code is in kpack archives that don't exist: ../.kpack/libx.so_@GFXARCH@.kpack"),
        ("runs-on", 1, "finds nothing in 2 bundles (no archive at ../.kpack/libx.so_@GFXARCH@.kpack)"),
    ],
)
def test_a_marker_with_missing_archives_is_reported(
    run: Run, tree: Path, command: str, status: int, found: str
) -> None:
    shutil.rmtree(tree / ".kpack")
    finished = run(*words(READERS[command], tree))
    assert (finished.status, found in finished.stdout + finished.stderr) == (status, True)
    assert list(tree.parent.iterdir()) == [tree]


@needs_compiler
@pytest.mark.slow
def test_splitting_again_reports_missing_archives(run: Run, tree: Path) -> None:
    shutil.rmtree(tree / ".kpack")
    finished = run(*words(READERS["split"], tree))
    missing = "was split before, but none of the archives with its code exist: ../.kpack/libx.so_@GFXARCH@.kpack"
    assert (finished.status, f"{NAME}: {missing}\n" in finished.stderr) == (0, True)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("command", ["split", "join", "list"])
def test_an_archive_from_another_build_is_reported(run: Run, tree: Path, command: str) -> None:
    (tree / ARCHIVE).write_bytes(make_kpack({(NAME, 0, "gfx906"): CODES[0]}))
    finished = run(*words(READERS[command], tree))
    assert finished.status == {"split": 0, "join": 2, "list": 1}[command]
    assert f"{NAME}#1" in finished.stderr or f"{ARCHIVE} lacks 1 unit (1)" in finished.stderr


INFO = "demo-1.0.dist-info"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fat wheel."""
    folder = tmp_path_factory.mktemp("made")
    return make_wheel(folder, "demo", {"demo/libtwo.so": FIXTURES / "v22/libtwo.plain.so"})


def rewritten(wheel: Path, made: Path, *, lost: str = "", more: str = "") -> Path:
    """Write a wheel again, without the members of which ``lost`` is the end, and with an empty one."""
    made.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            if not lost or not name.endswith(lost):
                new.writestr(name, old.read(name))
        if more:
            new.writestr(more, b"")
    return made


FAULTS = {
    "without METADATA": ({"lost": f"{INFO}/METADATA"}, f"has no {INFO}/METADATA"),
    "without WHEEL": ({"lost": f"{INFO}/WHEEL"}, f"has no {INFO}/WHEEL"),
    "with two .dist-info": ({"more": "other-1.0.dist-info/METADATA"}, "has several .dist-info folders"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("change", "found"), FAULTS.values(), ids=FAULTS)
def test_an_invalid_wheel_is_not_split(
    run: Run, made: Path, tmp_path: Path, change: dict[str, str], found: str
) -> None:
    wheel = rewritten(made, tmp_path / made.name, **change)
    finished = run("device", "split", wheel, "--output", tmp_path / "out")
    assert finished.status == 2
    assert finished.stderr.startswith(f"error: {wheel}: {found}")
    assert list(tmp_path.iterdir()) == [wheel]


@pytest.mark.slow
@pytest.mark.parametrize("which", ["host", "device"])
@pytest.mark.parametrize("fault", FAULTS)
def test_invalid_wheels_are_not_joined(run: Run, made: Path, tmp_path: Path, which: str, fault: str) -> None:
    change, found = FAULTS[fault]
    parts = tmp_path / "parts"
    run("device", "split", made, "--output", parts)
    host, device = parts / made.name, next(parts.glob("demo_device_gfx906*"))
    bad = host if which == "host" else device
    own = "demo_device_gfx906-1.0.dist-info" if which == "device" else INFO
    change = {key: value.replace(INFO, own) for key, value in change.items()}
    rewritten(bad, tmp_path / "bad.whl", **change)
    shutil.move(tmp_path / "bad.whl", bad)
    finished = run("device", "join", host, device, "--output", tmp_path / "out")
    assert finished.status == 2
    assert f"error: {bad}: {found.replace(INFO, own)}" in finished.stderr
    assert list(tmp_path.iterdir()) == [parts]


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("data", [b"", b"PK\3\4", b"no wheel"], ids=["empty", "cut off", "text"])
@pytest.mark.parametrize(
    "command",
    [
        ("list", "{}"),
        ("list", "--kernels", "{}"),
        ("compress", "{}", "-o", "out.whl"),
        ("prune", "{}", "--targets", "gfx906", "-o", "out.whl"),
        ("retarget", "gfx1030=gfx1031", "{}", "-o", "out.whl"),
        ("extract", "{}", "--targets", "gfx906", "-o", "out"),
        ("bundle", "{}", "-o", "out.hipfb"),
    ],
    ids=["list", "kernels", "compress", "prune", "retarget", "extract", "bundle"],
)
def test_a_wheel_that_is_not_a_zip_file_is_reported_as_damaged(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], data: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    wheel = tmp_path / "demo-1.0-py3-none-any.whl"
    wheel.write_bytes(data)
    found = "is a truncated or damaged archive; expected a complete wheel, with its central directory at the end"
    assert run("device", *(word.format(wheel) for word in command)) == (2, "", f"error: {wheel}: {found}\n")
    assert list(tmp_path.iterdir()) == [wheel]
