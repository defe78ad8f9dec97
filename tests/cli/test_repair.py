"""``rocwheel repair``: what it prints and how it ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.facts import read_elf
from tests.repair.wheels import repaired_plugin
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.wheels import make_wheel, members, write_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = [pytest.mark.slow, needs_compiler]


OPENER = 'void *dlopen(const char *, int); void *f(void) { return dlopen("libamdhip64.so.7", 1); }'


def test_a_dry_run_shows_the_changes_and_writes_nothing(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path
) -> None:
    done = run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out", "--dry-run")
    assert done.status == 0
    assert done.stdout == (
        "plugin-1.0-py3-none-linux_x86_64.whl -> plugin-1.0-py3-none-manylinux_2_5_x86_64.whl: 4 changes\n"
        "  plugin/_wrong.so: RUNPATH\n"
        "    - $ORIGIN/../rocm/lib:local/lib:/opt/rocm/lib\n"
        "    + $ORIGIN/../_rocm_sdk_core/lib:$ORIGIN/../_rocm_sdk_core/lib/rocm_sysdeps/lib\n"
        "    = libamdhip64.so.7, librocm_sysdeps_drm.so.2: in rocm-sdk-core\n"
        "  plugin-1.0.dist-info/METADATA: Requires-Dist\n"
        "    + rocm-sdk-core==7.1.*\n"
        "  plugin-1.0.dist-info/WHEEL: Tag\n"
        "    - py3-none-linux_x86_64\n"
        "    + py3-none-manylinux_2_5_x86_64\n"
        "  plugin-1.0.dist-info/WHEEL: Root-Is-Purelib\n"
        "    - true\n"
        "    + false\n"
        "  drops 2 folders that might contain libraries on some machines; --keep keeps them\n"
        "    ~ /opt/rocm/lib (1 file)\n"
        "    ~ rocm/lib (1 file)\n"
    )
    assert not (tmp_path / "out").exists()


def test_check_fails_if_a_wheel_would_change(run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path) -> None:
    assert run("repair", plugin_wheel, "--with", sdk_wheel, "--check").status == 1
    run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out")
    assert run("repair", repaired_plugin(tmp_path / "out"), "--with", sdk_wheel, "--check").status == 0


def test_json_lists_the_written_wheels(run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path) -> None:
    done = run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out", "--json")
    document = json.loads(done.stdout)
    assert (document["schema"], document["written"]) == ("rocwheel.repair/1", [str(repaired_plugin(tmp_path / "out"))])


def test_quiet_mode_prints_no_changes(run: Run, plugin_wheel: Path, tmp_path: Path) -> None:
    for options in (("--dry-run",), ("--check",), ("--output", tmp_path / "out")):
        assert run("repair", plugin_wheel, *options, "--quiet").stdout == ""


def test_identical_changes_are_grouped_into_one_entry(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", *(Lib(f"{name}.so", (), "/tmp/build") for name in "abcd"))
    files: dict[str, Path | bytes] = {f"ext/{path.name}": path for path in sorted(tree.glob("*.so"))}
    wheel = make_wheel(tmp_path / "dist", "ext", files, tag="py3-none-manylinux_2_5_x86_64")
    lines = run("repair", wheel, "--dry-run").stdout.splitlines()
    assert lines == [f"{wheel.name}: 4 changes", "  4 files: RUNPATH -> none", "    - /tmp/build"]
    every = run("repair", wheel, "--dry-run", "-v").stdout.splitlines()
    assert [line for line in every if line.endswith(": RUNPATH -> none")] == [
        f"  ext/{name}.so: RUNPATH -> none" for name in "abcd"
    ]


def test_unresolved_libraries_of_many_unchanged_files_are_counted(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", *(Lib(f"{name}.so", ("libnowhere.so.1",)) for name in "abcde"))
    files: dict[str, Path | bytes] = {f"ext/{path.name}": path for path in sorted(tree.glob("*.so"))}
    wheel = make_wheel(tmp_path / "dist", "ext", files, tag="py3-none-manylinux_2_5_x86_64")
    assert run("repair", wheel, "--dry-run").stdout.splitlines() == [
        f"{wheel.name}: no changes",
        "  5 files unchanged",
        "    = libnowhere.so.1 (for 5 files): not found",
    ]


def test_the_last_of_rpath_and_no_rpath_wins(run: Run, plugin_wheel: Path) -> None:
    given = [
        run("repair", plugin_wheel, "--dry-run", *options).stdout
        for options in (("--rpath", "--no-rpath"), ("--no-rpath",))
    ]
    assert given[0] == given[1]


def test_a_pin_without_effect_is_reported(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/__init__.py": b""}, tag="py3-none-any")
    done = run("repair", wheel, "--check", "--pin", "minor")
    told = "--pin minor has no effect, because no requirements for --with packages are added to the wheel"
    assert (done.status, told in " ".join(done.stderr.split())) == (0, True)


def test_wheels_of_one_folder_can_be_pinned_to_each_other(run: Run, tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_wheel(tmp_path / "dist", name, {f"{name}/__init__.py": b""}, tag="py3-none-any")
    done = run("repair", tmp_path / "dist", "--check", "--pin", "minor")
    assert (done.status, done.stderr) == (0, "")


def test_requirements_based_on_the_known_layout_of_a_package_are_reported(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7",)))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so"})
    done = run("repair", wheel, "--dry-run")
    assert done.status == 0
    assert done.stderr.splitlines() == [
        (
            "note ext-1.0-py3-none-linux_x86_64.whl: Requires-Dist: rocm-sdk-core>=7,<11 is based on the package's "
            "known layout: "
            "to pin its minor version, add the package with --with"
        )
    ]
    assert run("repair", wheel, "--dry-run", "--quiet").stderr == ""


def test_requirements_with_a_version_are_not_reported_as_unpinned(run: Run, tmp_path: Path) -> None:
    """Where the package at hand takes the place of a path that led to a ROCm, its minor version is required."""
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7",), run_path="/opt/rocm/lib"))
    hip = build_tree(tmp_path / "hip", Lib("libamdhip64.so.7", soname="libamdhip64.so.7"))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so"})
    files = {"_rocm_sdk_core/lib/libamdhip64.so.7": hip / "libamdhip64.so.7"}
    core = make_wheel(tmp_path / "sdk", "rocm-sdk-core", files, version="7.2.4")
    done = run("repair", wheel, "--toolkit", "sdk", "--with", core, "--dry-run")
    assert "+ rocm-sdk-core==7.2.*" in " ".join(done.stdout.split())
    assert "allows any version" not in done.stderr


def test_system_libraries_from_the_settings_need_no_repair(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libvendor.so.1",)))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so"}, tag="py3-none-manylinux_2_5_x86_64")
    config = tmp_path / "settings.toml"
    config.write_text('[tool.rocwheel.audit]\nsystem-libraries = ["libvendor.so.1"]\n')
    assert run("repair", wheel, "--check").status == 1
    assert run("repair", wheel, "--check", "--config", config).status == 0


@pytest.mark.parametrize("way", ["option", "settings"])
def test_libraries_opened_with_dlopen_get_a_run_path_entry_and_a_requirement(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.chdir(tmp_path)
    tree = build_tree(tmp_path / "tree", Lib("a.so", source=OPENER, options=("-lc",)))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so"})
    if way == "settings":
        (tmp_path / "pyproject.toml").write_text('[tool.rocwheel.audit.dlopen]\n"ext/*" = ["libamdhip64.so.7"]\n')
    run("repair", wheel, "--output", "out", *(("--dlopen", "libamdhip64.so.7") if way == "option" else ()))
    (repaired,) = (tmp_path / "out").glob("*.whl")
    after = members(repaired)
    assert read_elf(after["ext/a.so"], name="a").runpath == "$ORIGIN/../_rocm_sdk_core/lib"
    assert b"Requires-Dist: rocm-sdk-core>=7,<11\n" in after["ext-1.0.dist-info/METADATA"]


def test_all_wheels_of_a_folder_are_repaired_into_the_default_output_folder(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    assert run("repair", plugin_wheel.parent, "--with", sdk_wheel).status == 0
    assert [path.name for path in (tmp_path / "work" / "repaired").iterdir()] == [
        repaired_plugin(tmp_path / "work" / "repaired").name
    ]


def test_libraries_left_to_the_system_are_reported(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libcudart.so.12", "libamdhip64.so.7"), "/usr/local/cuda/lib64"))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so"}, tag="py3-none-manylinux_2_5_x86_64")
    done = run("repair", wheel, "--dry-run")
    assert done.stdout.splitlines()[-2:] == [
        "  ext/a.so: unchanged",
        "    = libcudart.so.12, libamdhip64.so.7: if the system or another package has it in /usr/local/cuda/lib64",
    ]
    assert done.status == 0
    kept = "1 file keeps the run paths to libraries that weren't specified, in /usr/local/cuda/lib64"
    instead = "To use the SDK's packages for every library that they have, add --toolkit sdk"
    assert done.stderr == f"note {wheel.name}: is for CUDA because of libcudart.so.12: {kept}. {instead}\n"
    asked = run("repair", wheel, "--dry-run", "--toolkit", "system")
    assert (asked.status, asked.stderr) == (0, f"note {wheel.name}: as requested, {kept}\n")
    told = json.loads(run("repair", wheel, "--dry-run", "--toolkit", "sdk", "--json").stdout)["wheels"][0]
    assert told["finds"] == {
        "ext/a.so": [
            {"library": "libcudart.so.12", "where": "kept", "place": "/usr/local/cuda/lib64"},
            {"library": "libamdhip64.so.7", "where": "package", "place": "rocm-sdk-core"},
        ]
    }
    assert told["edits"]["ext/a.so"]["value"] == "$ORIGIN/../_rocm_sdk_core/lib:/usr/local/cuda/lib64"


def test_an_unchanged_file_is_reported_with_the_reason(run: Run, tmp_path: Path) -> None:
    tree = build_tree(
        tmp_path / "tree",
        Lib("a.so", ("libmid.so",), "/opt/tool/lib:$ORIGIN/lib:$ORIGIN/other", is_rpath=True),
        Lib("lib/libmid.so", ("libtool.so.3", "libq.so")),
        Lib("other/libq.so"),
    )
    files: dict[str, Path | bytes] = {f"ext/{path.relative_to(tree)}": path for path in sorted(tree.rglob("*.so"))}
    wheel = make_wheel(tmp_path / "dist", "ext", files, tag="py3-none-manylinux_2_5_x86_64")
    done = run("repair", wheel, "--dry-run")
    reason = "because ext/lib/libmid.so would no longer find libtool.so.3 in /opt/tool/lib"
    assert f"  ext/lib/libmid.so: left unchanged, {reason}\n" in done.stdout


def test_similar_findings_are_counted_and_json_lists_all(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", *(Lib(f"{name}.so", ("libnowhere.so.1",)) for name in "abcde"))
    files: dict[str, Path | bytes] = {f"ext/{path.name}": path for path in sorted(tree.glob("*.so"))}
    wheel = make_wheel(tmp_path / "dist", "ext", files, tag="py3-none-manylinux_2_5_x86_64")
    done = run("repair", wheel, "--dry-run")
    why = "needs libnowhere.so.1, but neither the packages, the SDK, nor the allowed system libraries include it"
    assert done.status == 1
    assert done.stderr.splitlines() == [
        f"not repaired {wheel.name}: 5 findings for unresolved-library, such as",
        f"    ext/a.so {why}",
        f"    ext/b.so {why}",
        f"    ext/c.so {why}",
        "    and 2 more (-v)",
    ]
    (told,) = json.loads(run("repair", wheel, "--dry-run", "--json").stdout)["wheels"]
    assert told["unmended"] == [f"ext/{name}.so {why}" for name in "abcde"]
    assert told["unmended_rules"] == ["unresolved-library"] * 5


def test_the_libraries_a_file_finds_are_listed_once_below_all_its_changes(run: Run, tmp_path: Path) -> None:
    tree = build_tree(
        tmp_path / "tree", Lib("a.so", ("libx.so.1",), "/tmp/me:/opt/x"), Lib("b.so", ("libx.so.1",), "/opt/x")
    )
    files: dict[str, Path | bytes] = {f"ext/{path.name}": path for path in sorted(tree.glob("*.so"))}
    wheel = make_wheel(tmp_path / "dist", "ext", files, tag="py3-none-manylinux_2_5_x86_64")
    contents = {name: data for name, data in members(wheel).items() if not name.endswith("/RECORD")}
    write_wheel(wheel, "ext-1.0.dist-info", contents, dict.fromkeys(files, 0o100757))
    assert run("repair", wheel, "--dry-run").stdout.splitlines()[1:] == [
        "  ext/a.so: RUNPATH",
        "    - /tmp/me:/opt/x",
        "    + /opt/x",
        "  ext/a.so: mode",
        "    - 0757",
        "    + 0755",
        "    = libx.so.1: if the system or another package has it in /opt/x",
        "  ext/b.so: mode",
        "    - 0757",
        "    + 0755",
        "  ext/b.so: its run path is unchanged",
        "    = libx.so.1: if the system or another package has it in /opt/x",
    ]
