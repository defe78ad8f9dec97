"""Indexes used by real pip and uv, from a folder and from a web server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.index.families import write_indexes
from rocwheel.index.front_content import front_page
from rocwheel.index.links import write_links
from rocwheel.index.placing import FilePlacement
from rocwheel.index.uploads import Layout
from rocwheel.index.upstreams import read_upstreams
from rocwheel.index.write_index import IndexOptions, write_index
from rocwheel.index.yanked import Yanking
from rocwheel.stores.folder import FolderStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.index.conftest import AddWheel, MakeSdist, Serve

pytestmark = pytest.mark.slow


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which no configuration of the user or the machine names another index."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    caches = {"PIP_CACHE_DIR": str(tmp_path / "pip-cache"), "UV_CACHE_DIR": str(tmp_path / "uv-cache")}
    return {**kept, **caches, "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


@pytest.fixture
def pip(environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pip", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    return run


@pytest.fixture(params=["pip", "uv"])
def install(
    request: pytest.FixtureRequest, environment: dict[str, str], tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that installs into ``tmp_path / "site"`` with pip or with uv."""
    command = [sys.executable, "-m", "pip"]
    if request.param == "uv":
        uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
        if uv is None:
            pytest.skip("needs uv")
        command = [uv, "pip"]

    def run(requirement: str, index: str) -> subprocess.CompletedProcess[str]:
        arguments = ["install", requirement, "--target", str(tmp_path / "site"), "--index-url", index]
        return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, env=environment)

    return run


def list_modules(site: Path) -> list[str]:
    return sorted(path.stem for path in site.glob("*.py"))


def make_sdk(add_wheel: AddWheel) -> None:
    add_wheel("rocm", "7.0", "Requires-Dist: rocm-sdk-core==7.0", "Provides-Extra: libraries",
               'Requires-Dist: rocm-sdk-libraries==7.0; extra == "libraries"')  # fmt: skip
    add_wheel("rocm-sdk-core", "7.0", "Requires-Python: >=3.9")
    add_wheel("rocm-sdk-libraries", "7.0", "Requires-Dist: rocm-sdk-core==7.0")
    add_wheel("rocm-sdk-devel", "7.0")


@pytest.mark.parametrize("placement", [FilePlacement.RELATIVE, FilePlacement.COPY], ids=["relative", "copy"])
def test_extras_install_from_a_folder(
    add_wheel: AddWheel,
    dist_dir: Path,
    tmp_path: Path,
    install: Callable[..., subprocess.CompletedProcess[str]],
    placement: FilePlacement,
) -> None:
    make_sdk(add_wheel)
    write_index(dist_dir, dist_dir.parent / "simple", options=IndexOptions(placement=placement))
    finished = install("rocm[libraries]==7.0", (dist_dir.parent / "simple").as_uri())
    assert finished.returncode == 0, finished.stderr
    assert list_modules(tmp_path / "site") == ["rocm", "rocm_sdk_core", "rocm_sdk_libraries"]


@pytest.mark.parametrize("pages", ["html", "json"])
def test_extras_install_from_any_path_on_a_web_server(
    add_wheel: AddWheel,
    dist_dir: Path,
    tmp_path: Path,
    install: Callable[..., subprocess.CompletedProcess[str]],
    serve: Serve,
    pages: str,
) -> None:
    make_sdk(add_wheel)
    write_index(dist_dir, dist_dir.parent / "simple")
    server = serve(tmp_path, json=pages == "json")
    finished = install("rocm[libraries]==7.0", f"{server.address}/packages/simple/")
    assert finished.returncode == 0, finished.stderr
    assert list_modules(tmp_path / "site") == ["rocm", "rocm_sdk_core", "rocm_sdk_libraries"]


@pytest.mark.parametrize("pages", ["html", "json"])
@pytest.mark.parametrize("theirs", ["html", "json"])
def test_extras_install_from_an_index_of_links(
    add_wheel: AddWheel,
    dist_dir: Path,
    tmp_path: Path,
    install: Callable[..., subprocess.CompletedProcess[str]],
    serve: Serve,
    pages: str,
    theirs: str,
) -> None:
    make_sdk(add_wheel)
    write_index(dist_dir, dist_dir.parent / "simple")
    server = serve(dist_dir.parent, json=theirs == "json")
    listing = tmp_path / "indexes.toml"
    listing.write_text(f'[[index]]\nurl = "{server.address}/simple"\nprojects = ["rocm*"]\nstreams = ["release"]\n')
    write_links(read_upstreams(listing), FolderStore(tmp_path / "www"), Layout("simple"))
    front = serve(tmp_path / "www", json=pages == "json")
    finished = install("rocm[libraries]==7.0", f"{front.address}/simple/release/")
    assert finished.returncode == 0, finished.stderr
    assert list_modules(tmp_path / "site") == ["rocm", "rocm_sdk_core", "rocm_sdk_libraries"]
    assert not [path for path in front.requests if ".whl" in path]


def test_a_selector_sdist_installs_the_requirements_of_its_build(
    add_wheel: AddWheel,
    make_sdist: MakeSdist,
    dist_dir: Path,
    tmp_path: Path,
    install: Callable[..., subprocess.CompletedProcess[str]],
    serve: Serve,
) -> None:
    make_sdist("rocm", "7.0", "Requires-Dist: rocm-sdk-core==7.0", dynamic=("Requires-Dist", "Provides-Extra"))
    add_wheel("rocm-sdk-core", "7.0")
    write_index(dist_dir, dist_dir.parent / "simple")
    finished = install("rocm==7.0", f"{serve(dist_dir.parent).address}/simple/")
    assert finished.returncode == 0, finished.stderr
    assert list_modules(tmp_path / "site") == ["rocm", "rocm_sdk_core"]


def test_distributions_in_folders_whose_names_need_quoting_install(
    add_wheel: AddWheel,
    tmp_path: Path,
    install: Callable[..., subprocess.CompletedProcess[str]],
    serve: Serve,
) -> None:
    wheel = add_wheel("rocm-sdk-core", "7.0+local.1")
    folder = tmp_path / "mit Leer#zeichen" / "größe & 100%"
    folder.mkdir(parents=True)
    wheel.rename(folder / wheel.name)
    write_index(folder, tmp_path / "mit Leer#zeichen" / "simple")
    finished = install("rocm-sdk-core", f"{serve(tmp_path).address}/mit%20Leer%23zeichen/simple/")
    assert finished.returncode == 0, finished.stderr
    assert list_modules(tmp_path / "site") == ["rocm_sdk_core"]


def test_a_file_that_changed_after_indexing_is_refused(
    add_wheel: AddWheel,
    dist_dir: Path,
    tmp_path: Path,
    install: Callable[..., subprocess.CompletedProcess[str]],
    serve: Serve,
) -> None:
    add_wheel("rocm-sdk-core")
    write_index(dist_dir, dist_dir.parent / "simple")
    add_wheel("rocm-sdk-core", "1.0", "Keywords: changed")
    finished = install("rocm-sdk-core", f"{serve(dist_dir.parent).address}/simple/")
    assert finished.returncode != 0
    assert "hash" in finished.stderr.lower()


def test_a_version_for_another_python_is_skipped_without_download(
    add_wheel: AddWheel,
    dist_dir: Path,
    tmp_path: Path,
    install: Callable[..., subprocess.CompletedProcess[str]],
    serve: Serve,
) -> None:
    add_wheel("rocm-sdk-core", "1.0")
    add_wheel("rocm-sdk-core", "2.0", "Requires-Python: >=99")
    write_index(dist_dir, dist_dir.parent / "simple")
    server = serve(dist_dir.parent)
    finished = install("rocm-sdk-core", f"{server.address}/simple/")
    assert finished.returncode == 0, finished.stderr
    assert (tmp_path / "site/rocm_sdk_core-1.0.dist-info").is_dir()
    assert not [path for path in server.requests if "2.0" in path]


@pytest.mark.parametrize("pages", ["html", "json"])
def test_a_yanked_version_is_installed_only_if_requested(
    add_wheel: AddWheel,
    dist_dir: Path,
    tmp_path: Path,
    install: Callable[..., subprocess.CompletedProcess[str]],
    serve: Serve,
    pages: str,
) -> None:
    add_wheel("core", "1.0")
    yanked = add_wheel("core", "2.0")
    write_index(
        dist_dir, dist_dir.parent / "simple", options=IndexOptions(yanking=Yanking({yanked.name: "eats files"}))
    )
    index = f"{serve(dist_dir.parent, json=pages == 'json').address}/simple/"
    assert install("core", index).returncode == 0
    assert (tmp_path / "site/core-1.0.dist-info").is_dir()
    asked = install("core==2.0", index)
    assert asked.returncode == 0
    assert "eats files" in asked.stderr


def test_pip_resolves_from_metadata_files_and_downloads_only_the_chosen_wheels(
    add_wheel: AddWheel,
    dist_dir: Path,
    tmp_path: Path,
    pip: Callable[..., subprocess.CompletedProcess[str]],
    serve: Serve,
) -> None:
    add_wheel("core", "1.0")
    add_wheel("core", "2.0")
    add_wheel("libraries", "1.0", "Requires-Dist: core<2")
    write_index(dist_dir, dist_dir.parent / "simple")
    server = serve(dist_dir.parent)
    index = f"{server.address}/simple/"
    finished = pip("install", "core", "libraries", "--target", tmp_path / "site", "--index-url", index)
    assert finished.returncode == 0, finished.stderr
    assert sorted({path for path in server.requests if path.startswith("/dist/")}) == [
        "/dist/core-1.0-py3-none-any.whl",
        "/dist/core-1.0-py3-none-any.whl.metadata",
        "/dist/core-2.0-py3-none-any.whl.metadata",
        "/dist/libraries-1.0-py3-none-any.whl",
        "/dist/libraries-1.0-py3-none-any.whl.metadata",
    ]


def test_pip_downloads_identical_files(
    add_wheel: AddWheel, dist_dir: Path, tmp_path: Path, pip: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    make_sdk(add_wheel)
    write_index(dist_dir, dist_dir.parent / "simple")
    index = (dist_dir.parent / "simple").as_uri()
    finished = pip("download", "rocm", "--dest", tmp_path / "got", "--index-url", index)
    assert finished.returncode == 0, finished.stderr
    got = {path.name: path.read_bytes() for path in (tmp_path / "got").iterdir()}
    assert got == {name: (dist_dir / name).read_bytes() for name in
                   ("rocm-7.0-py3-none-any.whl", "rocm_sdk_core-7.0-py3-none-any.whl")}  # fmt: skip


def test_a_family_installs_from_the_url_on_the_main_page(
    add_wheel: AddWheel, dist_dir: Path, install: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    add_wheel("shared")
    family = dist_dir / 'gfx94X <b>\u00e4 50% "$HOME"'
    family.mkdir()
    own = add_wheel("rocm", "1.0", "Requires-Dist: shared")
    own.rename(family / own.name)
    output = tmp_path / "simple"
    url = output.as_uri()
    write_indexes([dist_dir], output, options=IndexOptions(served=tmp_path, extras=front_page(url)))
    [address] = re.findall(">--index-url &quot;<span>(.*?)</span>&quot;", (output / "packages.html").read_text())
    assert install("rocm", address).returncode == 0
    assert {path.name for path in (tmp_path / "site").glob("*.py")} == {"rocm.py", "shared.py"}
    assert install("shared", url).returncode == 0
