"""Tests of `rocwheel.repair.write`."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.facts import read_elf
from rocwheel.wheels.zip_directory import read_directory
from tests.repair.wheels import repaired_plugin, with_members
from tests.support.bills import pedigree, record_digest, with_bill
from tests.support.environments import make_venv, pip_for
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from tests.support.command_line import Run


pytestmark = [pytest.mark.slow, needs_compiler]


def test_the_repaired_wheel_has_no_findings_and_loads_in_an_empty_environment(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path
) -> None:
    assert run("audit", plugin_wheel, "--with", sdk_wheel).status == 1
    done = run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out", "--pin", "minor")
    assert done.status == 0, done.stderr
    repaired = repaired_plugin(tmp_path / "out")
    assert run("audit", repaired, "--with", sdk_wheel).stdout.splitlines()[-1].endswith("0 errors, 0 warnings, 0 notes")
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", f"--find-links={sdk_wheel.parent}"]
    subprocess.run([*pip, "--target", site, repaired], check=True)
    load = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    for name in ("_wrong.so", "_right.so"):
        subprocess.run([sys.executable, "-c", load, site / "plugin" / name], env={}, cwd="/", check=True)


def test_wrong_run_paths_get_the_shortest_list_and_correct_files_are_unchanged(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path
) -> None:
    run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out")
    before, after = members(plugin_wheel), members(repaired_plugin(tmp_path / "out"))
    assert read_elf(after["plugin/_wrong.so"], name="wrong").runpath == (
        "$ORIGIN/../_rocm_sdk_core/lib:$ORIGIN/../_rocm_sdk_core/lib/rocm_sysdeps/lib"
    )
    info = {f"plugin-1.0.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD")}
    assert {name for name in before if before[name] != after[name]} == {"plugin/_wrong.so", *info}
    assert before.keys() == after.keys()


@pytest.mark.parametrize(
    ("tag", "run_path", "status"),
    [("one Python", "/builds/x", 0), ("py3-none", "$ORIGIN/../lib/python3/site-packages/q", 1)],
)
def test_a_program_that_pip_installs_either_starts_or_is_reported(
    run: Run, tmp_path: Path, tag: str, run_path: str, status: int
) -> None:
    source = "void q(void); int main(void) { q(); return 0; }"
    library = build_tree(tmp_path / "tree", Lib("libq.so", source="void q(void) {}")) / "libq.so"
    command = ["gcc", "-x", "c", "-", "-x", "none", "-o", str(tmp_path / "tool"), str(library)]
    subprocess.run([*command, f"-Wl,-rpath,{run_path}"], check=True, input=source.encode())
    files = {"demo-1.0.data/scripts/tool": tmp_path / "tool", "q/libq.so": library}
    python = "cp{0}{1}-cp{0}{1}".format(*sys.version_info)
    tag = f"{python if tag == 'one Python' else tag}-linux_x86_64"
    wheel = make_wheel(tmp_path / "dist", "demo", files, tag=tag)
    assert run("repair", wheel, "--output", tmp_path / "out").status == status
    (repaired,) = (tmp_path / "out").glob("*.whl")
    assert run("audit", repaired, "--select", "un*", "--select", "run-path-*").status == status
    environment = make_venv(tmp_path / "env")
    subprocess.run([*pip_for(environment), "install", "--quiet", "--no-index", str(repaired)], check=True)
    tool = tmp_path / "env/bin/tool"
    assert read_elf(tool.read_bytes(), name="tool").runpath == (
        None if status else f"$ORIGIN/../lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/q"
    )
    assert (subprocess.run([tool], env={}, check=False, capture_output=True).returncode != 0) == (status != 0)


def test_the_sbom_records_the_repair(run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path) -> None:
    billed = with_members(plugin_wheel, tmp_path / "billed", {**with_bill("plugin")})
    assert run("repair", billed, "--with", sdk_wheel, "--output", tmp_path / "out", "--pin", "minor").status == 0
    repaired = repaired_plugin(tmp_path / "out")
    notes, record = pedigree(repaired)
    assert (notes, record) == ("rocwheel repair: changed plugin/_wrong.so, METADATA, WHEEL", record_digest(billed))
    assert "record-wrong" not in run("audit", repaired, "--with", sdk_wheel).stdout


def test_unchanged_members_are_not_repacked(run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path) -> None:
    run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out")

    def packed(wheel: Path, name: str) -> bytes:
        member = next(member for member in read_directory(wheel) if member.name == name)
        with member.packed.view() as data:
            return bytes(data)

    for name in ("plugin/_right.so", "plugin/__init__.py", "plugin-1.0.dist-info/licenses/LICENSE"):
        assert packed(plugin_wheel, name) == packed(repaired_plugin(tmp_path / "out"), name)


def test_changed_and_unchanged_members_keep_their_modes(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path
) -> None:
    run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out")
    modes = {member.name: oct(member.mode & 0o777) for member in read_directory(repaired_plugin(tmp_path / "out"))}
    assert {modes[f"plugin/{name}"] for name in ("_wrong.so", "_right.so")} == {"0o755"}
    assert modes["plugin/__init__.py"] == "0o644"


def test_a_second_repair_copies_the_wheel_byte_for_byte(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path
) -> None:
    run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "once")
    once = repaired_plugin(tmp_path / "once")
    assert (
        run("repair", once, "--with", sdk_wheel, "--output", tmp_path / "twice").stdout == f"{once.name}: no changes\n"
    )
    assert once.read_bytes() == repaired_plugin(tmp_path / "twice").read_bytes()


def test_repeated_repairs_produce_the_same_bytes(run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path) -> None:
    run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "a")
    os.utime(plugin_wheel, (0, 0))
    run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "b")
    assert repaired_plugin(tmp_path / "a").read_bytes() == repaired_plugin(tmp_path / "b").read_bytes()


def test_several_wheels_are_repaired_in_one_run(run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7",), "/opt/rocm/lib"))
    other = make_wheel(tmp_path / "dist", "other", {"other/a.so": tree / "a.so"})
    assert run("repair", plugin_wheel, other, "--with", sdk_wheel, "--output", tmp_path / "out").status == 0
    assert [path.name.partition("-")[0] for path in sorted((tmp_path / "out").iterdir())] == ["other", "plugin"]


def test_many_libraries_need_few_open_files(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", (), "/opt/rocm/lib"))
    wheel = make_wheel(tmp_path / "dist", "many", {f"many/m{number}.so": tree / "a.so" for number in range(150)})
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/proc/self/fd").iterdir()]) + 100, limits[1]))
    try:
        done = run("repair", wheel, "--output", tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert done.status == 0, done.stderr
    assert "/opt/rocm" not in run("runpath", "show", next((tmp_path / "out").iterdir())).stdout


def test_a_wheel_without_record_is_not_repaired(run: Run, plugin_wheel: Path, tmp_path: Path) -> None:
    bare = with_members(plugin_wheel, tmp_path / "bare", {"plugin-1.0.dist-info/RECORD": None})
    done = run("repair", bare, "--output", tmp_path / "out")
    assert (done.status, done.stderr) == (
        2,
        f"error: {bare}: plugin-1.0.dist-info has no RECORD. Build the wheel again.\n",
    )


def test_a_wheel_with_a_file_that_differs_from_record_is_not_repaired(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "pure", {"pure/a.py": b"x"}, tag="py3-none-any")
    record = {"pure-1.0.dist-info/RECORD": members(wheel)["pure-1.0.dist-info/RECORD"]}
    wheel = with_members(wheel, tmp_path / "changed", {"pure/a.py": b"y", **record})
    error = (
        f"error: {wheel}!pure-1.0.dist-info/RECORD: has a different hash for pure/a.py. "
        "Build or download the wheel again.\n"
    )
    for option in (("--check",), ("--output", tmp_path / "out")):
        done = run("repair", wheel, *option)
        assert (done.status, done.stderr) == (2, error)
    assert not list(tmp_path.glob("out/*"))


def test_a_correct_hash_in_another_encoding_is_rewritten(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "pure", {"pure/a.py": b"x"}, tag="py3-none-any")
    record = members(wheel)["pure-1.0.dist-info/RECORD"]
    row = next(line for line in record.splitlines() if line.startswith(b"pure/a.py,"))
    padded = record.replace(row, row.replace(b",1", b"=,1"))
    wheel = with_members(wheel, tmp_path / "changed", {"pure-1.0.dist-info/RECORD": padded})
    done = run("repair", wheel, "--check")
    assert done.status == 1
    assert done.stdout == (
        f"{wheel.name}: 1 change\n"
        "  pure-1.0.dist-info/RECORD: rewritten\n"
        "    - RECORD has the hash of pure/a.py in base64 with padding; expected URL-safe base64 without padding\n"
    )
    run("repair", wheel, "--output", tmp_path / "out")
    assert run("repair", tmp_path / "out" / wheel.name, "--check").status == 0


def test_signatures_of_a_changed_record_are_dropped_and_reported(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path
) -> None:
    info = "plugin-1.0.dist-info"
    with zipfile.ZipFile(plugin_wheel, "a") as archive:
        archive.writestr(f"{info}/RECORD.jws", b"{}")
        archive.writestr(f"{info}/RECORD.p7s", b"signed")
    done = run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out", "--verbose")
    removed = "removed, because the signature is for the old RECORD: sign the repaired wheel"
    assert (
        f"  {info}/RECORD.jws: {removed}\n"
        "    - a signature of RECORD\n"
        f"  {info}/RECORD.p7s: {removed}\n"
        "    - a signature of RECORD\n"
    ) in done.stdout
    assert not {f"{info}/RECORD.jws", f"{info}/RECORD.p7s"} & members(repaired_plugin(tmp_path / "out")).keys()


def test_signatures_of_a_correct_wheel_are_kept(run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path) -> None:
    run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out")
    repaired = repaired_plugin(tmp_path / "out")
    with zipfile.ZipFile(repaired, "a") as archive:
        archive.writestr("plugin-1.0.dist-info/RECORD.jws", b"{}")
    run("repair", repaired, "--with", sdk_wheel, "--output", tmp_path / "again")
    assert repaired_plugin(tmp_path / "again").read_bytes() == repaired.read_bytes()


def test_the_error_for_a_damaged_wheel_names_the_member(run: Run, plugin_wheel: Path, tmp_path: Path) -> None:
    member = next(member for member in read_directory(plugin_wheel) if member.name == "plugin/_wrong.so")
    data = bytearray(plugin_wheel.read_bytes())
    data[member.packed.offset + 40] ^= 0xFF
    plugin_wheel.write_bytes(data)
    done = run("repair", plugin_wheel, "--output", tmp_path / "out")
    assert done.status == 2
    assert f"{plugin_wheel}!plugin/_wrong.so" in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_original_wheel_is_never_overwritten(run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path) -> None:
    run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out")
    repaired = repaired_plugin(tmp_path / "out")
    before = repaired.read_bytes()
    done = run("repair", repaired, "--with", sdk_wheel, "--output", tmp_path / "out")
    assert done.status == 2
    assert done.stderr.endswith(
        f"error: {tmp_path / 'out'}: contains {repaired.name} itself; expected another folder. Change --output.\n"
    )
    assert repaired.read_bytes() == before


def test_an_output_folder_that_contains_a_wheel_is_refused_under_any_spelling_and_name(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(plugin_wheel.parent)
    done = run("repair", plugin_wheel, "--with", sdk_wheel, "--output", ".")
    assert done.status == 2
    assert done.stderr.endswith(
        f"error: .: contains {plugin_wheel.name} itself; expected another folder. Change --output.\n"
    )
    assert list(plugin_wheel.parent.iterdir()) == [plugin_wheel]


def test_two_wheels_with_the_same_output_name_are_refused_before_writing(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / plugin_wheel.name.replace("linux_x86_64", "manylinux_2_4_x86_64")
    other.write_bytes(plugin_wheel.read_bytes())
    done = run("repair", plugin_wheel, other, "--with", sdk_wheel, "--output", tmp_path / "out")
    assert done.status == 2
    assert done.stderr.endswith(
        f"error: {other}: would get the same name as {plugin_wheel}: plugin-1.0-py3-none-manylinux_2_5_x86_64.whl. "
        "Write the repaired wheels to different folders.\n"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("place", ["file", "file/out", "dangling"])
def test_a_destination_that_is_not_a_folder_is_refused_before_the_repair(
    run: Run, plugin_wheel: Path, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    culprit = tmp_path / place.partition("/")[0]
    expected = "expected an output folder. Change --output."
    assert run("repair", plugin_wheel, "--output", tmp_path / place) == (
        2,
        "",
        f"error: {culprit}: isn't a folder; {expected}\n",
    )
