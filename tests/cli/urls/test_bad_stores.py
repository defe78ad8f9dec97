"""Stores that misbehave, by command: an error that says where and what to do, nothing broken, and a rerun."""

from __future__ import annotations

import base64
import os
import re
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from rocwheel.index.write_index import write_index
from rocwheel.stores.objects import CLIENT, RETRIES
from rocwheel.stores.open import open_store
from tests.support.fault_proxy import Fault, FaultProxy, fault_proxy
from tests.support.loopback import served
from tests.support.s3_server import BUCKET
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.command_line import Run
    from tests.support.s3_server import S3Server

pytestmark = pytest.mark.slow

ARCHIVES = ("blas_dev_generic.tar.zst", "blas_lib_generic.tar.zst")


COMMANDS: dict[str, Callable[[str, Path], tuple[Path | str, ...]]] = {
    "artifacts fetch": lambda url, here: ("artifacts", "fetch", f"{url}/archives", "-d", here),
    "index": lambda url, here: ("index", f"{url}/dist", "--files", "copy", "--output", here / "www"),
    "index mirror": lambda url, here: ("index", "mirror", f"{url}/simple", "--project", "a*", "-d", here),
    "lock": lambda url, here: ("lock", "alpha", "--index-url", f"{url}/simple", "--output", here / "pylock.toml"),
    "inspect": lambda url, _: ("inspect", f"{url}/dist/alpha-1.0-py3-none-any.whl"),
    "audit": lambda url, _: ("audit", "--no-closed", f"{url}/dist/alpha-1.0-py3-none-any.whl"),
    "audit folder": lambda url, _: ("audit", "--no-closed", f"{url}/dist"),
}


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("there")
    make_wheel(folder / "dist", "alpha", {"alpha.bin": os.urandom(300_000)}, tag="py3-none-any", is_purelib=True)
    write_index(folder / "dist", folder / "simple")
    (folder / "archives").mkdir()
    for name in ARCHIVES:
        (folder / "archives" / name).write_bytes(os.urandom(100_000))
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    short = timedelta(milliseconds=1)
    monkeypatch.setitem(RETRIES, "backoff", {"init_backoff": short, "max_backoff": short, "base": 2.0})
    monkeypatch.setitem(RETRIES, "max_retries", 2)
    monkeypatch.setattr("rocwheel.stores.store._FIRST", 0.001)
    monkeypatch.setattr("rocwheel.stores.store.MOST_ATTEMPTS", 3)
    monkeypatch.setenv("UV_HTTP_RETRIES", "2")
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@contextmanager
def impatience(fault: Fault) -> Iterator[None]:
    """Don't wait for long for a server that is mute; for others, as long as a busy machine needs."""
    with pytest.MonkeyPatch.context() as patch:
        if fault.is_mute:
            patch.setitem(CLIENT, "timeout", timedelta(seconds=0.3))
            patch.setattr("rocwheel.stores.web._TIMEOUT", 0.3)
        yield


@pytest.fixture
def web(there: Path) -> Iterator[FaultProxy]:
    with served(there) as address, fault_proxy(address) as proxy:
        yield proxy


@pytest.fixture
def bucket(there: Path, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    store = open_store(f"s3://{BUCKET}")
    for path in sorted(there.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            store.put(path.relative_to(there).as_posix(), path)
    with fault_proxy(s3.address) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        yield proxy


def require_whole(folder: Path, there: Path) -> None:
    """Assert that what has a name that people see is as it is at the source."""
    sources = {path.name: path for path in there.rglob("*") if path.is_file()}
    for path in folder.rglob("*"):
        if path.is_file() and path.name in sources and path.suffix in {".whl", ".zst"} and path.name[0] != ".":
            assert path.read_bytes() == sources[path.name].read_bytes()


PASSING = {
    "503 twice": (Fault(503, "SlowDown"), 2),
    "ends once": (Fault(cut_at=10), 1),
    "shorter than announced": (Fault(missing=100), 1),
}


@pytest.mark.deep
@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("name", COMMANDS)
def test_what_passes_is_not_seen(run: Run, web: FaultProxy, here: Path, there: Path, name: str, fault: str) -> None:
    web.break_down(PASSING[fault][0], times=PASSING[fault][1])
    done = run(*COMMANDS[name](web.address, here))
    assert (done.status, "error" in done.stderr) == (0, False), done.stderr
    require_whole(here, there)


LATER = "Try again later."
TRIED = r"after [3-9] attempts in \d+\.\d s"
LASTING = {
    "no permission": (
        Fault(403, "AccessDenied"),
        "403|the store forbids it",
        "Ask its owner|Name its files one by one",
    ),
    "wrong password": (
        Fault(401),
        "401|wants other credentials",
        "Give user and password: https://USER:PASSWORD@HOST/",
    ),
    "out of order": (Fault(503, "ServiceUnavailable"), rf"status 503, {TRIED}", LATER),
    "always ends": (Fault(cut_at=10), rf"the transfer ended early.*, {TRIED}", LATER),
    "shorter than announced": (Fault(missing=100), rf"the transfer ended early.*, {TRIED}", LATER),
    "mute": (Fault(is_mute=True), rf"(timed out\)|nobody answers in time), {TRIED}", LATER),
    "circle": (Fault(302, location="?"), "leads on and on, or nowhere", "Give the URL that it should lead to"),
}
LOCKING = {"no permission": "403 Forbidden", "wrong password": "401 Unauthorized", "out of order": "503 Service"}


@pytest.mark.deep
@pytest.mark.parametrize("fault", LASTING)
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "lock"])
def test_what_lasts_is_said(run: Run, web: FaultProxy, here: Path, there: Path, name: str, fault: str) -> None:
    words = COMMANDS[name](web.address, here)
    broken, found, remedy = LASTING[fault]
    web.break_down(broken)
    with impatience(broken):
        done = run(*words)
    assert done.status == 1
    assert re.match(rf"error: {web.address}/[^ ]*: .*({found}).*\. ({remedy})", done.stderr), done.stderr
    require_whole(here, there)
    web.recover()
    again = run(*words)
    assert again.status == 0, again.stderr
    require_whole(here, there)


@pytest.mark.deep
@pytest.mark.parametrize("target", ["file:///etc/passwd", "s3://bucket/x", "ftp://host/x"])
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "lock"])
def test_a_redirect_out_of_the_web_is_refused(
    run: Run, web: FaultProxy, here: Path, there: Path, name: str, target: str
) -> None:
    web.break_down(Fault(302, location=target))
    done = run(*COMMANDS[name](web.address, here))
    assert done.status == 2
    text = f"error: {web.address}/[^ ]*: leads to '{target}'; expected an address of the web\n"
    assert re.fullmatch(text, "".join(line for line in done.stderr.splitlines(True) if "..." not in line)), done.stderr
    require_whole(here, there)


@pytest.mark.deep
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "lock"])
def test_a_password_that_was_given_is_the_one_to_correct(run: Run, web: FaultProxy, here: Path, name: str) -> None:
    web.authorization = f"Basic {base64.b64encode(b'me:s3cret').decode()}"
    done = run(*COMMANDS[name](web.address.replace("//", "//me:wrong@"), here))
    assert done.status == 1
    assert done.stderr.endswith(". Correct the user and password that the URL has.\n"), done.stderr


@pytest.mark.deep
@pytest.mark.parametrize("fault", LOCKING)
def test_what_the_resolver_meets_is_said(run: Run, web: FaultProxy, here: Path, fault: str) -> None:
    words = COMMANDS["lock"](web.address, here)
    web.break_down(LASTING[fault][0])
    done = run(*words)
    assert done.status == 2
    assert re.search(rf"(?m)^error: alpha: can't be locked \(.*{web.address}/simple.*{LOCKING[fault]}", done.stderr), (
        done.stderr
    )
    assert "Check the requirements and where packages are looked for (--index-url, --find-links)." in done.stderr
    assert list(here.iterdir()) == []
    web.recover()
    again = run(*words)
    assert again.status == 0, again.stderr


KEYS = "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN."
REFUSALS = {
    "no permission": (Fault(403, "AccessDenied"), "the store forbids it", "Ask its owner for the permission"),
    "wrong secret": (Fault(403, "SignatureDoesNotMatch"), "refuses the secret key", KEYS),
    "clock": (
        Fault(403, "RequestTimeTooSkewed"),
        "is more than a quarter of an hour from the clock of this machine",
        "Set the clock of this machine right.",
    ),
    "overloaded": (Fault(503, "SlowDown"), rf"(the store is overloaded|answers with status 503), {TRIED}", LATER),
    "mute": (Fault(is_mute=True), rf"nobody answers in time, {TRIED}", LATER),
}


@pytest.mark.deep
@pytest.mark.parametrize("fault", REFUSALS)
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "lock"])
def test_what_a_bucket_refuses_is_said(
    run: Run, bucket: FaultProxy, here: Path, there: Path, name: str, fault: str
) -> None:
    words = COMMANDS[name](f"s3://{BUCKET}", here)
    broken, found, remedy = REFUSALS[fault]
    bucket.break_down(broken)
    with impatience(broken):
        done = run(*words)
    assert done.status == 1
    assert re.search(rf"(?m)^error: s3://{BUCKET}/[^ ]*: ({found})\. {remedy}", done.stderr), done.stderr
    require_whole(here, there)
    bucket.recover()
    again = run(*words)
    assert again.status == 0, again.stderr
    require_whole(here, there)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("where", "fault"),
    [("", "no permission"), ("/dist/", "clock"), ("/dist/", "overloaded"), ("/simple/", "wrong secret"),
     ("/simple/", "overloaded"), ("/simple/", "mute")],
)  # fmt: skip
def test_what_breaks_a_publication_leaves_the_index_whole(
    run: Run, bucket: FaultProxy, here: Path, tmp_path: Path, where: str, fault: str
) -> None:
    make_wheel(tmp_path / "new", "beta", {"beta.bin": b"beta"}, tag="py3-none-any", is_purelib=True)
    broken, found, remedy = REFUSALS[fault]
    bucket.break_down(broken, where=where)
    with impatience(broken):
        done = run("publish", tmp_path / "new", f"s3://{BUCKET}", "--quiet")
    assert done.status == 1
    assert re.match(rf"error: s3://{BUCKET}[^ ]*: ({found})\. {remedy}", done.stderr), done.stderr
    bucket.recover()
    require_listed(here / "before", {"alpha-1.0-py3-none-any.whl"}, run)
    again = run("publish", tmp_path / "new", f"s3://{BUCKET}")
    assert again.status == 0, again.stderr
    require_listed(here / "after", {"alpha-1.0-py3-none-any.whl", "beta-1.0-py3-none-any.whl"}, run)


def require_listed(folder: Path, names: set[str], run: Run) -> None:
    """Assert that the index in the bucket lists these files, with the hashes that they have."""
    assert run("index", "mirror", f"s3://{BUCKET}/simple", "--project", "*", "-d", folder, "-q").status == 0
    assert {path.name for path in (folder / "dist").glob("*.whl")} == names


def is_told(secret: str, folder: Path) -> list[str]:
    """Return the files below a folder that hold a text, or have it in their names."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in found if secret in str(path) or secret.encode() in path.read_bytes()]


@pytest.mark.deep
@pytest.mark.parametrize("name", COMMANDS)
def test_a_password_is_used_and_nowhere_told(run: Run, web: FaultProxy, here: Path, tmp_path: Path, name: str) -> None:
    web.authorization = f"Basic {base64.b64encode(b'me:s3cret').decode()}"
    words = COMMANDS[name](web.address.replace("//", "//me:s3cret@"), here)
    done = run(*words, "--json")
    assert done.status == 0, done.stderr
    assert "s3cret" not in done.stdout + done.stderr
    assert is_told("s3cret", tmp_path) == []


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "fault"), [(name, fault) for name in COMMANDS for fault in (LOCKING if name == "lock" else LASTING)]
)
def test_a_password_is_in_no_error(
    run: Run, web: FaultProxy, here: Path, tmp_path: Path, name: str, fault: str
) -> None:
    web.break_down(LASTING[fault][0])
    with impatience(LASTING[fault][0]):
        done = run(*COMMANDS[name](web.address.replace("//", "//me:s3cret@"), here))
    assert done.status in {1, 2}
    assert "s3cret" not in done.stdout + done.stderr
    assert is_told("s3cret", tmp_path) == []


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "https://me:secret@[bad/x.whl"),
        ("audit", "https://me:secret@/x.whl"),
        ("device list", "https://me:secret@[bad/x.whl"),
        ("artifacts fetch", "https://me:secret@/x", "-d", "here"),
        ("artifacts list", "--artifact-dir", "https://me:secret@[bad/x"),
        ("publish", ".", "s3://key:secret@/x"),
        ("index yank", "a-1.0-py3-none-any.whl", "--output", "s3://key:secret@/x"),
        ("index mirror", "https://me:secret@[bad", "--project", "a", "-d", "here"),
        ("index", ".", "--url", "https://me:secret@[bad"),
        ("repair", "https://me:secret@[bad/x.whl"),
        ("lock", "x @ https://me:secret@127.0.0.1:1/x-1.0-py3-none-any.whl"),
    ],
    ids=lambda words: words[0],
)
def test_no_command_prints_the_password_of_a_url(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    done = run(*words[0].split(), *words[1:])
    assert done.status != 0
    assert "secret" not in done.stdout + done.stderr
