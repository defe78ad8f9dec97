"""What the commands of ``rocwheel device`` have in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.device_commands import targets_of
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from tests.support.command_line import Run


from typing import TYPE_CHECKING

from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


pytestmark = pytest.mark.slow


def test_library_is_compressed_pruned_and_retargeted(run: Run, tmp_path: Path) -> None:
    small, fewer, more = tmp_path / "small.so", tmp_path / "fewer.so", tmp_path / "more.so"
    status, out, err = run("device", "compress", FIXTURES / "v22/libtwo.plain.so", "-o", small)
    assert (status, out) == (0, f"{small}: 2 of 2 bundles changed, 33.8 kB -> 4.1 kB of device code\n")
    assert err.endswith("note: ROCm 6.2 and later read the result\n")
    assert run("device", "prune", small, "--keep", "gfx1030,gfx906", "-o", fewer)[0] == 0
    assert targets_of(run, fewer) == [["gfx1030", "gfx906"]] * 2
    assert run("device", "retarget", "gfx1030=gfx1031,gfx1036", fewer, "-o", more)[0] == 0
    assert targets_of(run, more) == [["gfx1030", "gfx1031", "gfx1036", "gfx906"]] * 2
    assert len({path.stat().st_size for path in (small, fewer, more)}) == 1


def test_code_object_is_kept_or_made_one_for_another_target(run: Run, tmp_path: Path) -> None:
    run("device", "extract", FIXTURES / "v22/saxpy.hipfb", "-t", "gfx1030", "-d", tmp_path, "-q")
    source, output = tmp_path / "saxpy.hipfb.0.gfx1030.co", tmp_path / "out.co"
    status, out, _ = run("device", "prune", source, "-k", "gfx1030", "-o", output)
    assert (status, out) == (0, f"{output}: a code object, as it was\n")
    status, out, _ = run("device", "retarget", "gfx1030=gfx1032", source, "-o", output)
    assert (status, out) == (0, f"{output}: a code object, now for another target\n")
    assert run("inspect", output)[1].splitlines()[1] == "  code object, 3.7 kB"


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
def test_thin_archive_is_refused_as_such(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "libx.a"
    path.write_bytes(b"!<thin>\n")
    status, _, err = run("device", *command, path, *options)
    assert (status, err.startswith(f"error: {path}: a thin archive; expected a fat binary")) == (2, True)


@pytest.mark.parametrize(
    ("command", "options"), [("list", ()), ("extract", ("--dest-dir", "out")), ("split", ("--dest-dir", "out"))]
)
def test_a_debian_package_is_refused_as_such(
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


@pytest.mark.parametrize(
    "arguments",
    [
        ["prune", "--keep", "gfx906"],
        ["compress"],
        ["compress", "--header-version", "2"],
        ["retarget", "gfx1030=gfx1031"],
    ],
    ids=["prune", "compress", "compress anew", "retarget"],
)
def test_bundle_whose_hash_is_wrong_is_rewritten_by_force_only(run: Run, tmp_path: Path, arguments: list[str]) -> None:
    command, *options = arguments
    words = ["device", command, *options, FIXTURES / "edge/zlib.v3.badhash.ccob", "-o", tmp_path / "out.ccob"]
    status, _, err = run(*words)
    assert (status, "use --force to take it as it is" in err, list(tmp_path.iterdir())) == (2, True, [])
    status, _, err = run(*words, "--force")
    found = "bundle 0 at offset 0x0: its hash is 0000000000000000, that of its content ceddc72cae1760d9"
    assert (status, f"warning: {words[-3]}: {found}\n" in err) == (0, True)
    assert (tmp_path / "out.ccob").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["compress", "v22/libtwo.plain.so", "--rocm", "6.1"],
            "compressed bundles of version 2, which ROCm 6.1 doesn't read; expected ROCm 6.2 or later.",
        ),
        (["compress", "v22/libtwo.plain.so", "--rocm", "six"], "ROCm version: 'six'; expected one such as 6.4"),
        (
            ["prune", "v22/libtwo.plain.so", "--keep", "gfx906", "--rocm", "banana"],
            "ROCm version: 'banana'; expected one such as 6.4",
        ),
        (["compress", "mach/flags.22"], "no bundles of device code; expected a fat binary or a file of bundles"),
        (["prune", "v22/libtwo.plain.so", "--keep", "gfx942"], "has no code for any target to keep"),
        (
            ["retarget", "gfx1030=gfx1100", "v22/libtwo.plain.so"],
            "FROM=TO: no rule says that code for gfx1030 runs on gfx1100; expected one of gfx1031, gfx1032, gfx1033, ",
        ),
        (["retarget", "gfx1030", "v22/libtwo.plain.so"], "FROM=TO: 'gfx1030'; expected FROM=TO[,TO...]"),
        (
            ["retarget", "gfx900=gfx902", "v22/libtwo.plain.so", "--compress"],
            "no code for gfx900 to offer to other GPUs; expected one of its targets gfx1030, gfx906, gfx90a:xnack+",
        ),
        (["retarget", "gfx1030=gfx1031", "v22/libtwo.plain.so"], "Compress the device code to make room (--compress)."),
        (
            ["retarget", "gfx1030=gfx1031", "/dev/null"],
            "/dev/null: is not a regular file; expected a file or a folder",
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
def test_unusable_input_gives_one_error_and_no_output(
    run: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    command, *rest = [str(FIXTURES / word) if (FIXTURES / word).is_file() else word for word in arguments]
    status, out, err = run("device", command, *rest, "-o", tmp_path / "out", "--quiet")
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (["compress"], "device code of 1 file edited (29.7 kB saved), 2 files copied"),
        (["prune", "--keep", "gfx906"], "1 file left out, device code of 1 file edited (18.5 kB saved), 1 file copied"),
        (
            ["retarget", "gfx1030=gfx1031", "--compress"],
            "device code of 1 file edited (29.7 kB saved), 2 files copied",
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


@pytest.mark.parametrize(
    ("command", "targets"),
    [
        (["compress"], ["gfx906", "gfx942", "gfx1030"]),
        (["prune", "--keep", "gfx906"], ["gfx906"]),
        (["retarget", "gfx1030=gfx1031", "--compress"], ["gfx906", "gfx942", "gfx1030", "gfx1031"]),
    ],
    ids=["compress", "prune", "retarget"],
)
def test_the_declared_targets_are_those_of_the_edited_code(
    run: Run, tmp_path: Path, command: list[str], targets: list[str]
) -> None:
    declaration = {"schema": "rocwheel.rocm-targets/1", "rocm_targets": ["gfx906", "gfx942", "gfx1030"]}
    name = "demo-1.0.dist-info/rocm_targets.json"
    files = {"demo/a.so": (FIXTURES / "v22/libtwo.plain.so").read_bytes(), name: json.dumps(declaration).encode()}
    wheel = make_wheel(tmp_path / "in", "demo", files)
    assert run("device", *command, wheel, "-o", tmp_path / "out").status == 0
    assert json.loads(members(tmp_path / "out" / wheel.name)[name])["rocm_targets"] == targets
