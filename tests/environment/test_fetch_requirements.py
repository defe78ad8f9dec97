"""Required packages, fetched from a folder that stands for an index."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.environment.fetch_requirements import (
    IndexOptions,
    fetched_requirements,
    names_selector,
    requirements_to_fetch,
)
from rocwheel.index.write_index import write_index
from rocwheel.wheels.sdist import write_sdist
from tests.support.loopback import served
from tests.support.pe_files import pe_file
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

UV = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


@pytest.fixture(autouse=True)
def without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pip look into no other place than the folder that a test names."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


@pytest.fixture
def links(tmp_path: Path) -> Path:
    """Return a folder with the wheels ``helper`` 1.0 and 2.0, of which the second requires ``deeper``, and that."""
    folder = tmp_path / "links"
    folder.mkdir()
    make_wheel(folder, "helper", {"helper/__init__.py": b""}, tag="py3-none-any")
    make_wheel(folder, "helper", {"helper/__init__.py": b""}, version="2.0", tag="py3-none-any", requires=("deeper",))
    make_wheel(folder, "deeper", {"deeper/__init__.py": b""}, tag="py3-none-any")
    return folder


def demo(folder: Path, *requires: str, tag: str = "py3-none-any") -> Path:
    return make_wheel(folder, "demo", {"demo/__init__.py": b""}, tag=tag, requires=requires)


@pytest.mark.parametrize(
    ("requires", "tag", "wanted"),
    [
        (("helper>=1", "other[x]==2"), "py3-none-any", ["helper>=1", "other[x]==2"]),
        (("helper; extra == 'gpu'",), "py3-none-any", []),
        (("helper; sys_platform == 'win32'",), "py3-none-manylinux_2_17_x86_64", []),
        (("helper; python_version < '3.12'",), "cp313-cp313-manylinux_2_17_x86_64", []),
        (("helper; python_version > '3.12'",), "cp313-cp313-manylinux_2_17_x86_64", ["helper"]),
        (("helper @ https://example.org/helper.tar.gz",), "py3-none-any", []),
        (("core==1+gfx942.is.not.in.this.release.which.has.gfx906",), "py3-none-any", []),
        (("demo", "not a requirement"), "py3-none-any", []),
    ],
)
def test_requirements_without_unused_extras_are_fetched(
    tmp_path: Path, requires: tuple[str, ...], tag: str, wanted: list[str]
) -> None:
    wheel = demo(tmp_path, *requires, tag=tag)
    assert requirements_to_fetch([wheel], [wheel]) == wanted


def test_fetched_packages_and_their_requirements_exist_until_the_context_ends(tmp_path: Path, links: Path) -> None:
    with fetched_requirements([demo(tmp_path, "helper")], [], IndexOptions(find_links=(str(links),))) as (site,):
        assert {path.name for path in site.glob("*.dist-info")} == {"helper-2.0.dist-info", "deeper-1.0.dist-info"}
    assert not site.parent.exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from rocwheel.environment import fetch_requirements
from rocwheel.environment.fetch_requirements import IndexOptions, fetched_requirements
fetch_requirements._install = lambda _: os.kill(os.getpid(), signal.SIGKILL)
with fetched_requirements([Path(sys.argv[1])], [], IndexOptions()):
    pass
"""


def test_packages_fetched_by_a_killed_run_are_removed_by_the_next(
    tmp_path: Path, links: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    wheel = demo(tmp_path, "helper")
    killed = subprocess.run([sys.executable, "-c", KILLED, wheel], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(temporary.iterdir())) == 1
    with fetched_requirements([wheel], [], IndexOptions(find_links=(str(links),))) as (site,):
        assert list(temporary.iterdir()) == [site.parent]
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(UV is None, reason="needs uv")
def test_uv_is_used_when_pip_is_missing(tmp_path: Path, links: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda _: UV)
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    options = IndexOptions(find_links=(str(links),))
    with fetched_requirements([demo(tmp_path, "helper")], [], options) as (site,):
        assert {path.name for path in site.glob("*.dist-info")} == {"helper-2.0.dist-info", "deeper-1.0.dist-info"}
    with (
        pytest.raises(InputError, match=r"can't fetch the required packages .*absent-package"),
        fetched_requirements([demo(tmp_path, "absent-package")], [], options),
    ):
        pass


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_wheels_for_windows_are_fetched_for_a_windows_wheel(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    if tool == "uv" and UV is None:
        pytest.skip("needs uv")
    monkeypatch.setattr(shutil, "which", lambda _: UV if tool == "uv" else None)
    for name in ("UV_OFFLINE", "UV_NO_CONFIG", "UV_NO_INDEX"):
        monkeypatch.setenv(name, "1")
    links = tmp_path / "links"
    for tag in ("py3-none-win_amd64", "py3-none-manylinux_2_17_x86_64"):
        file = "b.dll" if "win" in tag else "libb.so"
        make_wheel(links, "helper", {f"helper/{file}": pe_file("b.dll")}, tag=tag)
    wheel = make_wheel(
        tmp_path,
        "demo",
        {"demo/a.dll": pe_file("a.dll", "b.dll")},
        tag="py3-none-win_amd64",
        requires=("helper; sys_platform == 'win32'",),
    )
    with fetched_requirements([wheel], [], IndexOptions(find_links=(str(links),))) as (site,):
        assert [path.name for path in (site / "helper").iterdir()] == ["b.dll"]
    done = run("audit", wheel, "--with-requirements", "--find-links", links, "--json", "--select", "dll-*")
    assert [finding["rule"] for finding in json.loads(done.stdout)["findings"]] == ["dll-unreachable"]


STRICT = ("--closed", "--select", "requirement-*", "--json")


def sdk_user(folder: Path, *requires: str, tag: str = "py3-none-manylinux_2_28_x86_64") -> Path:
    """Write a wheel that requires the SDK."""
    return make_wheel(folder, "user", {"user/__init__.py": b""}, tag=tag, requires=requires)


@pytest.mark.parametrize("extras", ["libraries", "libraries,device-all"])
def test_the_selector_sdist_is_built(run: Run, tmp_path: Path, sample_dist: Path, extras: str) -> None:
    wheel = sdk_user(tmp_path, f"rocm[{extras}]==7.0.0")
    done = run("audit", wheel, *STRICT, "--with-requirements", "--find-links", sample_dist)
    assert (done.status, json.loads(done.stdout)["findings"]) == (0, [])


def test_the_selector_can_come_from_an_index(
    run: Run, tmp_path: Path, sample_dist: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "0")
    shutil.copytree(sample_dist, tmp_path / "files")
    write_index(tmp_path / "files", tmp_path / "files/simple")
    wheel = sdk_user(tmp_path, "rocm[libraries,device-all]==7.0.0")
    with served(tmp_path / "files") as address:
        done = run("audit", wheel, *STRICT, "--with-requirements", "--index-url", f"{address}/simple/")
        assert (done.status, json.loads(done.stdout)["findings"]) == (0, [])
        folder = run("audit", wheel, *STRICT, "--with", f"{address}/")
        assert (folder.status, json.loads(folder.stdout)["findings"]) == (0, [])
        refused = run("audit", wheel, "--closed", "--with", f"{address}/simple/")
    assert (refused.status, refused.stderr) == (
        2,
        (
            f"error: {address}/simple: contains no wheels or sdists. Check whether this is the right folder. "
            f"For an index, use --with-requirements --index-url {address}/simple.\n"
        ),
    )


@pytest.mark.skipif(UV is None, reason="needs uv")
def test_uv_builds_the_selector_for_another_python(
    run: Run, tmp_path: Path, sample_dist: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("UV_OFFLINE", "UV_NO_CONFIG", "UV_NO_INDEX"):
        monkeypatch.setenv(name, "1")
    other = "cp313" if sys.version_info[:2] != (3, 13) else "cp312"
    wheel = sdk_user(tmp_path, "rocm[libraries]==7.0.0", tag=f"{other}-{other}-manylinux_2_28_x86_64")
    words = ("audit", wheel, *STRICT, "--with-requirements", "--find-links", sample_dist)
    monkeypatch.setattr(shutil, "which", lambda _: UV)
    done = run(*words)
    assert (done.status, json.loads(done.stdout)["findings"]) == (0, [])
    monkeypatch.setattr(shutil, "which", lambda _: None)
    done = run(*words)
    assert (done.status, "No matching distribution found for rocm==7.0.0" in done.stderr) == (2, True)


def test_other_sdists_are_not_built(tmp_path: Path, links: Path) -> None:
    write_sdist(links / "source-1.0.tar.gz", "source-1.0", {"PKG-INFO": b"Name: source\nVersion: 1.0\n"}, mtime=0)
    with (
        pytest.raises(InputError, match=r"can't fetch the required packages .*source"),
        fetched_requirements([demo(tmp_path, "source")], [], IndexOptions(find_links=(str(links),))),
    ):
        pass


def test_requirements_of_a_given_selector_are_fetched(tmp_path: Path, sample_dist: Path) -> None:
    wheel = sdk_user(tmp_path, "rocm[device-gfx906]==7.0.0", "helper")
    selector = sample_dist / "rocm-7.0.0.tar.gz"
    wanted = ["rocm-sdk-core==7.0.0", "rocm-sdk-device-gfx906==7.0.0", "helper"]
    assert requirements_to_fetch([wheel], [wheel], [selector]) == wanted
    core = sample_dist / "rocm_sdk_core-7.0.0-py3-none-manylinux_2_17_x86_64.whl"
    assert requirements_to_fetch([wheel], [wheel, core], [selector]) == wanted[1:]


def test_an_audited_folder_can_provide_the_selector(run: Run, tmp_path: Path, sample_dist: Path) -> None:
    shutil.copytree(sample_dist, tmp_path / "dist")
    sdk_user(tmp_path / "dist", "rocm[libraries,device-gfx906]==7.0.0")
    done = run("audit", tmp_path / "dist", *STRICT)
    assert (done.status, json.loads(done.stdout)["findings"]) == (0, [])
    sdk_user(tmp_path / "dist", "rocm[libraries,absent]==7.0.0")
    done = run("audit", tmp_path / "dist", *STRICT)
    assert [one["rule"] for one in json.loads(done.stdout)["findings"]] == ["requirement-unsatisfied"]


def test_a_package_that_is_already_given_is_not_fetched(tmp_path: Path) -> None:
    given = make_wheel(tmp_path, "helper", {"helper/__init__.py": b""}, tag="py3-none-any")
    with fetched_requirements([demo(tmp_path, "helper")], [given], IndexOptions()) as fetched:
        assert fetched == ()


@pytest.mark.parametrize(
    ("requires", "found"),
    [
        (("absent-package",), "No matching distribution found for absent-package"),
        (("helper==2.0", "deeper<1"), "No matching distribution found for deeper<1"),
        (("helper==1.0", "helper==2.0"), "conflicting"),
    ],
    ids=["absent", "old", "conflict"],
)
def test_an_unresolvable_requirement_is_an_error_with_the_reason(
    tmp_path: Path, links: Path, requires: tuple[str, ...], found: str
) -> None:
    options = IndexOptions(find_links=(str(links),))
    with (
        pytest.raises(InputError, match=f"--with-requirements: can't fetch the required packages .*{found}"),
        fetched_requirements([demo(tmp_path, *requires)], [], options),
    ):
        pass


def test_the_audit_treats_fetched_packages_as_given(run: Run, tmp_path: Path, links: Path) -> None:
    wheel = demo(tmp_path, "helper==1.0", "deeper")
    closed = ("audit", wheel, "--closed", "--select", "requirement-*")
    assert run(*closed).stdout.count("requirement-unavailable") > 0
    done = run(*closed, "--with-requirements", "--find-links", links)
    assert (done.status, done.stderr) == (0, "")


def test_a_damaged_wheel_does_not_prevent_the_audit_of_other_wheels(run: Run, tmp_path: Path, links: Path) -> None:
    wheel = demo(tmp_path, "helper==1.0", "deeper")
    damaged = tmp_path / "other-1.0-py3-none-any.whl"
    damaged.write_bytes(b"no wheel")
    options = ("--closed", "--select", "requirement-*", "--with-requirements", "--find-links", links)
    done = run("audit", wheel, damaged, *options)
    assert done.status == 2
    assert done.stderr.count(f"{damaged}: is a damaged archive") == 1
    assert done.stdout.startswith("5 files, ")


def test_index_options_require_with_requirements(run: Run, tmp_path: Path) -> None:
    done = run("audit", demo(tmp_path), "--index-url", "https://example.org/simple")
    assert done.status == 2
    assert "--index-url and --find-links require --with-requirements." in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("ERROR: No matching distribution found for rocm[libraries]==7.0.0", True),
        ("Because rocm==7.0.0 has no usable wheels and helper depends on rocm, no version fits.", True),
        ("Because only rocm was requested, which has no wheels for rocm.", True),
        ("ERROR: No matching distribution found for rocm-sdk-core==7.0.0", False),
        ("Looking in links: /tmp/my-rocm-links, /opt/rocm/wheels, https://rocm.nightlies.example.org/", False),
    ],
)
def test_an_error_concerns_the_selector_only_if_it_names_the_distribution(error: str, expected: bool) -> None:
    assert names_selector(error) is expected
