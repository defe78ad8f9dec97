"""Small distributions to list, and a web server that counts what it is asked for."""

from __future__ import annotations

import io
import tarfile
import threading
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.quiet_server import QuietServer
from tests.support.wheels import write_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator

AddWheel = Callable[..., Path]
MakeSdist = Callable[..., Path]
Serve = Callable[..., "Server"]


def _render_metadata(name: str, version: str, fields: tuple[str, ...], metadata_version: str = "2.4") -> bytes:
    lines = [f"Metadata-Version: {metadata_version}", f"Name: {name}", f"Version: {version}", *fields]
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture
def dist_dir(tmp_path: Path) -> Path:
    """Return an empty folder of distributions."""
    folder = tmp_path / "packages" / "dist"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def add_wheel(dist_dir: Path) -> AddWheel:
    """Return a function that writes an installable wheel into the folder."""

    def make(project: str, version: str = "1.0", *fields: str, filename: str = "", **inside: str) -> Path:
        escaped = project.replace("-", "_").lower()
        info = f"{escaped}-{version}.dist-info"
        members = {
            f"{escaped}.py": f"version = {version!r}\n".encode(),
            f"{info}/METADATA": _render_metadata(
                inside.get("name_inside", project), inside.get("version_inside", version), fields
            ),
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        return write_wheel(dist_dir / (filename or f"{escaped}-{version}-py3-none-any.whl"), info, members)

    return make


BACKEND = """
import os, shutil


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    shutil.copy("prebuilt", os.path.join(wheel_directory, NAME))
    return NAME
"""


@pytest.fixture
def make_sdist(dist_dir: Path, add_wheel: AddWheel) -> MakeSdist:
    """Return a function that writes an sdist whose backend, which it carries, hands out a wheel made beforehand."""

    def make(project: str, version: str = "1.0", *fields: str, dynamic: tuple[str, ...] = (), **options: Any) -> Path:
        wheel = add_wheel(project, version, *fields)
        backend = BACKEND.replace("NAME", repr(wheel.name))
        pkg_fields = (*options.get("pkg_info", ()), *(f"Dynamic: {field}" for field in dynamic))
        members = {
            "PKG-INFO": _render_metadata(project, version, pkg_fields, options.get("metadata_version", "2.4")),
            "pyproject.toml": b'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
            "backend.py": backend.encode(),
            "prebuilt": wheel.read_bytes(),
        }
        wheel.unlink()
        path = dist_dir / f"{project.replace('-', '_')}-{version}.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for name, data in members.items():
                info = tarfile.TarInfo(f"{project.replace('-', '_')}-{version}/{name}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return path

    return make


class Server:
    """A static web server on this machine: its address, and the paths asked for so far."""

    def __init__(self, address: str, requests: list[str]) -> None:
        self.address = address
        self.requests = requests


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that serves a folder, with HTML pages for its folders or JSON pages."""
    servers: list[QuietServer] = []

    def start(folder: Path, *, json: bool = False) -> Server:
        requests: list[str] = []

        class Handler(SimpleHTTPRequestHandler):
            def guess_type(self, path: Any) -> str:
                return "application/vnd.pypi.simple.v1+json" if json else super().guess_type(path)

            def do_GET(self) -> None:
                requests.append(self.path)
                if json and self.path.endswith("/"):
                    self.path += "index.json"
                super().do_GET()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        server = QuietServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return Server(f"http://127.0.0.1:{server.server_port}", requests)

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
