"""``rocwheel index mirror``: what it copies, prints and refuses."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.build.variant_wheels import add_variants
from rocwheel.index.write_index import write_index
from rocwheel.stores.open import open_store
from tests.support.command_line import rocwheel
from tests.support.loopback import served
from tests.support.reply_server import JSON, Reply
from tests.support.s3_server import BUCKET
from tests.support.variant_wheels import add_gpu_package
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.command_line import Run
    from tests.support.reply_server import Server
    from tests.support.s3_server import S3Server


@pytest.fixture
def there(tmp_path: Path) -> Path:
    for name in ("rocm_sdk_core", "rocm_sdk_device_gfx1100", "rocm_sdk_device_gfx942"):
        make_wheel(tmp_path / "there/dist", name, {}, tag="py3-none-any", is_purelib=True)
    write_index(tmp_path / "there/dist", tmp_path / "there/simple")
    return tmp_path / "there"


@pytest.fixture
def address(there: Path) -> Iterator[str]:
    with served(there) as found:
        yield f"{found}/simple"


@pytest.mark.slow
def test_mirror_prints_the_fetched_files_and_the_install_command(run: Run, address: str, tmp_path: Path) -> None:
    words = ("index", "mirror", address, "--project", "rocm*", "--targets", "RX 7900 XTX", "-o", tmp_path / "here")
    installed = f"install with: pip install --index-url file://{tmp_path}/here/simple PROJECT\n"
    first, second = run(*words), run(*words)
    assert (first.status, first.stdout) == (
        0,
        f"2 files fetched to {tmp_path}/here/dist, 0 already present\n{installed}",
    )
    assert second.status == 0
    assert second.stdout == f"0 files fetched to {tmp_path}/here/dist, 2 already present\n{installed}"


@pytest.mark.slow
@pytest.mark.parametrize("project", ["rocm*", "rocm-sdk-core", "no-such", "there"])
@pytest.mark.parametrize("place", ["web", "files", "S3"])
def test_the_folder_above_an_index_is_refused_with_the_url_of_the_index(
    run: Run, request: pytest.FixtureRequest, there: Path, tmp_path: Path, place: str, project: str
) -> None:
    if place == "web":
        url = request.getfixturevalue("address").removesuffix("/simple")
    elif place == "files":
        url = there.as_uri()
    else:
        request.getfixturevalue("s3")
        url = f"s3://{BUCKET}/there"
        store = open_store(url)
        for path in (there / "simple").rglob("*.*"):
            store.put(path.relative_to(there).as_posix(), path)
    # Quiet: on a busy machine, asking the store takes long enough to say how far it is.
    done = run("index", "mirror", url, "--project", project, "-o", tmp_path / "here", "--quiet")
    text = f"error: {url}/: is the folder above a package index, {url}/simple/. Use that URL.\n"
    assert (done.status, done.stderr) == (2, text)
    assert not (tmp_path / "here").exists()


@pytest.mark.slow
def test_an_index_with_a_project_named_simple_is_recognized_as_an_index(run: Run, tmp_path: Path) -> None:
    make_wheel(tmp_path / "dist", "simple", {}, tag="py3-none-any", is_purelib=True)
    write_index(tmp_path / "dist", tmp_path / "index")
    with served(tmp_path) as found:
        done = run("index", "mirror", f"{found}/index", "--project", "other", "-o", tmp_path / "here")
    assert (done.status, done.stderr) == (2, f"error: other: is not a project in {found}/index/. Correct the name.\n")


@pytest.mark.slow
def test_a_dry_run_lists_the_files_and_writes_nothing(run: Run, address: str, tmp_path: Path) -> None:
    done = run("index", "mirror", address, "--project", "rocm*", "-o", tmp_path / "here", "--dry-run", "--json")
    assert [one["filename"].partition("-")[0] for one in json.loads(done.stdout)["files"]] == [
        "rocm_sdk_core",
        "rocm_sdk_device_gfx1100",
        "rocm_sdk_device_gfx942",
    ]
    assert not (tmp_path / "here").exists()


@pytest.mark.slow
def test_a_second_index_does_not_replace_projects_of_the_first(run: Run, there: Path, tmp_path: Path) -> None:
    make_wheel(there / "dist", "app", {}, requires=("rocm-sdk-core",), tag="py3-none-any", is_purelib=True)
    write_index(there / "dist", there / "simple")
    make_wheel(tmp_path / "public/dist", "rocm_sdk_core", {}, version="99.0", tag="py3-none-any", is_purelib=True)
    write_index(tmp_path / "public/dist", tmp_path / "public/simple")
    urls = [(place / "simple").as_uri() for place in (there, tmp_path / "public")]
    words = (
        "index",
        "mirror",
        *urls,
        "--project",
        "app",
        "--with-requirements",
        "-o",
        tmp_path / "here",
        "--dry-run",
        "--json",
    )
    taken = [one["filename"] for one in json.loads(run(*words).stdout)["files"]]
    assert taken == ["app-1.0-py3-none-any.whl", "rocm_sdk_core-1.0-py3-none-any.whl"]
    taken = [one["filename"] for one in json.loads(run(*words, "--pool", "ROCm_SDK.core").stdout)["files"]]
    assert taken == ["app-1.0-py3-none-any.whl", "rocm_sdk_core-99.0-py3-none-any.whl"]


@pytest.mark.slow
def test_a_gpu_without_packages_is_an_error_before_any_download(run: Run, address: str, tmp_path: Path) -> None:
    words = ("--project", "rocm*", "--targets", "gfx1201;gfx942", "-o", tmp_path / "here")
    done = run("index", "mirror", address, *words)
    assert (done.status, done.stdout) == (2, "")
    message = "error: --targets: no package in the index supports gfx1201. There are packages for gfx942, gfx1100.\n"
    assert done.stderr == message
    assert not (tmp_path / "here").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("simple", "--project", "x"), "error: simple: is not a URL; expected http://, https://, file://, or s3://\n"),
        (("http://127.0.0.1:1/", "--project", "x"), "error: http://127.0.0.1:1/x/: can't connect to the server ("),
        (("file:///no/such", "--project", "x*"), "error: file:///no/such/: does not contain a package index"),
        (
            ("file:///no/such", "--project", "x"),
            "error: file:///no/such/: does not contain a package index. Correct the URL.\n",
        ),
        (("http://h/", "--project", "x", "--version", "new"),
         "error: --version: is 'new'; expected a version specifier"),
        (("http://h/", "--project", "x", "--targets", "gfx9999"), "error: --targets: 'gfx9999' isn't a known"),
    ],
    ids=["text", "server", "page of a pattern", "page of a project", "version", "target"],
)  # fmt: skip
def test_bad_arguments_are_reported_on_one_line(run: Run, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    done = run("index", "mirror", *words, "-o", tmp_path / "here")
    assert done.status in {1, 2}
    assert done.stderr.startswith(message)
    assert not (tmp_path / "here").exists()


@pytest.mark.slow
@pytest.mark.parametrize("project", ["rocm-sdk-core", "rocm*"])
@pytest.mark.parametrize("place", ["dist", "missing"])
def test_a_url_without_an_index_is_reported_before_its_projects(
    run: Run, there: Path, tmp_path: Path, place: str, project: str
) -> None:
    url = (there / place).as_uri()
    done = run("index", "mirror", url, "--project", project, "-o", tmp_path / "here")
    assert (done.status, done.stderr) == (1, f"error: {url}/: does not contain a package index. Correct the URL.\n")


@pytest.mark.slow
def test_a_missing_url_is_reported_before_its_projects(run: Run, there: Path, tmp_path: Path) -> None:
    with served(there) as url:
        done = run("index", "mirror", f"{url}/missing", "--project", "rocm-sdk-core", "-o", tmp_path / "here")
    assert (done.status, done.stderr) == (1, f"error: {url}/missing/: does not exist. Correct the URL.\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["here", "here/dist", "here/simple"])
def test_a_file_instead_of_an_output_folder_is_an_error_before_the_first_request(
    run: Run, there: Path, tmp_path: Path, name: str
) -> None:
    place, asked = tmp_path / name, list[str]()
    place.parent.mkdir(exist_ok=True)
    place.write_text("mine")
    with served(there, asked) as url:
        done = run("index", "mirror", f"{url}/simple", "--project", "rocm*", "-o", tmp_path / "here")
    message = f"error: {place}: isn't a folder; expected an output folder. Change --output."
    assert (done.status, " ".join(done.stderr.split()), asked) == (2, message, [])


@pytest.mark.slow
def test_an_index_in_a_bucket_is_mirrored(run: Run, there: Path, tmp_path: Path, s3: S3Server) -> None:
    store = open_store(f"s3://{BUCKET}/rocm")
    for path in sorted(there.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            store.put(path.relative_to(there).as_posix(), path)
    done = run("index", "mirror", f"s3://{BUCKET}/rocm/simple", "--project", "rocm*", "-o", tmp_path / "here", "-q")
    assert (done.status, done.stderr) == (0, "")
    assert len(list((tmp_path / "here/dist").glob("*.whl"))) == 3


@pytest.mark.slow
def test_a_killed_mirror_is_resumed(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    make_wheel(there / "dist", "big", {"big.bin": bytes(range(256)) * (1 << 18)}, tag="py3-none-any", is_purelib=True)
    make_wheel(there / "dist", "small", {}, tag="py3-none-any", is_purelib=True)
    write_index(there / "dist", there / "simple")
    words = ["index", "mirror", (there / "simple").as_uri(), "--project", "*", "-o", str(here), "-q"]
    for pause in (0.0, 0.02, 0.1):
        with subprocess.Popen([sys.executable, "-m", "rocwheel", *words]) as process:
            limit = time.monotonic() + 60
            while not here.exists() and time.monotonic() < limit:
                time.sleep(0.002)
            time.sleep(pause)
            process.send_signal(signal.SIGKILL)
        for path in (here / "dist").glob("[a-z]*.whl"):
            assert path.read_bytes() == (there / "dist" / path.name).read_bytes()
    done = rocwheel(*words)
    assert done.returncode == 0, done.stderr
    found = sorted(path.name for path in (here / "dist").iterdir())
    assert found == sorted(path.name for path in (there / "dist").iterdir())
    shutil.rmtree(there)


@pytest.fixture
def with_variants(tmp_path: Path) -> Path:
    """Return the folder of an index with device packages for two GPUs, and their wheel variants."""
    dist = tmp_path / "variants/dist"
    make_wheel(dist, "rocm-sdk-libraries", {}, version="7.0.0", tag="py3-none-any")
    for target in ("gfx1100", "gfx942"):
        add_gpu_package(dist, f"rocm-sdk-device-{target}", targets=[target])
    add_variants(dist)
    write_index(dist, dist.parent / "simple")
    return dist.parent


def listed(here: Path, project: str) -> list[str]:
    return [file["filename"] for file in json.loads((here / "simple" / project / "index.json").read_text())["files"]]


@pytest.mark.slow
def test_variants_for_the_given_gpus_are_copied_and_relisted(run: Run, with_variants: Path, tmp_path: Path) -> None:
    url, here = (with_variants / "simple").as_uri(), tmp_path / "here"
    words = ("--project", "rocm*", "--targets", "gfx1100", "--variants", "--variants-for", "gfx1100", "-o", here, "-q")
    assert run("index", "mirror", url, *words) == (0, "", "")
    assert listed(here, "rocm-sdk-device") == [
        "rocm_sdk_device-7.0.0-py3-none-any-gfx1100.whl",
        "rocm_sdk_device-7.0.0-py3-none-any-null.whl",
        "rocm_sdk_device-7.0.0-py3-none-any.whl",
        "rocm_sdk_device-7.0.0-variants.json",
    ]
    path = here / "simple/rocm-sdk-device/rocm_sdk_device-7.0.0-variants.json"
    first = path.read_bytes()
    assert set(json.loads(first)["variants"]) == {"gfx1100", "null"}
    assert json.loads(first)["providers"]["amd"]["static-properties"] == {"gfx_arch": ["gfx1100"]}
    again = ("--project", "rocm*", "--targets", "gfx1100", "--variants", "-o", here, "-q")
    assert run("index", "mirror", url, *again).status == 0
    assert path.read_bytes() == first


@pytest.mark.slow
def test_variants_are_skipped_unless_requested(run: Run, with_variants: Path, tmp_path: Path) -> None:
    words = ("--project", "rocm*", "--targets", "gfx1100", "-o", tmp_path / "here", "--json", "-q")
    report = json.loads(run("index", "mirror", (with_variants / "simple").as_uri(), *words).stdout)
    assert listed(tmp_path / "here", "rocm-sdk-device") == ["rocm_sdk_device-7.0.0-py3-none-any.whl"]
    assert report["ignored"] == [
        f"rocm_sdk_device-7.0.0-py3-none-any-{name}.whl" for name in ("gfx1100", "gfx942", "null")
    ]


@pytest.mark.slow
def test_a_plain_wheel_that_requires_other_gpus_is_reported(run: Run, with_variants: Path, tmp_path: Path) -> None:
    words = (
        "--project",
        "rocm-sdk-device",
        "--targets",
        "gfx1100",
        "--variants",
        "--with-requirements",
        "-o",
        tmp_path / "x",
    )
    done = run("index", "mirror", (with_variants / "simple").as_uri(), *words)
    assert done.status == 0
    message = "rocm_sdk_device-7.0.0-py3-none-any.whl: requires packages for other GPUs: rocm-sdk-device-gfx942\n"
    assert message in done.stdout
    assert listed(tmp_path / "x", "rocm-sdk-device-gfx1100") == ["rocm_sdk_device_gfx1100-7.0.0-py3-none-any.whl"]
    assert (tmp_path / "x/simple/rocm-sdk-libraries").is_dir()


@pytest.mark.slow
def test_variants_without_a_listed_variants_file_are_refused(run: Run, with_variants: Path, tmp_path: Path) -> None:
    page = with_variants / "simple/rocm-sdk-device/index.json"
    document = json.loads(page.read_text())
    document["files"] = [file for file in document["files"] if not file["filename"].endswith(".json")]
    page.write_text(json.dumps(document))
    words = ("--project", "rocm*", "--variants", "-o", tmp_path / "here")
    done = run("index", "mirror", (with_variants / "simple").as_uri(), *words)
    assert done.status == 2
    message = (
        "rocm-sdk-device: has wheel variants, but its page doesn't list rocm_sdk_device-7.0.0-variants.json. "
        "Contact the publisher, or omit --variants.\n"
    )
    assert message in done.stderr
    assert not (tmp_path / "here").exists()


@pytest.mark.slow
def test_a_second_run_requests_only_the_pages(run: Run, there: Path, tmp_path: Path) -> None:
    asked: list[str] = []
    with served(there, asked) as address:
        words = (
            "index",
            "mirror",
            f"{address}/simple",
            "--project",
            "rocm*",
            "--with-requirements",
            "-o",
            tmp_path / "x",
        )
        assert run(*words).status == 0
        first = [path for path in asked if path.startswith("/dist/")]
        asked.clear()
        assert run(*words).status == 0
    assert len(first) == 6
    assert sorted(asked) == [
        "/simple/",
        "/simple/rocm-sdk-core/",
        "/simple/rocm-sdk-device-gfx1100/",
        "/simple/rocm-sdk-device-gfx942/",
    ]


@pytest.mark.slow
def test_extras_without_with_requirements_are_refused(run: Run, tmp_path: Path) -> None:
    done = run("index", "mirror", "http://h/", "--project", "rocm[libraries,device]", "-o", tmp_path / "here")
    assert done.status == 2
    message = "error: --project: rocm[libraries,device] contains extras."
    assert done.stderr == f"{message} Add --with-requirements, or remove the extras.\n"


@pytest.mark.slow
def test_a_dry_run_lists_files_that_would_be_removed(run: Run, address: str, tmp_path: Path) -> None:
    make_wheel(tmp_path / "here/dist", "other", {}, tag="py3-none-any", is_purelib=True)
    words = ("index", "mirror", address, "--project", "rocm*", "-o", tmp_path / "here", "--exact", "--dry-run")
    assert json.loads(run(*words, "--json").stdout)["removed"] == ["other-1.0-py3-none-any.whl"]
    assert "other-1.0-py3-none-any.whl: would be removed" in run(*words).stdout
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["dist"]


@pytest.mark.slow
def test_a_dry_run_with_requirements_writes_nothing(run: Run, sample_dist: Path, tmp_path: Path) -> None:
    shutil.copytree(sample_dist, tmp_path / "dist")
    write_index(tmp_path / "dist", tmp_path / "simple")
    words = ("--project", "rocm[libraries]", "--with-requirements", "-o", tmp_path / "here", "--dry-run", "--json")
    done = run("index", "mirror", (tmp_path / "simple").as_uri(), *words)
    assert done.status == 0, done.stderr
    assert [one["filename"].partition("-")[0] for one in json.loads(done.stdout)["files"]] == [
        "rocm",
        "rocm_sdk_core",
        "rocm_sdk_libraries",
    ]
    assert not (tmp_path / "here").exists()


@pytest.mark.slow
def test_files_are_selected_by_platform_and_python_version(run: Run, tmp_path: Path) -> None:
    there = tmp_path / "there"
    for tag in ("cp311-cp311-manylinux_2_28_x86_64", "cp312-cp312-manylinux_2_28_x86_64", "cp312-cp312-win_amd64"):
        make_wheel(there / "dist", "rocm-torch", {}, tag=tag)
    write_index(there / "dist", there / "simple")
    words = ("--project", "rocm-torch", "--platform", "linux_x86_64", "--python-version", "3.12", "-q")
    assert run("index", "mirror", (there / "simple").as_uri(), *words, "-o", tmp_path / "here") == (0, "", "")
    assert listed(tmp_path / "here", "rocm-torch") == ["rocm_torch-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"]
    other = (*words[:2], "--platform", "win_arm64", "-o", tmp_path / "x")
    done = run("index", "mirror", (there / "simple").as_uri(), *other)
    assert done.status == 2
    assert "has no files for these projects for win_arm64. Choose other projects, versions, or targets." in done.stderr


@pytest.mark.slow
def test_a_killed_exact_mirror_is_complete_at_every_moment(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    for number in range(30):
        requires = (f"part-{number + 1}==1.0",) if number < 29 else ()
        make_wheel(there / "dist", f"part-{number}", {"x.bin": bytes(1 << 18)}, tag="py3-none-any", requires=requires)
    make_wheel(here / "dist", "old", {}, tag="py3-none-any")
    write_index(there / "dist", there / "simple")
    write_index(here / "dist", here / "simple")
    words = ["index", "mirror", (there / "simple").as_uri(), "--project", "part-0", "--with-requirements", "--exact"]
    for pause in (0.3, 0.6, 0.9, 1.2):
        with subprocess.Popen([sys.executable, "-m", "rocwheel", *words, "-o", str(here), "-q"]) as process:
            time.sleep(pause)
            process.send_signal(signal.SIGKILL)
        for page in (here / "simple").glob("*/index.json"):
            for file in json.loads(page.read_text())["files"]:
                assert (here / "dist" / file["filename"]).is_file()
    done = rocwheel(*words, "-o", str(here), "-q")
    assert (done.returncode, done.stderr) == (0, "")
    found = sorted(path.name for path in (here / "dist").iterdir())
    assert found == sorted(path.name for path in (there / "dist").iterdir())


DATA = b"evil"
SHA256 = hashlib.sha256(DATA).hexdigest()
NAME = "x-1.0-py3-none-any.whl"
LONG = f"x-1.{'0' * 300}-py3-none-any.whl"
PLAIN = "expected a plain file name at the end of the URL"

FILES: dict[str, tuple[dict[str, Any], str]] = {
    "a path": ({"filename": f"../../{NAME}", "url": NAME}, f"lists '../../{NAME}' at 'HERE/x/{NAME}'; {PLAIN}"),
    "a quoted path": (
        {"filename": f"..%2F{NAME}", "url": f"..%2F{NAME}"},
        f"lists '..%2F{NAME}' at 'HERE/x/..%2F{NAME}'; {PLAIN}",
    ),
    "an absolute path": ({"filename": f"/etc/{NAME}", "url": NAME}, f"lists '/etc/{NAME}' at 'HERE/x/{NAME}'; {PLAIN}"),
    "another name": ({"url": "y-1.0-py3-none-any.whl"}, f"lists '{NAME}' at 'HERE/x/y-1.0-py3-none-any.whl'; {PLAIN}"),
    "a script": ({"url": f"javascript:alert(1)/{NAME}"}, f"points to 'javascript://alert(1)/{NAME}'"),
    "a file": ({"url": f"file:///etc/{NAME}"}, f"points to 'file:///etc/{NAME}'; expected a web URL"),
    "a bucket": ({"url": f"s3://bucket/{NAME}"}, f"points to 's3://bucket/{NAME}'; expected a web URL"),
    "a password": (
        {"url": f"http://me:word@127.0.0.1:1/{NAME}"},
        "points to a URL with a user or password at 127.0.0.1; expected a URL without a user or password",
    ),
    "markup": ({"filename": f"<b>{NAME}", "url": f"<b>{NAME}"}, f"lists '<b>{NAME}' at 'HERE/x/<b>{NAME}'; {PLAIN}"),
    "a line end": (
        {"filename": f"a\n{NAME}", "url": f"a%0A{NAME}"},
        f"lists 'a\\n{NAME}' at 'HERE/x/a%0A{NAME}'; {PLAIN}",
    ),
    "non-ASCII": ({"filename": f"é{NAME}", "url": f"é{NAME}"}, f"lists 'é{NAME}' at 'HERE/x/é{NAME}'; {PLAIN}"),
    "no hash": (
        {"hashes": {}},
        f"has no SHA-256 for {NAME}. Without a hash, the file can't be verified.",
    ),
    "an endless size": ({"size": 1 << 62}, f"lists {1 << 62} bytes as the size of {NAME}; expected a valid size"),
    "another project": (
        {"filename": "y-1.0-py3-none-any.whl", "url": "y-1.0-py3-none-any.whl"},
        "lists 'y-1.0-py3-none-any.whl', which belongs to y; expected only files that belong to x",
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_no_file_can_escape_the_mirror_folder(run: Run, server: Server, tmp_path: Path, kind: str) -> None:
    change, message = FILES[kind]
    file = {"filename": NAME, "url": NAME, "hashes": {"sha256": SHA256}, "size": 4, **change}
    server.add("/x/", Reply(json.dumps({"meta": {}, "files": [file]}).encode(), JSON))
    server.add(f"/x/{NAME}", Reply(DATA))
    done = run("index", "mirror", server.address, "--project", "x", "-o", tmp_path / "a/b/here")
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert message.replace("HERE", server.address) in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../evil", "a/b", "<script>", "é", "a\nb", "", "..", "x" * 10_000 + "/"])
def test_projects_with_hostile_names_are_skipped(run: Run, server: Server, tmp_path: Path, name: str) -> None:
    page = {"meta": {}, "projects": [{"name": name}]}
    server.add("/", Reply(json.dumps(page).encode(), JSON))
    done = run("index", "mirror", server.address, "--project", "*", "-o", tmp_path / "here")
    assert done.status == 2
    assert done.stderr == f"error: *: is not a project in {server.address}/. Correct the name.\n"
    assert list(tmp_path.iterdir()) == []


def test_a_file_name_that_is_too_long_is_an_error(run: Run, server: Server, tmp_path: Path) -> None:
    file = {"filename": LONG, "url": LONG, "hashes": {"sha256": SHA256}, "size": 4}
    server.add("/x/", Reply(json.dumps({"meta": {}, "files": [file]}).encode(), JSON))
    server.add(f"/x/{LONG}", Reply(DATA))
    done = run("index", "mirror", server.address, "--project", "x", "-o", tmp_path / "here")
    assert done.status == 2
    assert done.stderr.startswith(f"error: {server.address}/x/: lists '{LONG[:20]}")
    assert done.stderr.endswith("; expected a valid file name\n")
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_a_wrong_hash_is_not_written(run: Run, server: Server, tmp_path: Path) -> None:
    file = {"filename": NAME, "url": NAME, "hashes": {"sha256": "0" * 64}, "size": 4}
    server.add("/x/", Reply(json.dumps({"meta": {}, "files": [file]}).encode(), JSON))
    server.add(f"/x/{NAME}", Reply(DATA))
    done = run("index", "mirror", server.address, "--project", "x", "-o", tmp_path / "here", "-q")
    assert done.status == 2
    found = f"error: {server.address}/x/{NAME}: has the SHA-256 {SHA256}; expected {'0' * 64}."
    assert done.stderr.startswith(found)
    assert not list((tmp_path / "here").rglob("*.whl"))
