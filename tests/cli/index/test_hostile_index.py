"""``rocwheel index mirror`` of an index whose owner means ill: nothing is written elsewhere, and each line is named."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.reply_server import JSON, Reply

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run
    from tests.support.reply_server import Server

DATA = b"evil"
SHA256 = hashlib.sha256(DATA).hexdigest()
NAME = "x-1.0-py3-none-any.whl"
LONG = f"x-1.{'0' * 300}-py3-none-any.whl"
PLAIN = "expected a plain name of a file, which ends its address"

FILES: dict[str, tuple[dict[str, Any], str]] = {
    "a path": ({"filename": f"../../{NAME}", "url": NAME}, f"lists '../../{NAME}' at 'HERE/x/{NAME}'; {PLAIN}"),
    "a quoted path": (
        {"filename": f"..%2F{NAME}", "url": f"..%2F{NAME}"},
        f"lists '..%2F{NAME}' at 'HERE/x/..%2F{NAME}'; {PLAIN}",
    ),
    "an absolute path": ({"filename": f"/etc/{NAME}", "url": NAME}, f"lists '/etc/{NAME}' at 'HERE/x/{NAME}'; {PLAIN}"),
    "another name": ({"url": "y-1.0-py3-none-any.whl"}, f"lists '{NAME}' at 'HERE/x/y-1.0-py3-none-any.whl'; {PLAIN}"),
    "a script": ({"url": f"javascript:alert(1)/{NAME}"}, f"leads to 'javascript://alert(1)/{NAME}'"),
    "a file": ({"url": f"file:///etc/{NAME}"}, f"leads to 'file:///etc/{NAME}'; expected an address of the web"),
    "a bucket": ({"url": f"s3://bucket/{NAME}"}, f"leads to 's3://bucket/{NAME}'; expected an address of the web"),
    "a password": (
        {"url": f"http://me:word@127.0.0.1:1/{NAME}"},
        "leads to an address with a user or password at 127.0.0.1; expected an address without them",
    ),
    "markup": ({"filename": f"<b>{NAME}", "url": f"<b>{NAME}"}, f"lists '<b>{NAME}' at 'HERE/x/<b>{NAME}'; {PLAIN}"),
    "a line end": (
        {"filename": f"a\n{NAME}", "url": f"a%0A{NAME}"},
        f"lists 'a\\n{NAME}' at 'HERE/x/a%0A{NAME}'; {PLAIN}",
    ),
    "non-ASCII": ({"filename": f"é{NAME}", "url": f"é{NAME}"}, f"lists 'é{NAME}' at 'HERE/x/é{NAME}'; {PLAIN}"),
    "no hash": (
        {"hashes": {}},
        f"has no SHA-256 of {NAME}. Without one, nothing says whether the file is the right one.",
    ),
    "an endless size": ({"size": 1 << 62}, f"says that {NAME} has {1 << 62} bytes; expected a size"),
    "another project": (
        {"filename": "y-1.0-py3-none-any.whl", "url": "y-1.0-py3-none-any.whl"},
        "lists 'y-1.0-py3-none-any.whl', a file of y; expected files of x",
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_no_file_leads_out_of_the_mirror(run: Run, server: Server, tmp_path: Path, kind: str) -> None:
    change, message = FILES[kind]
    file = {"filename": NAME, "url": NAME, "hashes": {"sha256": SHA256}, "size": 4, **change}
    server.add("/x/", Reply(json.dumps({"meta": {}, "files": [file]}).encode(), JSON))
    server.add(f"/x/{NAME}", Reply(DATA))
    done = run("index", "mirror", server.address, "--project", "x", "-d", tmp_path / "a/b/here")
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert message.replace("HERE", server.address) in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../evil", "a/b", "<script>", "é", "a\nb", "", "..", "x" * 10_000 + "/"])
def test_projects_with_hostile_names_are_passed_over(run: Run, server: Server, tmp_path: Path, name: str) -> None:
    page = {"meta": {}, "projects": [{"name": name}]}
    server.add("/", Reply(json.dumps(page).encode(), JSON))
    done = run("index", "mirror", server.address, "--project", "*", "-d", tmp_path / "here")
    assert done.status == 2
    assert done.stderr == f"error: *: is no project of {server.address}/. Correct the name.\n"
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_too_long_is_an_error(run: Run, server: Server, tmp_path: Path) -> None:
    file = {"filename": LONG, "url": LONG, "hashes": {"sha256": SHA256}, "size": 4}
    server.add("/x/", Reply(json.dumps({"meta": {}, "files": [file]}).encode(), JSON))
    server.add(f"/x/{LONG}", Reply(DATA))
    done = run("index", "mirror", server.address, "--project", "x", "-d", tmp_path / "here")
    assert done.status == 2
    assert done.stderr.startswith(f"error: {server.address}/x/: lists '{LONG[:20]}")
    assert done.stderr.endswith("; expected a name that a file can have\n")
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_other_bytes_than_promised_does_not_appear(run: Run, server: Server, tmp_path: Path) -> None:
    file = {"filename": NAME, "url": NAME, "hashes": {"sha256": "0" * 64}, "size": 4}
    server.add("/x/", Reply(json.dumps({"meta": {}, "files": [file]}).encode(), JSON))
    server.add(f"/x/{NAME}", Reply(DATA))
    done = run("index", "mirror", server.address, "--project", "x", "-d", tmp_path / "here", "-q")
    assert done.status == 2
    found = f"error: {server.address}/x/{NAME}: has the SHA-256 {SHA256}; expected {'0' * 64}."
    assert done.stderr.startswith(found)
    assert not list((tmp_path / "here").rglob("*.whl"))
