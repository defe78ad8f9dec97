"""URLs instead of files and folders: what is read of them, and what a store or server refuses."""

from __future__ import annotations

import base64
import json
import os
import re
import zipfile
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.index.write_index import write_index
from rocwheel.stores.objects import CLIENT
from rocwheel.stores.open import open_store
from rocwheel.stores.retry import RETRIES
from tests.support.fault_proxy import Fault, FaultProxy, fault_proxy
from tests.support.kpack_files import make_kpack
from tests.support.loopback import served
from tests.support.places import FIXTURES
from tests.support.processes import run_python
from tests.support.s3_server import BUCKET
from tests.support.web_servers import needs_nginx, nginx
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.command_line import Run
    from tests.support.faulty_server import FaultyServer
    from tests.support.s3_server import S3Server


COMMANDS = [("inspect",), ("audit", "--no-closed"), ("device", "list")]


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Return a wheel of some megabytes, of which little is code."""
    files: dict[str, Path | bytes] = {"demo/libtwo.so": FIXTURES / "v22/libtwo.plain.so", "demo/__init__.py": b""}
    files["demo/data.bin"] = os.urandom(8 << 20)
    return make_wheel(tmp_path / "www", "demo", files)


@pytest.fixture
def ranges(wheel: Path, faulty: FaultyServer) -> str:
    """Return the URL of the wheel on a server that has ranges."""
    faulty.files[f"/{wheel.name}"] = wheel.read_bytes()
    return f"{faulty.address}/{wheel.name}"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_wheel_at_a_url_has_the_same_results(run: Run, wheel: Path, ranges: str, command: tuple[str, ...]) -> None:
    local, remote = run(*command, wheel, "--json", "--quiet"), run(*command, ranges, "--json", "--quiet")
    assert remote.status == local.status
    assert json.loads(remote.stdout) == json.loads(local.stdout.replace(str(wheel), ranges))
    assert remote.stderr == local.stderr.replace(str(wheel), ranges)


def test_text_output_has_the_url_and_the_bytes_read(run: Run, wheel: Path, ranges: str, faulty: FaultyServer) -> None:
    finished = run("device", "list", f"{ranges}?signature=secret")
    assert finished.stdout.startswith("demo/libtwo.so: fat binary, 2 bundles, ")
    found = re.search(r"read ([\d.]+) kB of 8\.[45] MB: (\S+)\n", finished.stderr)
    assert found
    assert found[2] == ranges
    assert float(found[1]) < 200
    assert faulty.sent < 200_000
    assert "rocwheel-" not in finished.stdout + finished.stderr


def test_audit_reports_that_record_hashes_were_not_compared(run: Run, ranges: str, faulty: FaultyServer) -> None:
    finished = run("audit", "--no-closed", ranges)
    assert re.search(r"read \d+\.\d kB of 8\.[45] MB, without comparing the hashes in RECORD", finished.stderr)
    assert faulty.sent < 200_000


def test_findings_in_files_have_the_url_without_secrets(run: Run, wheel: Path, ranges: str, tmp_path: Path) -> None:
    secret = ranges.replace("://", "://me:password@") + "?signature=secret"
    written = []
    for number, place in enumerate((wheel, ranges, secret)):
        files = tmp_path / f"{number}.sarif", tmp_path / f"{number}.json"
        words = ("--sarif", files[0], "--baseline", files[1], "--update-baseline", "--expect", "runpath=/none")
        assert run("audit", "--closed", place, *words, "--quiet").status == 0
        written.append([file.read_text() for file in files])
    local, plain, with_secret = written
    assert json.loads(local[1])["findings"] != []
    assert plain == with_secret
    assert plain[1] == local[1]
    results = json.loads(plain[0])["runs"][0]["results"]
    places = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results}
    assert places == {ranges}


@pytest.mark.parametrize("words", [("--with", "{}"), ("--with={}",)], ids=["apart", "joined"])
def test_packages_for_the_with_option_can_be_at_a_url(
    run: Run, tmp_path: Path, ranges: str, words: tuple[str, ...], faulty: FaultyServer
) -> None:
    other = make_wheel(tmp_path / "other", "other", {"other.py": b""}, requires=("demo",))
    finished = run("audit", "--closed", other, *(word.format(ranges) for word in words))
    assert (finished.status, "read " in finished.stderr) == (0, True)
    assert f"of 8.4 MB, without comparing the hashes in RECORD for the other bytes: {ranges}\n" in finished.stderr
    assert faulty.sent < 200_000
    assert run("audit", "--closed", other).status == 1


def test_a_server_without_range_support_sends_the_whole_file(run: Run, wheel: Path) -> None:
    with served(wheel.parent) as address:
        url = f"{address}/{wheel.name}"
        finished = run("inspect", url)
    assert finished.stdout == run("inspect", wheel).stdout.replace(str(wheel), url)
    assert re.search(r"read 8\.[45] MB of 8\.[45] MB, because the server sends only whole files: ", finished.stderr)


@needs_nginx
def test_a_wheel_behind_nginx_is_read_by_range(run: Run, wheel: Path, tmp_path: Path) -> None:
    with nginx(tmp_path / "work", root=wheel.parent) as address:
        finished = run("inspect", f"{address}/{wheel.name}")
    assert re.search(r"read \d+\.\d kB of 8\.[45] MB", finished.stderr)
    assert "gfx" in finished.stdout


@pytest.mark.slow
def test_a_wheel_in_a_bucket_is_read_by_range(run: Run, wheel: Path, s3: S3Server) -> None:
    open_store(f"s3://{BUCKET}/a").put(wheel.name, wheel)
    finished = run("inspect", f"s3://{BUCKET}/a/{wheel.name}")
    assert finished.status == 0
    assert re.search(r"read \d+\.\d kB of 8\.[45] MB", finished.stderr)
    assert f"s3://{BUCKET}/a/{wheel.name}!demo/libtwo.so" in finished.stdout


def test_only_the_tables_of_a_stored_kpack_archive_are_read(run: Run, tmp_path: Path, faulty: FaultyServer) -> None:
    kernels = {("lib/libx.so", 0, "gfx906"): (FIXTURES / "elf/gfx906.co").read_bytes() + os.urandom(6 << 20)}
    path = tmp_path / "x-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/x.kpack", make_kpack(kernels))
    faulty.files["/x.whl"] = path.read_bytes()
    finished = run("inspect", f"{faulty.address}/x.whl")
    assert "gfx906" in finished.stdout
    assert faulty.sent < 400_000


def test_a_library_at_a_url_can_be_read(run: Run, faulty: FaultyServer) -> None:
    faulty.files["/libtwo.so"] = (FIXTURES / "v22/libtwo.plain.so").read_bytes()
    local = run("device", "list", FIXTURES / "v22/libtwo.plain.so", "--json", "--quiet")
    remote = run("device", "list", f"{faulty.address}/libtwo.so", "--json", "--quiet")
    assert remote.stdout == local.stdout.replace(str(FIXTURES / "v22/libtwo.plain.so"), f"{faulty.address}/libtwo.so")


def test_a_file_url_is_treated_as_a_path(run: Run, wheel: Path) -> None:
    assert run("inspect", wheel.as_uri()) == run("inspect", wheel)


def test_a_missing_url_is_reported(run: Run, faulty: FaultyServer) -> None:
    finished = run("inspect", f"{faulty.address}/no.whl?word=secret")
    assert (finished.status, finished.stderr) == (
        1,
        f"error: {faulty.address}/no.whl: does not exist. Correct the name.\n",
    )


def test_a_failing_command_does_not_report_bytes_read_or_repeat_requests(
    run: Run, ranges: str, wheel: Path, faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(data: object, **_: object) -> None:
        del data
        faulty.files[f"/{wheel.name}"] += b"more"
        raise InputError(ranges, "is no good")

    missing = f"{faulty.address}/no.whl"
    assert run("diff", ranges, missing).stderr == f"error: {missing}: does not exist. Correct the name.\n"
    monkeypatch.setattr("rocwheel.cli.inspect._print_file", fail)
    assert run("inspect", ranges).stderr == f"error: {ranges}: is no good\n"


def test_a_damaged_wheel_at_a_url_is_reported(run: Run, wheel: Path, faulty: FaultyServer) -> None:
    faulty.files["/cut-1.0-py3-none-any.whl"] = wheel.read_bytes()[:1_000_000]
    url = f"{faulty.address}/cut-1.0-py3-none-any.whl"
    for command in COMMANDS:
        finished = run(*command, url)
        assert finished.status == 2
        assert f"{url}: " in finished.stderr
        assert "Traceback" not in finished.stderr


def test_other_commands_refuse_urls(run: Run, ranges: str, faulty: FaultyServer) -> None:
    assert run("runpath", "show", ranges).status == 2
    assert faulty.requests == []


def test_a_wheel_replaced_during_reading_is_an_error(
    run: Run, ranges: str, wheel: Path, faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(data: object, **_: object) -> None:
        del data
        faulty.files[f"/{wheel.name}"] += b"more"

    monkeypatch.setattr("rocwheel.cli.inspect._print_file", replace)
    finished = run("inspect", ranges)
    assert (finished.status, f"error: {ranges}: was replaced while it was being read" in finished.stderr) == (1, True)


_FETCH = """
import sys
from pathlib import Path
from types import SimpleNamespace
from rocwheel.cli.remote import _fetch
from rocwheel.core.errors import WorkError
store = SimpleNamespace(
    head=lambda name: SimpleNamespace(size=5000, e_tag=""),
    stream=lambda name, e_tag: iter([bytes(5000)]),
    place=lambda name: f"https://x/{name}",
)
try:
    _fetch(store, "a.whl", Path(sys.argv[1]))
except WorkError as e:
    print(e)
"""


def test_a_download_truncated_by_a_full_disk_is_not_used(tmp_path: Path) -> None:
    """A write to a disk that is about to be full takes the bytes that fit, and no error."""
    assert run_python(_FETCH, tmp_path / "a.whl", file_size=4096).startswith("https://x/a.whl: it can't be written to ")


ARCHIVES = ("blas_dev_generic.tar.zst", "blas_lib_generic.tar.zst")


ASKING: dict[str, Callable[[str, Path], tuple[Path | str, ...]]] = {
    "artifacts fetch": lambda url, here: ("artifacts", "fetch", f"{url}/archives", "-o", here),
    "index": lambda url, here: ("index", f"{url}/dist", "--files", "copy", "--output", here / "www"),
    "index mirror": lambda url, here: ("index", "mirror", f"{url}/simple", "--project", "a*", "-o", here),
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
    monkeypatch.setattr("rocwheel.stores.retry._FIRST", 0.001)
    monkeypatch.setattr("rocwheel.stores.retry.MOST_ATTEMPTS", 3)
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


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("name", ASKING)
def test_brief_faults_are_retried(run: Run, web: FaultProxy, here: Path, there: Path, name: str, fault: str) -> None:
    web.break_down(PASSING[fault][0], times=PASSING[fault][1])
    done = run(*ASKING[name](web.address, here))
    assert (done.status, "error" in done.stderr) == (0, False), done.stderr
    require_whole(here, there)


LATER = "Try again later."
TRIED = r"after [3-9] attempts in \d+\.\d s"
LASTING = {
    "no permission": (
        Fault(403, "AccessDenied"),
        "403|permission denied",
        "Ask the owner|Specify the files individually",
    ),
    "wrong password": (
        Fault(401),
        "401|requires different credentials",
        "Add a user and password to the URL: https://USER:PASSWORD@HOST/",
    ),
    "out of order": (Fault(503, "ServiceUnavailable"), rf"status 503, {TRIED}", LATER),
    "always ends": (Fault(cut_at=10), rf"the transfer ended early.*, {TRIED}", LATER),
    "shorter than announced": (Fault(missing=100), rf"the transfer ended early.*, {TRIED}", LATER),
    "mute": (Fault(is_mute=True), rf"(timed out\)|the request timed out), {TRIED}", LATER),
    "circle": (
        Fault(302, location="?"),
        "has endless or broken redirects",
        "Specify the URL that the redirect should point to",
    ),
}
LOCKING = {"no permission": "403 Forbidden", "wrong password": "401 Unauthorized", "out of order": "503 Service"}


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("fault", LASTING)
@pytest.mark.parametrize("name", [name for name in ASKING if name != "lock"])
def test_lasting_faults_are_reported(run: Run, web: FaultProxy, here: Path, there: Path, name: str, fault: str) -> None:
    words = ASKING[name](web.address, here)
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


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("target", ["file:///etc/passwd", "s3://bucket/x", "ftp://host/x"])
@pytest.mark.parametrize("name", [name for name in ASKING if name != "lock"])
def test_a_redirect_to_a_non_web_url_is_refused(
    run: Run, web: FaultProxy, here: Path, there: Path, name: str, target: str
) -> None:
    web.break_down(Fault(302, location=target))
    done = run(*ASKING[name](web.address, here))
    assert done.status == 2
    text = f"error: {web.address}/[^ ]*: points to '{target}'; expected a web URL\n"
    assert re.fullmatch(text, "".join(line for line in done.stderr.splitlines(True) if "..." not in line)), done.stderr
    require_whole(here, there)


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("name", [name for name in ASKING if name != "lock"])
def test_a_wrong_password_in_the_url_is_reported(run: Run, web: FaultProxy, here: Path, name: str) -> None:
    web.authorization = f"Basic {base64.b64encode(b'me:s3cret').decode()}"
    done = run(*ASKING[name](web.address.replace("//", "//me:wrong@"), here))
    assert done.status == 1
    assert done.stderr.endswith(". Correct the user and password in the URL.\n"), done.stderr


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("fault", LOCKING)
def test_faults_during_resolution_are_reported(run: Run, web: FaultProxy, here: Path, fault: str) -> None:
    words = ASKING["lock"](web.address, here)
    web.break_down(LASTING[fault][0])
    done = run(*words)
    assert done.status == 2
    assert re.search(rf"(?m)^error: alpha: can't be locked \(.*{web.address}/simple.*{LOCKING[fault]}", done.stderr), (
        done.stderr
    )
    assert "Check the requirements and the package locations (--index-url, --find-links)." in done.stderr
    assert list(here.iterdir()) == []
    web.recover()
    again = run(*words)
    assert again.status == 0, again.stderr


KEYS = "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN."
REFUSALS = {
    "no permission": (Fault(403, "AccessDenied"), "permission denied", "Ask the owner for permission"),
    "wrong secret": (Fault(403, "SignatureDoesNotMatch"), "rejects the secret key", KEYS),
    "clock": (
        Fault(403, "RequestTimeTooSkewed"),
        "the store's clock differs from this machine's clock by more than 15 minutes",
        "Correct this machine's clock.",
    ),
    "overloaded": (
        Fault(503, "SlowDown"),
        rf"(the store is overloaded|the server returned status 503), {TRIED}",
        LATER,
    ),
    "mute": (Fault(is_mute=True), rf"the request timed out, {TRIED}", LATER),
}


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("fault", REFUSALS)
@pytest.mark.parametrize("name", [name for name in ASKING if name != "lock"])
def test_refusals_by_a_bucket_are_reported_with_a_remedy(
    run: Run, bucket: FaultProxy, here: Path, there: Path, name: str, fault: str
) -> None:
    words = ASKING[name](f"s3://{BUCKET}", here)
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


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize(
    ("where", "fault"),
    [("", "no permission"), ("/dist/", "clock"), ("/dist/", "overloaded"), ("/simple/", "wrong secret"),
     ("/simple/", "overloaded"), ("/simple/", "mute")],
)  # fmt: skip
def test_a_failed_publication_leaves_the_index_intact(
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
    assert run("index", "mirror", f"s3://{BUCKET}/simple", "--project", "*", "-o", folder, "-q").status == 0
    assert {path.name for path in (folder / "dist").glob("*.whl")} == names


def is_told(secret: str, folder: Path) -> list[str]:
    """Return the files below a folder that hold a text, or have it in their names."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in found if secret in str(path) or secret.encode() in path.read_bytes()]


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("name", ASKING)
def test_a_password_is_used_but_never_shown(run: Run, web: FaultProxy, here: Path, tmp_path: Path, name: str) -> None:
    web.authorization = f"Basic {base64.b64encode(b'me:s3cret').decode()}"
    words = ASKING[name](web.address.replace("//", "//me:s3cret@"), here)
    done = run(*words, "--json")
    assert done.status == 0, done.stderr
    assert "s3cret" not in done.stdout + done.stderr
    assert is_told("s3cret", tmp_path) == []


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "fault"), [(name, fault) for name in ASKING for fault in (LOCKING if name == "lock" else LASTING)]
)
def test_a_password_is_not_in_any_error(
    run: Run, web: FaultProxy, here: Path, tmp_path: Path, name: str, fault: str
) -> None:
    web.break_down(LASTING[fault][0])
    with impatience(LASTING[fault][0]):
        done = run(*ASKING[name](web.address.replace("//", "//me:s3cret@"), here))
    assert done.status in {1, 2}
    assert "s3cret" not in done.stdout + done.stderr
    assert is_told("s3cret", tmp_path) == []


@pytest.mark.slow
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
