"""pip and uv install what was published, over http: from a bucket behind nginx and from a folder that Python serves."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.index.publish import publish
from rocwheel.stores.open import open_store
from tests.support.loopback import served
from tests.support.s3_server import BUCKET
from tests.support.web_servers import needs_nginx, nginx
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

# A bucket has no folders, and so no page for a name that ends in a slash. moto wants any credentials.
_BEFORE_S3 = """location / {{
    rewrite ^(.*)/$ /{bucket}/rocm$1/index.html break;
    rewrite ^(.*)$ /{bucket}/rocm$1 break;
    proxy_set_header Authorization "AWS test:test";
    proxy_pass {address};
}}"""


@pytest.fixture(params=["folder", pytest.param("s3", marks=needs_nginx)])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    for name, requires in (("alpha", ()), ("beta", ("alpha>=1",))):
        files = {f"{name}.py": b"x = 1\n"}
        make_wheel(tmp_path / "dist", name, files, tag="py3-none-any", is_purelib=True, requires=requires)
    if request.param == "folder":
        publish(tmp_path / "dist", open_store(f"file://{tmp_path}/store"))
        with served(tmp_path / "store") as address:
            yield f"{address}/simple/"
        return
    server = request.getfixturevalue("s3")
    publish(tmp_path / "dist", open_store(f"s3://{BUCKET}/rocm"))
    location = _BEFORE_S3.format(bucket=BUCKET, address=server.address)
    with nginx(tmp_path / "work", location=location) as address:
        yield f"{address}/simple/"


def test_pip_installs_from_the_store(index: str, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--isolated",
        "--quiet",
        "--disable-pip-version-check",
        "--no-cache-dir",
    ]
    subprocess.run([*command, "--index-url", index, "--target", tmp_path / "into", "beta"], check=True)
    assert (tmp_path / "into/alpha.py").is_file()


def test_uv_installs_from_the_store(index: str, tmp_path: Path) -> None:
    uv = shutil.which("uv", path=str((tmp_path / sys.executable).parent))
    assert uv
    command = [uv, "pip", "install", "--no-config", "--quiet", "--no-cache", "--python", sys.executable]
    subprocess.run([*command, "--default-index", index, "--target", tmp_path / "into", "beta"], check=True)
    assert (tmp_path / "into/alpha.py").is_file()
