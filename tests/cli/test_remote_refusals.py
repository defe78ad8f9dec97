"""URLs and endpoints that can't be asked for, by command: an error that names them, before anything is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

COMMANDS = {
    "publish": ("publish", "dist", "{}"),
    "inspect": ("inspect", "{}/x.whl"),
    "audit": ("audit", "--no-closed", "{}/x.whl"),
    "artifacts fetch": ("artifacts", "fetch", "{}", "-o", "here"),
    "index": ("index", "{}", "--files", "copy", "--output", "here"),
    "index mirror": ("index", "mirror", "{}", "--project", "*", "-o", "here"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_wheel(tmp_path / "dist", "alpha", {"alpha.bin": b"1"}, tag="py3-none-any", is_purelib=True)
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("s3://bucket/../rocm", "has a path that no file in a store can have"),
        ("s3://bucket/rocm?x=1", "has a query or fragment after its path"),
        ("s3://user:word@bucket/rocm", "contains a user name; expected s3://BUCKET/PATH"),
        ("http://host:99999/d", "is not a URL (Port out of range 0-65535)"),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_invalid_url_is_refused(run: Run, folder: Path, command: str, url: str, found: str) -> None:
    done = run(*(word.format(url) for word in COMMANDS[command]))
    assert done.status == 2, done.stderr
    assert f": {found}" in done.stderr
    assert "word" not in done.stderr
    assert not (folder / "here").exists()


@pytest.mark.parametrize(
    ("endpoint", "found"),
    [
        ("", "is set but empty"),
        ("garbage", "contains text, which is not a plain server URL"),
        ("127.0.0.1:15055", "contains text, which is not a plain server URL"),
        (
            "http://127.0.0.1:9",
            "which doesn't use encryption; expected https://. To allow that, set AWS_ALLOW_HTTP=true",
        ),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_invalid_endpoint_is_refused(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, endpoint: str, found: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.delenv("AWS_ALLOW_HTTP", raising=False)
    done = run(*(word.format("s3://bucket/rocm") for word in COMMANDS[command]))
    assert done.status == 2, done.stderr
    assert "error: AWS_ENDPOINT_URL: " in done.stderr
    assert found in done.stderr
    assert not (folder / "here").exists()
