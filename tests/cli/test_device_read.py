"""``rocwheel device list``, ``extract`` and ``bundle``."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.bundles import bundle_of
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from tests.support.command_line import Run


@pytest.mark.slow
def test_bundles_are_listed_in_file_order(run: Run) -> None:
    status, out, err = run("device", "list", "-v", FIXTURES / "edge/two.ccob.fatbin")
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


@pytest.mark.slow
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
def test_code_outside_bundles_is_listed(run: Run, name: str, lines: list[str]) -> None:
    status, out, err = run("device", "list", "-v", FIXTURES / name)
    assert (status, out.splitlines(), err) == (0, lines, "")


@pytest.mark.slow
def test_host_entries_are_separate_from_target_entries(run: Run) -> None:
    _, out, _ = run("device", "list", FIXTURES / "v22/saxpy.hipfb", "--json")
    [bundle] = json.loads(out)["bundles"]
    facts = {"size": 0, "stored_size": 0, "kernels": None, "is_shared": False}
    assert bundle["hosts"] == [{"id": "host-x86_64-unknown-linux-gnu-", "target": "host", **facts}]
    assert "host" not in {entry["target"] for entry in bundle["entries"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("banana", "'banana' isn't a processor"),
        ("gfx1030:xnack-", "gfx1030 doesn't have the feature xnack"),
    ],
)
def test_an_entry_with_an_invalid_target_produces_a_warning_and_exit_status_1(
    run: Run, tmp_path: Path, target: str, reason: str
) -> None:
    path, entry = tmp_path / "x.hipfb", f"hipv4-amdgcn-amd-amdhsa--{target}"
    path.write_bytes(bundle_of(target))
    warning = f"warning: {path}: bundle 0 at offset 0x0: the entry {entry!r} isn't for a valid target: {reason}\n"
    status, out, err = run("device", "list", "-v", path)
    assert (status, entry in out, err) == (1, True, warning)
    status, _, err = run("inspect", path)
    assert (status, err) == (1, warning)


@pytest.mark.slow
def test_an_unknown_processor_from_a_newer_compiler_is_accepted(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.hipfb"
    path.write_bytes(bundle_of("gfx9999", "gfx99-2-generic", "amdgcnspirv"))
    assert run("device", "list", path)[::2] == (0, "")


@pytest.mark.slow
def test_a_declared_size_that_differs_from_the_entries_is_reported(run: Run, tmp_path: Path) -> None:
    path, output = FIXTURES / "edge/zlib.v3.usizebig.ccob", tmp_path / "out.ccob"
    status, _, err = run("device", "list", path)
    found = "the header declares that the bundle decompresses to 37433 bytes, but its entries end after 37432"
    assert (status, err) == (1, f"warning: {path}: bundle 0 at offset 0x0: {found}\n")
    status, _, err = run("device", "compress", path, "-o", output)
    assert (status, err.count(f"error: {path}: bundle 0 at offset 0x0: "), output.exists()) == (2, 1, False)


@pytest.mark.slow
def test_quiet_list_prints_no_warnings(run: Run) -> None:
    status, _, err = run("device", "list", FIXTURES / "edge/dup.hipfb")
    assert (status, "occurs more than once" in err) == (1, True)
    assert run("device", "list", FIXTURES / "edge/dup.hipfb", "--quiet")[::2] == (1, "")


def rows_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip() and "──" not in line]


@pytest.mark.slow
def test_kernels_are_listed_with_their_resources(run: Run) -> None:
    status, out, err = run("device", "list", "--kernels", FIXTURES / "v22/libtwo.plain.so")
    assert (status, err) == (0, "")
    headings = "bundle target kernel VGPRs AGPRs SGPRs spilled LDS scratch wavefront workgroup"
    assert rows_of(out) == [
        headings.split(),
        ["0", "gfx1030", "saxpy", "6", "-", "9", "0", "0", "0", "32", "1024"],
        ["0", "gfx906", "saxpy", "6", "-", "11", "0", "0", "0", "64", "1024"],
        ["0", "gfx90a:xnack+", "saxpy", "8", "0", "11", "0", "0", "0", "64", "1024"],
        ["1", "gfx1030", "vadd", "6", "-", "9", "0", "0", "0", "32", "1024"],
        ["1", "gfx906", "vadd", "5", "-", "14", "0", "0", "0", "64", "1024"],
        ["1", "gfx90a:xnack+", "vadd", "5", "0", "14", "0", "0", "0", "64", "1024"],
    ]


@pytest.mark.slow
def test_kernels_of_code_object_version_2_produce_a_warning(run: Run) -> None:
    status, out, err = run("device", "list", "--kernels", FIXTURES / "v16/vadd.cov2.hipfb")
    assert status == 1
    assert rows_of(out)[1:] == [["0", "gfx906", "vadd", *"--------"]]
    assert err.startswith("warning: ")
    assert "code object version 2 describes kernels in YAML, which isn't supported" in err


@pytest.mark.slow
def test_kernels_are_listed_as_json(run: Run) -> None:
    path = FIXTURES / "v22/libtwo.plain.so"
    document = json.loads(run("device", "list", "--kernels", "--json", path).stdout)
    assert (document["schema"], document["problems"], len(document["codes"])) == ("rocwheel.device-kernels/1", [], 6)
    assert document["codes"][2] == {
        "file": str(path),
        "bundle": 0,
        "target": "gfx90a:xnack+",
        "version": 6,
        "kernels": [
            {
                "name": "saxpy",
                "symbol": "saxpy.kd",
                "vgprs": 8,
                "agprs": 0,
                "sgprs": 11,
                "vgpr_spills": 0,
                "sgpr_spills": 0,
                "lds": 0,
                "scratch": 0,
                "has_dynamic_stack": False,
                "kernarg": 28,
                "wavefront": 64,
                "max_workgroup": 1024,
            }
        ],
    }


@pytest.mark.slow
def test_bundles_of_a_wheel_are_listed_by_member(run: Run, tmp_path: Path) -> None:
    bundle = FIXTURES / "v22/saxpy.ccob.hipfb"
    wheel = make_wheel(tmp_path, "demo", {"demo/a.hipfb": bundle, "demo/b.hipfb": bundle, "demo/c.py": b""})
    own = run("device", "list", "-v", bundle).stdout
    assert run("device", "list", "-v", wheel) == (0, f"demo/a.hipfb\n{own}demo/b.hipfb\n{own}", "")
    document = json.loads(run("device", "list", wheel, "--json").stdout)
    assert document["schema"] == "rocwheel.device-list-wheel/1"
    device = json.loads(run("device", "list", bundle, "--json").stdout)
    del device["schema"]
    assert [file["path"] for file in document["files"]] == ["demo/a.hipfb", "demo/b.hipfb"]
    assert [file["device"] for file in document["files"]] == [device, device]


@pytest.mark.slow
def test_kernels_of_a_wheel_are_listed_by_member(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/a.hipfb": FIXTURES / "v22/saxpy.ccob.hipfb"})
    status, out, _ = run("device", "list", wheel, "--kernels")
    assert (status, out.splitlines()[0]) == (0, f"{wheel}!demo/a.hipfb")
    assert "saxpy" in out


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--kernels"]], ids=["entries", "kernels"])
def test_a_wheel_without_device_code_is_refused(run: Run, tmp_path: Path, options: list[str]) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/a.py": b""})
    status, out, err = run("device", "list", wheel, *options)
    assert (status, out) == (2, "")
    assert err.startswith(f"error: {wheel}: no device code; expected ")


@pytest.mark.slow
def test_a_kernel_name_with_control_characters_is_escaped(run: Run, tmp_path: Path) -> None:
    data = (FIXTURES / "v22/saxpy.hipfb").read_bytes().replace(b"\xa5.name\xa5saxpy", b"\xa5.name\xa5s\x1bxpy")
    (tmp_path / "x.hipfb").write_bytes(data)
    assert "s\\x1bxpy" in run("device", "list", "--kernels", tmp_path / "x.hipfb").stdout


@pytest.mark.slow
def test_files_of_a_folder_and_of_the_wheels_inside_are_listed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/a.hipfb").write_bytes(bundle_of("gfx906"))
    (tmp_path / "lib/text.txt").write_text("text")
    wheel = make_wheel(tmp_path, "demo", {"demo/b.hipfb": bundle_of("gfx1030")})
    status, out, err = run("device", "list", tmp_path, "--json")
    document = json.loads(out)
    assert (status, err, document["schema"]) == (0, "", "rocwheel.device-list-folder/1")
    assert [file["path"] for file in document["files"]] == [f"{wheel.name}!demo/b.hipfb", "lib/a.hipfb"]
    status, out, err = run("device", "list", tmp_path)
    assert (status, out.splitlines()[0], err) == (0, f"{wheel.name}!demo/b.hipfb: 1 bundle, 4.1 kB", "")
    status, out, err = run("device", "list", "--kernels", FIXTURES / "v22", "--json")
    assert {f"{FIXTURES}/v22/saxpy.hipfb", f"{FIXTURES}/v22/libtwo.plain.so"} <= {
        code["file"] for code in json.loads(out)["codes"]
    }


@pytest.mark.slow
@pytest.mark.parametrize("folder", [".", "./", "../here"])
def test_files_in_the_working_directory_have_full_names(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here/a.hipfb").write_bytes(bundle_of("gfx906"))
    monkeypatch.chdir(tmp_path / "here")
    assert run("device", "list", folder).stdout.splitlines()[0] == "a.hipfb: 1 bundle, 4.1 kB"
    assert json.loads(run("device", "list", folder, "--json").stdout)["files"][0]["path"] == "a.hipfb"


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """Make a tree of a library and the kernel files that it opens."""
    folder = tmp_path / "lib/rocblas/library"
    folder.mkdir(parents=True)
    (tmp_path / "lib/librocblas.so.4").write_bytes((FIXTURES / "v22/libtwo.plain.so").read_bytes())
    for number in range(3):
        (folder / f"Kernels_{number}-gfx906.hsaco").write_bytes((FIXTURES / "elf/gfx906.co").read_bytes())
    return tmp_path


KERNEL_FILES = [
    ["target", "size", "in", "the", "file", "kernels", "bundles", "missing", "from"],
    ["gfx906", "6.3", "kB", "6.3", "kB", "3", "3"],
]


@pytest.mark.slow
def test_the_code_of_a_library_is_summarized_by_target(run: Run) -> None:
    status, out, err = run("device", "list", FIXTURES / "v22/libtwo.plain.so")
    assert (status, err) == (0, "")
    assert [line.split() for line in out.splitlines()] == [
        ["fat", "binary,", "2", "bundles,", "33.8", "kB"],
        ["target", "size", "in", "the", "file", "kernels", "bundles", "missing", "from"],
        ["gfx906", "7.1", "kB", "7.1", "kB", "2", "2"],
        ["gfx90a:xnack+", "9.2", "kB", "9.2", "kB", "2", "2"],
        ["gfx1030", "7.3", "kB", "7.3", "kB", "2", "2"],
    ]


@pytest.mark.slow
@pytest.mark.parametrize("command", [["device", "list"], ["inspect"]], ids=" ".join)
def test_the_kernel_files_of_a_folder_are_summarized_on_one_line(run: Run, kernels: Path, command: list[str]) -> None:
    lines = run(*command, kernels).stdout.splitlines()
    root = f"{kernels}/" if command == ["inspect"] else ""
    assert lines[0].startswith(f"{root}lib/librocblas.so.4: ")
    assert lines[-3] == f"{root}lib/rocblas/library: 3 kernel files with device code, 6.3 kB"
    assert [line.split() for line in lines[-2:]] == KERNEL_FILES
    every = run(*command, "-v", kernels).stdout
    assert [f"Kernels_{number}-gfx906.hsaco" in every for number in range(3)] == [True] * 3


@pytest.mark.slow
@pytest.mark.parametrize("command", [["device", "list"], ["inspect"]], ids=" ".join)
def test_unreadable_kernel_files_are_counted_separately(run: Run, kernels: Path, command: list[str]) -> None:
    damaged = kernels / "lib/rocblas/library/Kernels_1-gfx906.hsaco"
    damaged.write_bytes(damaged.read_bytes()[:50])
    lines = run(*command, kernels).stdout.splitlines()
    root = f"{kernels}/" if command == ["inspect"] else ""
    folder = f"{root}lib/rocblas/library"
    assert lines[-3] == f"{folder}: 2 kernel files with device code, 4.2 kB; 1 other file can't be read"
    document = json.loads(run("device", "list", kernels, "--json").stdout)
    assert document["unreadable"] == ["lib/rocblas/library/Kernels_1-gfx906.hsaco"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [["device", "list"], ["inspect"], ["targets", "runs-on", "gfx906"]],
    ids=" ".join,
)
def test_a_single_kernel_file_is_shown_by_name(run: Run, kernels: Path, command: list[str]) -> None:
    folder = kernels / "lib/rocblas/library"
    for number in (1, 2):
        (folder / f"Kernels_{number}-gfx906.hsaco").unlink()
    out = run(*command, kernels).stdout
    assert "lib/rocblas/library/Kernels_0-gfx906.hsaco" in out
    assert "kernel file" not in out


@pytest.mark.slow
def test_kernel_files_with_the_same_result_share_one_line(run: Run, kernels: Path) -> None:
    folder = kernels / "lib/rocblas/library"
    same = "(the same processor with the same features)"
    out = run("targets", "runs-on", "gfx906", folder).stdout
    assert out.splitlines() == [
        f"{folder}: 3 kernel files: gfx906 on {runtime} runtime: uses gfx906 in 3 bundles {same}"
        for runtime in ("a stock", "an extended")
    ]
    (folder / "Kernels_3-gfx906.hsaco").write_bytes(bundle_of("gfx1030"))
    lines = run("targets", "runs-on", "gfx906", folder).stdout.splitlines()
    other = f"{folder}/Kernels_3-gfx906.hsaco: gfx906 on a stock runtime: finds nothing in 1 bundle "
    assert [line for line in lines if line.startswith(other)] == [f"{other}(gfx1030: code for another processor)"]
    assert len(run("targets", "runs-on", "-v", "gfx906", folder).stdout.splitlines()) == 8


@pytest.mark.slow
def test_code_is_extracted_for_each_target_of_each_bundle(run: Run, tmp_path: Path) -> None:
    status, out, _ = run(
        "device", "extract", FIXTURES / "v22/libtwo.ccob.so", "-t", "gfx90a:xnack+", "-t", "gfx906", "-o", tmp_path
    )
    names = [f"libtwo.ccob.so.{number}.{target}.co" for number in (0, 1) for target in ("gfx906", "gfx90a-xnack+")]
    assert status == 0
    assert out.splitlines() == [str(tmp_path / name) for name in names]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert all((tmp_path / name).read_bytes()[:4] == b"\x7fELF" for name in names)


@pytest.mark.slow
def test_targets_to_extract_can_be_a_family(run: Run, tmp_path: Path) -> None:
    arguments = ("-t", "gfx103X-all;gfx906", "--allow-missing", "-o", tmp_path)
    status, out, err = run("device", "extract", FIXTURES / "v22/libtwo.plain.so", *arguments)
    assert (status, err) == (0, "")
    assert [Path(line).name.split(".")[-2] for line in out.splitlines()] == ["gfx906", "gfx1030"] * 2


@pytest.mark.slow
def test_a_bundle_that_declares_a_size_over_the_limit_is_not_extracted(run: Run, tmp_path: Path) -> None:
    bomb, output = tmp_path / "bomb.ccob", tmp_path / "code"
    data = bytearray((FIXTURES / "v22/saxpy.ccob.hipfb").read_bytes())
    data[8:24] = struct.pack("<QQ", 26 << 20, 5 << 30)  # less than 200 times its size
    bomb.write_bytes(data.ljust(26 << 20, b"\0"))
    status, _, err = run("device", "extract", bomb, "-o", output)
    message = (
        "contains a bundle of 5368709120 bytes; expected at most 4294967296, the current limit. Set a higher limit"
    )
    assert (status, err.count(message), output.exists()) == (2, 1, False)
    status, _, err = run("device", "extract", bomb, "-o", output, "--limit", "5")
    assert (status, "bytes; expected 5368709120, as its header declares" in err) == (2, True)
    assert not output.exists()


@pytest.mark.slow
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
def test_the_rule_option_selects_the_code(run: Run, tmp_path: Path, rule: str, target: str, status: int) -> None:
    source = FIXTURES / "v22/libtwo.plain.so"
    assert run("device", "extract", source, "-t", target, "--rule", rule, "-o", tmp_path)[0] == status
    assert bool(list(tmp_path.iterdir())) == (status == 0)


@pytest.mark.slow
def test_missing_code_is_reported_for_every_bundle_and_nothing_is_written(run: Run, tmp_path: Path) -> None:
    source = FIXTURES / "v22/libtwo.plain.so"
    status, _, err = run("device", "extract", source, "-t", "gfx942", "-t", "gfx906", "-o", tmp_path)
    assert status == 2
    found = (
        "has no code for gfx942 according to the rule 'exact'; expected one of its targets gfx906, gfx90a:xnack+, "
        "gfx1030"
    )
    assert err.splitlines() == [
        f"error: {source}: 2 problems",
        f"  {source}: bundle 0 at offset 0x1000: {found}",
        f"  {source}: bundle 1 at offset 0x6000: {found}",
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_exact_rule_names_the_available_variants(run: Run, tmp_path: Path) -> None:
    status, _, err = run("device", "extract", FIXTURES / "v22/saxpy.ccob.hipfb", "-t", "gfx90a", "-o", tmp_path)
    assert (status, err.endswith("gfx1100. Specify a variant, or choose another rule.\n")) == (2, True), err


@pytest.mark.slow
def test_code_is_extracted_from_wheels_and_folders(run: Run, tmp_path: Path) -> None:
    code = (FIXTURES / "elf/gfx906.co").read_bytes()
    files = {f"demo/{name}/kernels.hipfb": bundle_of(target) for name, target in (("a", "gfx906"), ("b", "gfx1030"))}
    wheel = make_wheel(tmp_path / "wheels", "demo", {"demo/code.co": code, "demo/text.txt": b"text", **files})
    status, out, err = run("device", "extract", wheel, "-t", "gfx906", "-o", tmp_path / "one")
    assert (status, err) == (0, "")
    written = {str(path.relative_to(tmp_path / "one")) for path in (tmp_path / "one").rglob("*") if path.is_file()}
    assert written == {Path(line).relative_to(tmp_path / "one").as_posix() for line in out.splitlines()}
    assert written == {"demo/code.co.0.gfx906.co", "demo/a/kernels.hipfb.0.gfx906.co"}
    status, out, err = run("device", "extract", wheel.parent, "-o", tmp_path / "all")
    assert (status, err, len(out.splitlines())) == (0, "", 3)


@pytest.mark.slow
def test_a_target_that_no_file_has_code_for_is_an_error(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "demo", {"demo/a.hipfb": bundle_of("gfx906")})
    status, _, err = run("device", "extract", wheel, "-t", "gfx1100", "-o", tmp_path / "out")
    assert (status, err.startswith(f"error: {wheel}!demo/a.hipfb: "), (tmp_path / "out").exists()) == (2, True, False)
    status, _, err = run("device", "extract", make_wheel(tmp_path, "text", {}), "-o", tmp_path / "out")
    assert (status, "no device code for AMD GPUs" in err) == (2, True)


@pytest.mark.slow
def test_a_member_with_a_path_outside_the_wheel_is_not_extracted(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "demo", {"../../climbed.hipfb": bundle_of("gfx906")})
    status, _, err = run("device", "extract", wheel, "-o", tmp_path / "out/deep")
    found = "a path that points outside the wheel; expected a name inside the wheel's folder"
    assert (status, err) == (2, f"error: {wheel}!../../climbed.hipfb: {found}\n")
    assert list(tmp_path.rglob("climbed*")) == []


@pytest.fixture
def codes(run: Run, tmp_path: Path) -> list[Path]:
    """Return extracted code objects."""
    run("device", "extract", FIXTURES / "v22/saxpy.hipfb", "-t", "gfx906,gfx1030", "-o", tmp_path / "code")
    return sorted((tmp_path / "code").iterdir(), reverse=True)


@pytest.mark.slow
def test_code_objects_are_combined_into_a_bundle(run: Run, tmp_path: Path, codes: list[Path]) -> None:
    output = tmp_path / "x.hipfb"
    assert run("device", "bundle", *codes, "-o", output) == (
        0,
        f"{output}: plain, 11.8 kB, for gfx1030, gfx906\n",
        "",
    )
    assert "host-x86_64-unknown-linux-- (host)" in run("device", "list", "-v", output).stdout


@pytest.mark.slow
def test_json_describes_a_compressed_bundle(run: Run, tmp_path: Path, codes: list[Path]) -> None:
    output = tmp_path / "x.hipfb"
    done = run("device", "bundle", *codes, "-o", output, "--compress", "--header-version", "3", "--json")
    document = json.loads(done.stdout)
    assert document["size"] == output.stat().st_size
    del document["size"]
    assert document == {
        "schema": "rocwheel.device-bundle/1",
        "path": str(output),
        "targets": ["gfx1030", "gfx906"],
        "code_object_version": 6,
        "version": 3,
        "raw_size": 11800,
    }
    assert output.read_bytes()[:6] == b"CCOB\3\0"


@pytest.mark.slow
def test_invalid_input_is_reported_and_nothing_is_written(run: Run, tmp_path: Path, codes: list[Path]) -> None:
    status, out, err = run("device", "bundle", *codes, codes[0], "/dev/null", "-o", tmp_path / "x.hipfb")
    assert (status, out) == (2, "")
    assert err == "error: /dev/null: is neither a regular file nor a folder; expected a file or a folder\n"
    status, out, err = run("device", "bundle", *codes, codes[0], "-o", tmp_path / "x.hipfb")
    assert (status, out) == (2, "")
    assert err == (
        f"error: {codes[0]}: a code object for gfx906, like {codes[0]}; expected one code object for each target\n"
    )
    assert not (tmp_path / "x.hipfb").exists()


@pytest.mark.slow
def test_an_input_code_object_is_never_overwritten(run: Run, tmp_path: Path, codes: list[Path]) -> None:
    before = codes[1].read_bytes()
    link = tmp_path / "link.co"
    link.symlink_to(codes[1])
    for output in (codes[1], link):
        status, out, err = run("device", "bundle", *codes, "-o", output)
        assert (status, out) == (2, "")
        expected = "a file that isn't one of the code objects. Specify another output."
        assert (
            err == f"error: {output}: is the same file as {codes[1]}, which goes into the bundle; expected {expected}\n"
        )
        assert codes[1].read_bytes() == before
