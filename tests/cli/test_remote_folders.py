"""Commands that take the URL of a folder where they take a folder."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.archives import ArchiveFormat
from rocwheel.artifacts.transfer import archive_artifacts
from rocwheel.core import cache_folders
from rocwheel.demo import SAMPLE_SDK
from rocwheel.wheels.sdist import SourceDate
from tests.support.loopback import served
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archives")
    archive_artifacts(SAMPLE_SDK, folder, (), ArchiveFormat.ZST, SourceDate.from_environment({}))
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def address(archives: Path, cache: Path) -> Iterator[str]:
    with served(archives) as found:
        yield found


def test_a_plan_from_a_url_equals_the_plan_from_the_folder(run: Run, archives: Path, address: str) -> None:
    local = run("build", "--dry-run", archives, "--json", "--quiet")
    for words in (("--artifact-dir", address), (f"--artifact-dir={address}",)):
        remote = run("build", "--dry-run", *words, "--json", "--quiet")
        assert (remote.status, remote.stderr) == (0, "")
        assert [one["name"] for one in json.loads(remote.stdout)["wheels"]] == [
            one["name"] for one in json.loads(local.stdout)["wheels"]
        ]


def test_artifacts_at_a_url_are_listed(run: Run, address: str, archives: Path) -> None:
    found = run("artifacts", "list", address, "--json")
    assert found.status == 0
    assert f"{address}: fetched to " in found.stderr
    assert len(json.loads(found.stdout)["artifacts"]) == len(list(archives.iterdir()))


def test_files_removed_from_the_store_are_not_used(run: Run, archives: Path, tmp_path: Path, cache: Path) -> None:
    there = tmp_path / "there"
    shutil.copytree(archives, there)
    with served(there) as address:
        first = run("artifacts", "list", address, "--json", "--quiet")
        (there / "blas_lib_gfx906.tar.zst").unlink()
        second = run("artifacts", "list", address, "--json", "--quiet")
    names = [{one["artifact"] for one in json.loads(found.stdout)["artifacts"]} for found in (first, second)]
    assert names[0] - names[1] == {"blas_lib_gfx906"}


def test_packages_at_a_url_can_be_indexed_and_audited(run: Run, address: str, tmp_path: Path) -> None:
    assert run("build", "--artifact-dir", address, "--dest-dir", tmp_path, "--quiet").status == 0
    with served(tmp_path / "dist") as dist:
        refused = run("index", dist)
        assert (refused.status, refused.stdout) == (2, "")
        assert "Add --files copy --output DIR" in refused.stderr
        done = run("index", dist, "--files", "copy", "--output", tmp_path / "www", "--json", "--quiet")
        assert (done.status, done.stderr) == (0, "")
        assert "rocm" in json.loads(done.stdout)["projects"]
        local = run("audit", tmp_path / "dist", "--json", "--quiet")
        remote = run("audit", dist, "--json", "--quiet")
        beside = run("audit", tmp_path / "dist", "--with", dist, "--json", "--quiet")
    assert remote.status == local.status
    assert remote.stdout == local.stdout.replace(str(tmp_path / "dist"), dist)
    assert "is a URL" not in beside.stderr


def test_packages_at_a_url_can_be_published(run: Run, tmp_path: Path, cache: Path) -> None:
    for folder, name in (("dist", "alpha"), ("dist/gfx94X", "beta")):
        make_wheel(tmp_path / folder, name, {}, tag="py3-none-any", is_purelib=True)
    with served(tmp_path / "dist") as address:
        found = run("publish", address, tmp_path / "store")
    assert found.status == 0
    assert f"{address}: fetched to " in found.stderr
    assert (tmp_path / "store/simple/alpha/index.json").is_file()
    assert (tmp_path / "store/simple/gfx94X/beta/index.json").is_file()


def test_a_command_keeps_files_that_another_command_fetched(run: Run, tmp_path: Path, cache: Path) -> None:
    for folder, name in (("dist", "alpha"), ("dist/gfx94X", "beta")):
        make_wheel(tmp_path / folder, name, {}, tag="py3-none-any", is_purelib=True)
    with served(tmp_path / "dist") as address:
        assert run("publish", address, tmp_path / "store").status == 0
        fetched = {path: path.stat().st_ino for path in cache.rglob("*.whl")}
        assert run("audit", address, "--quiet").status == 0
    assert fetched.items() <= {path: path.stat().st_ino for path in cache.rglob("*.whl")}.items()
    assert {path.name.partition("-")[0] for path in fetched} == {"alpha", "beta"}


def test_fetched_files_in_use_by_another_process_are_not_changed(
    run: Run, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = make_wheel(tmp_path / "dist", "alpha", {}, tag="py3-none-any", is_purelib=True)
    with served(tmp_path / "dist") as address:
        run("audit", address, "--quiet")
        monkeypatch.setattr(cache_folders, "_claimed", {})  # the first run's locks stay: as if it had not ended
        old.unlink()
        make_wheel(tmp_path / "dist", "beta", {}, tag="py3-none-any", is_purelib=True)
        assert run("audit", address, "--quiet").status == 0
    [first] = cache.rglob(old.name)
    [second] = cache.rglob("beta-*.whl")
    assert second.parents[1].name == f"{first.parents[1].name}-1"


WRONG = {
    "an empty place": ("index", "URL", "--files", "copy", "--output", ""),
    "no such choice": ("index", "URL", "--files", "links", "--output", "www"),
    "no date": ("index", "URL", "--files", "copy", "--output", "www", "--upload-time", "soon"),
    "no GPU": ("index", "URL", "--files", "copy", "--output", "www", "--variants-for", "gfx"),
    "no option": ("index", "URL", "--files", "copy", "--output", "www", "--no-such"),
    "no version": ("build", "--artifact-dir", "URL", "--dest-dir", "packages", "--version", "a b"),
    "no run": ("build", "--dry-run", "URL", "--retarget", "x"),
    "no release": ("promote", "URL", "--to", "a b", "--output", "release"),
    "no target": ("promote", "URL", "--to", "1.0", "--targets", "gfx", "--output", "release"),
    "no rule": ("audit", "URL", "--select", "no-such"),
    "no settings": ("audit", "URL/x.whl", "--config", "no-such.toml"),
    "no destination": ("artifacts", "merge", "URL", "URL/x"),
    "no number": ("promote", "URL", "--to", "1.0", "--output", "release", "--jobs", "many"),
}


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_nothing_is_fetched_for_an_invalid_command_line(
    run: Run, archives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []
    with served(archives, asked) as address:
        done = run(*(word.replace("URL", address) for word in words))
    assert (done.status, done.stdout, asked) == (2, "", [])
    assert done.stderr.startswith(("error: ", "Usage: ")), done.stderr
    assert "Traceback" not in done.stderr


def test_help_fetches_nothing(run: Run, archives: Path) -> None:
    asked: list[str] = []
    with served(archives, asked) as address:
        done = run("index", address, "--help")
    assert (done.status, done.stdout[:20], asked) == (0, "Usage: rocwheel inde", [])


def test_a_file_url_is_equivalent_to_its_path(run: Run, archives: Path, cache: Path) -> None:
    assert run("artifacts", "list", archives.as_uri(), "-q") == run("artifacts", "list", archives, "-q")
    assert not cache.exists()


@pytest.mark.parametrize(
    "words",
    [("repair", "s3://bucket/x.whl"), ("device", "split", "https://me:secret@host/dist", "-d", "out"), ("demo", "s3://b/x")],
    ids=" ".join,
)  # fmt: skip
def test_other_commands_report_that_they_require_a_path(run: Run, words: tuple[str, ...]) -> None:
    found = run(*words)
    assert found.status == 2
    assert "is a URL, but this command requires a path here. Download its files first" in found.stderr
    assert "secret" not in found.stderr


PACKAGES = "and packages with `rocwheel index mirror`. Then specify the folder."


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (("device", "split", "https://host/dist", "-o", "out"), PACKAGES),
        (("targets", "coherent", "https://host/dist"), PACKAGES),
        (
            ("attest", "https://host/packages"),
            "the whole build folder first, with its manifest. Then specify that folder.",
        ),
    ],
    ids=["device split", "targets coherent", "attest"],
)
def test_the_remedy_for_a_refused_url_says_how_to_download_the_files(
    run: Run, words: tuple[str, ...], remedy: str
) -> None:
    assert remedy in run(*words).stderr


def test_urls_in_other_options_are_left_unchanged(run: Run, tmp_path: Path) -> None:
    found = run("audit", tmp_path, "--with-requirements", "--index-url", "https://host.invalid/simple")
    assert "is a URL" not in found.stderr
