"""``_rocm_init.py`` of a repaired wheel."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from packaging.metadata import Metadata

from tests.repair.wheels import repaired_plugin
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = [pytest.mark.slow, needs_compiler]


def test_the_initializer_loads_the_needed_libraries_in_order(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libhipblas.so.3", "libamdhip64.so.7", "librocsolver.so.0")))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so", "ext/__init__.py": b""})
    run("repair", wheel, "--output", tmp_path / "out", "--init")
    (repaired,) = (tmp_path / "out").glob("*.whl")
    calls: list[dict[str, object]] = []

    sdk, facts = ModuleType("rocm_sdk"), ModuleType("rocm_sdk._dist_info")
    vars(sdk)["initialize_process"] = lambda **arguments: calls.append(arguments)
    vars(facts)["ALL_LIBRARIES"] = {"amdhip64": None, "hipblas": None, "rccl": None}
    space: dict[str, Any] = {}
    exec(members(repaired)["ext/_rocm_init.py"], space)
    monkeypatch.setitem(sys.modules, "rocm_sdk", sdk)
    monkeypatch.setitem(sys.modules, "rocm_sdk._dist_info", facts)
    space["initialize"]()
    assert calls == [{"preload_shortnames": ["hipblas", "amdhip64"]}]


@pytest.mark.parametrize(
    ("pin", "version"), [("exact", "7.1.2"), ("minor", "7.1.*")], ids=["exactly", "to major and minor"]
)
def test_the_initializer_is_locked_to_the_given_version(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path, pin: str, version: str
) -> None:
    run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out", "--init", "--pin", pin)
    text = members(repaired_plugin(tmp_path / "out"))["plugin/_rocm_init.py"].decode()
    assert f'        check_version="{version}",\n        fail_on_version_mismatch=True,\n' in text


def test_the_initializer_adds_a_requirement_on_the_package_it_imports(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path
) -> None:
    run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out", "--init", "--pin", "minor")
    metadata = Metadata.from_email(members(repaired_plugin(tmp_path / "out"))["plugin-1.0.dist-info/METADATA"])
    assert [str(one) for one in metadata.requires_dist or ()] == ["rocm-sdk-core==7.1.*", "rocm==7.1.*"]
    again = run("repair", repaired_plugin(tmp_path / "out"), "--with", sdk_wheel, "--init", "--pin", "minor", "--check")
    assert again.status == 0


def test_repair_explains_how_to_call_the_initializer(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path
) -> None:
    done = run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out", "--init")
    assert (
        "plugin/_rocm_init.py isn't called yet: add 'from plugin import _rocm_init; _rocm_init.initialize()' at the "
        "top of plugin/__init__.py, before the first import of an extension"
    ) in done.stdout + done.stderr


def test_the_initializer_only_warns_of_a_version_mismatch_if_requested(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path
) -> None:
    options = ("--init", "--pin", "minor", "--mismatch", "warn")
    run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out", *options)
    text = members(repaired_plugin(tmp_path / "out"))["plugin/_rocm_init.py"].decode()
    assert '        check_version="7.1.*",\n        fail_on_version_mismatch=False,\n' in text


def test_the_initializer_is_added_only_once(run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path) -> None:
    run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out", "--init")
    repaired = repaired_plugin(tmp_path / "out")
    done = run("repair", repaired, "--with", sdk_wheel, "--init", "--check")
    assert (done.status, done.stdout) == (0, f"{repaired.name}: no changes\n")


def test_an_existing_different_initializer_is_not_overwritten(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7",)))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so", "ext/_rocm_init.py": b"# mine\n"})
    done = run("repair", wheel, "--init", "--check")
    assert done.status == 2
    assert done.stderr == (
        f"error: {wheel}!ext/_rocm_init.py: differs from the file that a repair adds. "
        "Build the wheel without this file, or repair without --init.\n"
    )


def test_the_initializer_needs_a_python_package(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7",)))
    files: dict[str, Path | bytes] = {"a.so": tree / "a.so", "ext.libs/b.so": tree / "a.so"}
    wheel = make_wheel(tmp_path / "dist", "ext", files)
    done = run("repair", wheel, "--init", "--check")
    assert done.status == 2
    assert done.stderr == (
        f"error: {wheel}: has no library in a Python package; expected a Python package with a library, to which "
        "a repair adds _rocm_init.py. Repair without --init.\n"
    )


def test_the_initializer_lists_the_libraries_it_does_not_load(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7", "librocsolver.so.0", "libc.so.6")))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so"})
    run("repair", wheel, "--output", tmp_path / "out", "--init")
    (repaired,) = (tmp_path / "out").glob("*.whl")
    text = members(repaired)["ext/_rocm_init.py"].decode()
    assert (
        "    # Run paths point to these libraries, because rocm_sdk has no names for them: librocsolver.so.0\n" in text
    )


def test_an_initializer_that_checks_the_version_needs_a_given_version(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7",), "$ORIGIN/../_rocm_sdk_core/lib"))
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/a.so": tree / "a.so"}, requires=("rocm-sdk-core==7.2.0",))
    assert run("repair", wheel, "--check", "--pin", "exact", "--init").status == 2
    assert run("repair", wheel, "--dry-run", "--init").status == 0
