"""``rocwheel publish`` to moto's S3 server, and what ``rocwheel inspect`` reads of a large wheel there."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, cast

import obstore
from obstore.store import MemoryStore, S3Store

from rocwheel.index.front_content import next_front_page
from rocwheel.index.publish import PublishOptions, publish
from rocwheel.index.uploads import AT_ONCE
from rocwheel.stores.objects import ObjectStore
from rocwheel.wheels.record import RecordRow, render_record
from tests.support.counted_store import CountedStore
from tests.support.s3_server import BUCKET, started_s3_server
from trials.benchmarks.measure import CACHE, machine, markdown_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.stores.store import Store

__all__ = ["main"]

_WORK = CACHE / "bench-stores"
_COUNT = 1000
_DATA, _SIZE = 40, 11_000_000
"""Members of the large wheel that are data, and bytes of each."""
_LIBRARIES = 10


def main() -> None:
    """Print the tables."""
    print(f"{machine()}; moto's S3 server, a test double, on the same machine\n", flush=True)
    shutil.rmtree(_WORK, ignore_errors=True)
    try:
        with started_s3_server() as server:
            server.make_bucket(BUCKET)
            environ = {**os.environ, **server.environ}
            rows = list(_publish(environ))
            print(markdown_table(("publish", "requests", "wall s", "files a second"), rows), flush=True)
            print("\n" + markdown_table(("large wheel", "bytes", "read", "wall s"), [_inspect(environ)]), flush=True)
    finally:
        shutil.rmtree(_WORK, ignore_errors=True)


def _publish(environ: dict[str, str]) -> Iterable[tuple[str, str, str, str]]:
    """Yield a row for each run, and the floor of the first: the same bytes, put by obstore alone with as many threads.

    The requests are counted in the seam to stores, on one in memory, by a run on the same files.
    """
    for number in range(_COUNT):
        _make_wheel(f"p{number:04d}", {f"p{number:04d}.py": b"x = 1\n" * 500})
    counted = ObjectStore(MemoryStore(), "memory://")
    command = ["publish", str(_WORK / "dist"), f"s3://{BUCKET}/rocm", "--quiet"]
    yield _row(f"{_COUNT} new files", _count(counted), environ, command)
    yield _floor(counted, environ)
    yield _row("nothing new", _count(counted), environ, command)
    _make_wheel("one-more", {"one.py": b""})
    yield _row("one more", _count(counted), environ, command)


def _count(store: ObjectStore) -> str:
    counting = CountedStore(store)
    publish(_WORK / "dist", cast("Store", counting), PublishOptions(make_front=next_front_page))
    return ", ".join(f"{number:,} {kind}" for kind, number in counting.requests.most_common())


def _floor(counted: ObjectStore, environ: dict[str, str]) -> tuple[str, str, str, str]:
    files = {file.name: counted.read(file.name) for file in counted.list()}
    bucket = S3Store(
        BUCKET,
        prefix="floor",
        config={"endpoint": environ["AWS_ENDPOINT_URL"], "region": environ["AWS_REGION"],
                "access_key_id": environ["AWS_ACCESS_KEY_ID"], "secret_access_key": environ["AWS_SECRET_ACCESS_KEY"]},
        client_options={"allow_http": True},
    )  # fmt: skip
    start = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as executor:
        list(executor.map(lambda name: obstore.put(bucket, name, files[name], mode="create"), files))
    wall = time.monotonic() - start
    return "floor: plain puts of the same bytes", f"{len(files):,} put", f"{wall:.1f}", f"{_COUNT / wall:.0f}"


def _row(name: str, requests: str, environ: dict[str, str], command: list[str]) -> tuple[str, str, str, str]:
    start = time.monotonic()
    subprocess.run([sys.executable, "-m", "rocwheel", *command], env=environ, check=True)
    wall = time.monotonic() - start
    return name, requests, f"{wall:.1f}", f"{_COUNT / wall:.0f}"


def _inspect(environ: dict[str, str]) -> tuple[str, str, str, str]:
    files: dict[str, bytes] = {f"demo/data{number}.bin": os.urandom(_SIZE) for number in range(_DATA)}
    library = next(Path("/usr/lib").rglob("libc.so.6")).read_bytes()
    files |= {f"demo/lib{number}.so": library for number in range(_LIBRARIES)}
    wheel = _make_wheel("large", files)
    folder = wheel.parent.rename(_WORK / "large")
    wheel = folder / wheel.name
    for other in folder.iterdir():
        if other != wheel:
            other.unlink()
    subprocess.run(
        [sys.executable, "-m", "rocwheel", "publish", str(folder), f"s3://{BUCKET}/rocm", "--quiet"],
        env=environ,
        check=True,
    )
    start = time.monotonic()
    command = [sys.executable, "-m", "rocwheel", "inspect", f"s3://{BUCKET}/rocm/dist/{wheel.name}"]
    done = subprocess.run(command, env=environ, check=True, capture_output=True, text=True)
    found = re.search(r"read (.+) of (.+): s3://", done.stderr)
    assert found, done.stderr
    name = f"`inspect` of {_DATA} stored data files, {_LIBRARIES} packed libraries"
    return name, found[2], found[1], f"{time.monotonic() - start:.1f}"


def _make_wheel(name: str, files: dict[str, bytes]) -> Path:
    module = name.replace("-", "_")
    info = f"{module}-1.0.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [RecordRow(member, hashlib.sha256(data).digest(), len(data)) for member, data in files.items()]
    files[f"{info}/RECORD"] = render_record(rows, f"{info}/RECORD")
    path = _WORK / "dist" / f"{module}-1.0-py3-none-any.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in files.items():
            packing = zipfile.ZIP_STORED if member.endswith(".bin") else zipfile.ZIP_DEFLATED
            archive.writestr(member, data, packing)
    return path
