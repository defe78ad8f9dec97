"""Lock files of indexes that want a password: uv leaves it out of them, and an sdist is asked for with it."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest

from rocwheel.index.lock import ResolveOptions, index_urls, with_user
from rocwheel.index.write_index import write_index
from tests.support.fault_proxy import fault_proxy
from tests.support.loopback import served
from tests.support.sdists import write_sdist

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.command_line import Run

PYPROJECT = b"""\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "rocm"
version = "1.0"
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    """Give host and port of an index of one sdist, which answers to me and secret alone."""
    (tmp_path / "dist").mkdir()
    info = b"Metadata-Version: 2.2\nName: rocm\nVersion: 1.0\n"
    write_sdist(tmp_path / "dist", "rocm-1.0", {"PKG-INFO": info, "pyproject.toml": PYPROJECT})
    write_index(tmp_path / "dist", tmp_path / "simple")
    with served(tmp_path) as address, fault_proxy(address) as proxy:
        proxy.authorization = f"Basic {base64.b64encode(b'me:secret').decode()}"
        yield proxy.address.partition("://")[2]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["address", "variable", "netrc"])
def test_an_sdist_behind_a_password_is_locked(
    run: Run, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    url = f"http://{'' if way == 'netrc' else 'me:secret@'}{host}/simple"
    words = () if way == "variable" else ("--index-url", url)
    if way == "variable":
        monkeypatch.setenv("UV_DEFAULT_INDEX", url)
    if way == "netrc":
        (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
        (tmp_path / "netrc").chmod(0o600)
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    done = run("lock", "rocm", *words, "-o", tmp_path / "pylock.toml", "--json")
    assert done.status == 0, done.stderr
    assert json.loads(done.stdout)["build_requires"] == {"rocm": ["setuptools>=61"]}
    assert "secret" not in done.stdout + done.stderr + (tmp_path / "pylock.toml").read_text()


@pytest.mark.slow
def test_the_password_of_a_requirement_is_used_and_not_noted(run: Run, host: str, tmp_path: Path) -> None:
    url = f"{host}/dist/rocm-1.0.tar.gz"
    done = run("lock", f"rocm @ http://me:secret@{url}", "-o", tmp_path / "pylock.toml", "--json")
    assert done.status == 0, done.stderr
    text = (tmp_path / "pylock.toml").read_text()
    assert f'url = "http://{url}"\n' in text
    assert "secret" not in done.stdout + done.stderr + text


@pytest.mark.slow
def test_a_query_is_kept_for_installers_with_a_warning_and_not_noted(run: Run, host: str, tmp_path: Path) -> None:
    url, output = f"{host}/dist/rocm-1.0.tar.gz", tmp_path / "pylock.toml"
    done = run("lock", f"rocm @ http://me:secret@{url}?token=hidden", "-o", output)
    assert done.status == 0, done.stderr
    text = output.read_text()
    assert f'url = "http://{url}?token=hidden"\n' in text
    assert f'requirements = [\n    "rocm @ http://{url}",\n]' in text
    assert (
        f"warning: {output}: has what follows the question mark in http://{url}, as installers may need it. If that is "
        "a secret, such as a token, keep the file from others, or lock what you have fetched: --find-links FOLDER."
    ) in " ".join(done.stderr.split())
    assert "secret@" not in done.stderr + text
    assert "hidden" not in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--index-url", "--extra-index-url"])
def test_the_folder_above_an_index_leads_to_it(run: Run, host: str, tmp_path: Path, option: str) -> None:
    done = run("lock", "rocm", option, f"http://me:secret@{host}", "-o", tmp_path / "pylock.toml")
    text = f"is the folder above a package index, http://{host}/simple/. Give that address."
    assert (done.status, done.stderr) == (2, f"error: http://{host}/: {text}\n")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("pylock.toml/inner", "pylock.toml: a folder; expected a file to write to. Change --output."),
        ("here", "here: not a folder; expected a folder to write to. Change --output."),
    ],
    ids=["a folder for the file", "a file for its folder"],
)
def test_an_output_of_the_wrong_kind_is_an_error_before_the_first_request(
    run: Run, tmp_path: Path, made: str, message: str
) -> None:
    place, asked = tmp_path / made, list[str]()
    place.parent.mkdir(exist_ok=True)
    place.write_text("mine")
    output = tmp_path / "pylock.toml" if made.startswith("pylock") else tmp_path / "here/pylock.toml"
    (tmp_path / "there").mkdir()
    with served(tmp_path / "there", asked) as url:
        done = run("lock", "rocm", "--index-url", f"{url}/simple", "--output", output)
    assert (done.status, " ".join(done.stderr.split()), asked) == (2, f"error: {tmp_path}/{message}", [])


def test_indexes_are_those_of_options_and_of_variables_of_uv() -> None:
    environ = {
        "UV_INDEX": "own=https://a/simple?x=1 https://b",
        "UV_FIND_LINKS": "https://c,dist",
        "PIP_INDEX_URL": "no",
    }
    options = ResolveOptions("https://me@d/", ("file:///x", "https://e"))
    assert index_urls(options, environ) == (
        "https://me@d/",
        "https://e",
        "https://a/simple?x=1",
        "https://b",
        "https://c",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("machine host login me password w@rd", "https://me:w%40rd@host/x"),
        ("machine other login me password word", "https://host/x"),
        ("machine host login", "https://host/x"),
    ],
    ids=["known", "other", "broken"],
)
def test_what_no_index_says_the_netrc_file_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    (tmp_path / "netrc").write_text(f"{text}\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert with_user("https://host/x", ["https://[bad", "https://other/simple"]) == expected
    assert with_user("https://host/x", ["https://you:own@host/simple"]) == "https://you:own@host/x"
