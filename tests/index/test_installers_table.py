"""What pip 26 and uv 0.13 make of each field of an index, which says what an index must never get wrong.

Each row has a project of two versions, of whose later one a field is changed in the page.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.index.write_index import write_index
from tests.support.web_servers import needs_nginx, nginx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.index.conftest import AddWheel, Serve

pytestmark = pytest.mark.slow

OLD, NEW = 1_777_593_600, 1_780_272_000
"""2026-05-01 and 2026-06-01, in seconds since 1970."""
BETWEEN = "2026-05-15T00:00:00Z"


def _set(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda page: page["files"][1].update({name.replace("_", "-"): value for name, value in fields.items()})


def _old_key(page: dict[str, Any]) -> None:
    page["files"][1]["dist-info-metadata"] = page["files"][1].pop("core-metadata")


def _url(prefix: str) -> Callable[[dict[str, Any]], None]:
    def change(page: dict[str, Any]) -> None:
        for file in page["files"]:
            file["url"] = f"{prefix}/dist/{file['filename']}"

    return change


def _version(text: str) -> Callable[[dict[str, Any]], None]:
    return lambda page: page["meta"].update({"api-version": text})


def _status(page: dict[str, Any]) -> None:
    page["project-status"] = {"status": "quarantined"}


TAKEN: dict[str, tuple[Callable[[dict[str, Any]], None], str, str]] = {
    "unchanged": (_set(), "2.0", "2.0"),
    "yanked": (_set(yanked=True), "1.0", "1.0"),
    "yanked-reason": (_set(yanked="bad"), "1.0", "1.0"),
    "python-other": (_set(requires_python=">=3.99"), "1.0", "1.0"),
    "python-malformed": (_set(requires_python="3.9 or so"), "2.0", "1.0"),
    "hashes-none": (_set(hashes={}), "2.0", "2.0"),
    "metadata-old-key": (_old_key, "2.0", "2.0"),
    "url-root": (_url(""), "2.0", "2.0"),
    "url-absolute": (_url("ADDRESS"), "2.0", "2.0"),
    "size-wrong": (_set(size=1), "2.0", "2.0"),
    "provenance-dead": (_set(provenance="http://127.0.0.1:9/none"), "2.0", "2.0"),
    "api-1-4": (_version("1.4"), "2.0", "2.0"),
    "api-2-0": (_version("2.0"), "2.0", "2.0"),
    "quarantined": (_status, "2.0", "2.0"),
}
"""What is changed, and which versions pip and uv take."""

REFUSED: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "hash-wrong": (_set(hashes={"sha256": "0" * 64}), "hash"),
    "metadata-hash-wrong": (_set(core_metadata={"sha256": "0" * 64}), "hash"),
    "metadata-absent": (_set(core_metadata=True), "404"),
}
"""What is changed, and what both say that refuse it."""


class Installer:
    """pip or uv in an environment of its own, without caches or settings of the user."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "UV_"))}
        self._environment = {**kept, "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "PIP_NO_CACHE_DIR": "1",
                             "PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_NO_CACHE": "1"}  # fmt: skip

    def install(self, *arguments: str, index: str) -> subprocess.CompletedProcess[str]:
        """Install requirements from an index."""
        uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
        command = [sys.executable, "-m", "pip"] if self.name == "pip" else [str(uv), "pip"]
        words = [*command, "install", "--target", str(self.folder), "--index-url", index, *arguments]
        return subprocess.run(words, capture_output=True, text=True, check=False, env=self._environment)

    @property
    def installed(self) -> dict[str, str]:
        """The versions that are installed, by project."""
        parts = [path.name.removesuffix(".dist-info").split("-") for path in self.folder.glob("*.dist-info")]
        return {name.replace("_", "-"): version for name, version in parts}


@pytest.fixture(params=["pip", "uv"])
def installer(request: pytest.FixtureRequest, tmp_path: Path) -> Installer:
    return Installer(request.param, tmp_path / "site")


@pytest.fixture
def root(add_wheel: AddWheel, dist_dir: Path) -> Path:
    """Return a folder to serve, with an index of each row's project."""
    for name in (*TAKEN, *REFUSED):
        for version, date in (("1.0", OLD), ("2.0", NEW)):
            os.utime(add_wheel(name, version), (date, date))
    write_index(dist_dir, dist_dir.parent / "simple")
    (dist_dir / "metadata_absent-2.0-py3-none-any.whl.metadata").unlink()
    return dist_dir.parent


def change_pages(root: Path, address: str) -> None:
    changes = {name: row[0] for name, row in TAKEN.items()} | {name: row[0] for name, row in REFUSED.items()}
    for name, change in changes.items():
        path = root / "simple" / name / "index.json"
        page = json.loads(path.read_bytes())
        change(page)
        path.write_text(json.dumps(page).replace("ADDRESS", address))


def test_each_field_has_the_known_effect(root: Path, serve: Serve, installer: Installer) -> None:
    server = serve(root, json=True)
    change_pages(root, server.address)
    index = f"{server.address}/simple/"
    done = installer.install(*TAKEN, index=index)
    assert done.returncode == 0, done.stderr
    column = 1 if installer.name == "pip" else 2
    assert installer.installed == {name: str(row[column]) for name, row in TAKEN.items()}
    if installer.name == "pip":  # uv reads the metadata of wheels that it may take in parts, too
        asked = [path for path in server.requests if path.startswith("/dist/unchanged-2.0")]
        assert asked[0] == "/dist/unchanged-2.0-py3-none-any.whl.metadata"


@pytest.mark.parametrize("row", REFUSED)
def test_a_file_that_contradicts_its_page_is_refused(root: Path, serve: Serve, installer: Installer, row: str) -> None:
    server = serve(root, json=True)
    change_pages(root, server.address)
    done = installer.install(row, index=f"{server.address}/simple/")
    assert done.returncode != 0
    assert REFUSED[row][1] in done.stderr.lower()
    assert installer.installed == {}


def test_a_cut_off_date_is_honored(root: Path, serve: Serve, installer: Installer) -> None:
    option = "--uploaded-prior-to" if installer.name == "pip" else "--exclude-newer"
    done = installer.install("unchanged", option, BETWEEN, index=f"{serve(root, json=True).address}/simple/")
    assert done.returncode == 0, done.stderr
    assert installer.installed == {"unchanged": "1.0"}


def test_a_cut_off_date_requires_an_upload_time_for_every_file(root: Path, serve: Serve, installer: Installer) -> None:
    page = root / "simple/unchanged/index.json"
    document = json.loads(page.read_bytes())
    del document["files"][0]["upload-time"]
    page.write_text(json.dumps(document))
    option = "--uploaded-prior-to" if installer.name == "pip" else "--exclude-newer"
    done = installer.install("unchanged", option, BETWEEN, index=f"{serve(root, json=True).address}/simple/")
    assert done.returncode != 0
    assert installer.installed == {}


@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
def test_hash_checking_rejects_a_wrong_hash(root: Path, serve: Serve, installer: Installer, is_right: bool) -> None:
    wheel = root / "dist/unchanged-2.0-py3-none-any.whl"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest() if is_right else "0" * 64
    requirements = root / "requirements.txt"
    requirements.write_text(f"unchanged==2.0 --hash=sha256:{digest}\n")
    index = f"{serve(root, json=True).address}/simple/"
    done = installer.install("--require-hashes", "-r", str(requirements), index=index)
    assert (done.returncode == 0) == is_right, done.stderr
    assert installer.installed == ({"unchanged": "2.0"} if is_right else {})


NGINX_BY_ACCEPT = """
root {root};
location / {{
    if ($http_accept ~ "application/vnd\\.pypi\\.simple\\.v1\\+json") {{
        rewrite ^(.*)/$ $1/index.json last;
    }}
}}
location ~ /index\\.json$ {{ types {{ }} default_type application/vnd.pypi.simple.v1+json; }}
"""


@pytest.fixture(params=["python", pytest.param("nginx", marks=needs_nginx)])
def stock_server(request: pytest.FixtureRequest, root: Path, tmp_path: Path) -> Iterator[str]:
    """Serve the folder by the server's own program: Python's gives HTML, nginx what is asked for."""
    if request.param == "nginx":
        with nginx(tmp_path / "nginx", location=NGINX_BY_ACCEPT.format(root=root)) as address:
            yield address
        return
    command = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(root), "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout
    port = process.stdout.readline().split(" port ")[1].split()[0]
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait()
    process.stdout.close()


def test_common_web_servers_can_serve_an_index(stock_server: str, installer: Installer) -> None:
    done = installer.install("unchanged", "quarantined==1.0", index=f"{stock_server}/simple/")
    assert done.returncode == 0, done.stderr
    assert installer.installed == {"unchanged": "2.0", "quarantined": "1.0"}


def test_uv_honors_a_cut_off_date_on_any_server(stock_server: str, tmp_path: Path) -> None:
    uv = Installer("uv", tmp_path / "site")
    done = uv.install("unchanged", "--exclude-newer", BETWEEN, index=f"{stock_server}/simple/")
    assert done.returncode == 0, done.stderr
    assert uv.installed == {"unchanged": "1.0"}


@needs_nginx
def test_pip_honors_a_cut_off_date_on_a_server_with_content_negotiation(root: Path, tmp_path: Path) -> None:
    pip = Installer("pip", tmp_path / "site")
    with nginx(tmp_path / "nginx", location=NGINX_BY_ACCEPT.format(root=root)) as address:
        done = pip.install("unchanged", "--uploaded-prior-to", BETWEEN, index=f"{address}/simple/")
    assert done.returncode == 0, done.stderr
    assert pip.installed == {"unchanged": "1.0"}
