"""Tests of the index command with wheel variants, and of real installers that are given such an index."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.build.variant_wheels import add_variants
from rocwheel.demo import SAMPLE_SDK
from tests.support.loopback import served
from tests.support.variant_wheels import add_gpu_package, add_variant_wheel, variant_document
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

TARGETS = ("gfx942", "gfx1100", "gfx1201")
STEM = "rocm_sdk_device-7.0.0"
FLAG = ("--preview-features", "wheel-variants")

Finished = subprocess.CompletedProcess[str]


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """Return a folder of libraries and of device packages for three GPUs."""
    folder = tmp_path / "packages" / "dist"
    folder.mkdir(parents=True)
    make_wheel(folder, "rocm-sdk-libraries", {"libraries.py": b""}, version="7.0.0", tag="py3-none-any")
    for target in TARGETS:
        add_gpu_package(folder, f"rocm-sdk-device-{target}", targets=[target])
    return folder


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Serve ``tmp_path``, and return its address."""
    with served(tmp_path) as root:
        yield root


@pytest.fixture
def call(tmp_path: Path) -> Callable[..., Finished]:
    """Return a function that runs an installer without any configuration of the user or the machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    caches = {"PIP_NO_CACHE_DIR": "1", "UV_CACHE_DIR": str(tmp_path / "uv-cache")}
    alone = {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def run(*command: str, cwd: Path | None = None) -> Finished:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env={**kept, **caches, **alone}, cwd=cwd
        )

    return run


@pytest.fixture
def uv() -> str:
    """Return the uv of this environment."""
    found = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        pytest.skip("needs uv")
    return found


def installed(site: Path) -> list[str]:
    return sorted(re.sub(r"-7\.0\.0.*", "", path.name) for path in site.glob("*.dist-info"))


def test_variants_are_created_listed_and_described_as_a_draft(run: Run, dist: Path) -> None:
    status, out, err = run("index", dist, "--variants")
    assert status == 0
    assert f"wrote 5 wheels that select packages for a GPU in {dist} (a draft: PEP 825, PEP 850)" in err
    assert f"{STEM}-variants.json: 4 variants (a draft: PEP 825, PEP 850): gfx1100, gfx1201, gfx942, null" in out


def test_a_family_whose_plain_wheel_differs_is_refused_before_any_write(run: Run, dist: Path) -> None:
    family = dist / "gfx94X-dcgpu"
    family.mkdir()
    add_gpu_package(family, "rocm-sdk-device-gfx90a", targets=["gfx90a"])
    before = sorted(dist.parent.rglob("*"))
    status, out, err = run("index", dist, "--variants")
    assert (status, out) == (2, "")
    wheel = f"{STEM}-py3-none-any.whl"
    assert (
        f"{family / wheel}: would require different packages than {dist / wheel}, which is in the same index; expected "
        "only "
        "one wheel with this name. Keep the rocm-sdk-device packages for all of these GPUs in one folder."
    ) in " ".join(err.split())
    assert sorted(dist.parent.rglob("*")) == before


def test_a_family_with_the_same_wheels_is_indexed(run: Run, dist: Path) -> None:
    family = dist / "gfx94X-dcgpu"
    family.mkdir()
    for wheel in dist.glob("rocm_sdk_device_*.whl"):
        shutil.copy(wheel, family)
    assert run("index", dist, "--variants", "--quiet")[0] == 0


def test_both_pages_link_to_the_variants_file(run: Run, dist: Path) -> None:
    assert run("index", dist, "--variants", "--quiet")[0] == 0
    folder = dist.parent / "simple" / "rocm-sdk-device"
    anchor = rf'<a href="{STEM}-variants.json" data-upload-time="[-0-9T:.]+Z">{STEM}-variants.json</a>'
    assert len(re.findall(anchor, (folder / "index.html").read_text())) == 1
    (listed,) = [
        file
        for file in json.loads((folder / "index.json").read_text())["files"]
        if file["filename"].endswith("-variants.json")
    ]
    assert (listed["url"], listed["hashes"]) == (f"{STEM}-variants.json", {})
    assert listed["size"] == (folder / f"{STEM}-variants.json").stat().st_size


def test_an_index_for_any_machine_names_the_provider_plugin(run: Run, dist: Path) -> None:
    assert run("index", dist, "--variants", "--quiet")[0] == 0
    document = json.loads((dist.parent / "simple" / "rocm-sdk-device" / f"{STEM}-variants.json").read_text())
    assert document["providers"] == {
        "amd": {"requires": ["rocm-bootstrap"], "plugin-api": "rocm_bootstrap.variant_provider:AMDVariantPlugin"}
    }
    assert document["variants"] == {
        "gfx1100": {"amd": {"gfx_arch": ["gfx1100"]}},
        "gfx1201": {"amd": {"gfx_arch": ["gfx1201"]}},
        "gfx942": {"amd": {"gfx_arch": ["gfx942"]}},
        "null": {},
    }


def test_an_index_for_given_gpus_lists_them_and_the_next_run_drops_them(run: Run, dist: Path) -> None:
    path = dist.parent / "simple" / "rocm-sdk-device" / f"{STEM}-variants.json"
    assert run("index", dist, "--variants", "--variants-for", "RX 7900 XTX, gfx942", "--quiet")[0] == 0
    provider = {"static-properties": {"gfx_arch": ["gfx1100", "gfx942"]}, "feature-order": ["gfx_arch"]}
    assert json.loads(path.read_text())["providers"]["amd"] == provider
    assert run("index", dist, "--quiet")[0] == 0
    assert "requires" in json.loads(path.read_text())["providers"]["amd"]


def test_the_variants_file_is_removed_with_the_last_variant(run: Run, dist: Path) -> None:
    assert run("index", dist, "--variants", "--quiet")[0] == 0
    for path in dist.glob(f"{STEM}-*-*-*-*.whl"):
        path.unlink()
    assert run("index", dist, "--quiet")[0] == 0
    assert sorted(path.name for path in (dist.parent / "simple" / "rocm-sdk-device").iterdir()) == [
        "index.html",
        "index.json",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "gfx90a:xnack+",
            (
                "error: --variants-for: contains gfx90a:xnack+, which can't have a variant; expected GPU targets "
                "without features, such as gfx90a\n"
            ),
        ),
        (
            "gfx9-4-generic",
            (
                "error: --variants-for: contains gfx9-4-generic, which can't have a variant; expected GPU targets "
                "without features, such as gfx90a\n"
            ),
        ),
        (
            "gfx942",
            (
                "error: --variants-for: lists gfx942, but there are no wheel variants. "
                "Build wheel variants with --variants.\n"
            ),
        ),
    ],
    ids=["feature", "generic", "no variants"],
)
def test_variants_for_an_invalid_gpu_are_refused(run: Run, dist: Path, words: str, message: str) -> None:
    status, _, err = run("index", dist, "--variants-for", words, "--quiet")
    assert (status, err) == (2, message)
    assert not (dist.parent / "simple").exists()


def test_a_gpu_without_a_variant_is_reported(run: Run, dist: Path) -> None:
    _, _, err = run("index", dist, "--variants", "--variants-for", "gfx906")
    assert "--variants-for: there is no variant for gfx906; installers choose the variant without a GPU." in err


def test_a_build_creates_the_same_variant_wheels_as_an_index(run: Run, tmp_path: Path) -> None:
    status, _, _ = run("build", "--artifact-dir", SAMPLE_SDK, "--dest-dir", tmp_path, "--variants", "--quiet")
    assert status == 0
    added = add_variants(tmp_path / "dist")
    assert len(added.wheels) == 5
    assert (added.written, added.stale) == ((), ())


def test_the_variants_file_is_rebuilt_if_the_index_state_is_missing(run: Run, dist: Path) -> None:
    assert run("index", dist, "--variants", "--quiet")[0] == 0
    output = dist.parent / "simple"
    (output / ".rocwheel-index.json").unlink()
    path = output / "rocm-sdk-device" / f"{STEM}-variants.json"
    before = path.read_bytes()
    path.write_text("{}")
    assert run("index", dist, "--quiet")[0] == 0
    assert path.read_bytes() == before


def test_contradictory_variant_wheels_are_not_indexed(run: Run, dist: Path) -> None:
    add_variant_wheel(dist, "demo", "gfx942", variant_document("gfx942", ["gfx942"]))
    add_variant_wheel(dist, "demo", "gfx1100", variant_document("gfx1100", ["gfx1100"], providers={}))
    status, _, err = run("index", dist, "--quiet")
    assert (status, err) == (
        2,
        (
            "error: demo-7.0.0-py3-none-any-gfx942.whl: its variant.json differs in providers from the file in "
            "demo-7.0.0-py3-none-any-gfx1100.whl; expected the same values in all wheels of a version\n"
        ),
    )
    assert not (dist.parent / "simple").exists()


def test_variant_wheels_are_inspected_and_audited_without_errors(run: Run, dist: Path) -> None:
    wheels = [dist / name for name in add_variants(dist).wheels]
    status, _, err = run("inspect", *wheels)
    assert (status, "Traceback" in err) == (0, False)
    status, out, err = run("audit", *wheels, "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["distributions"] == [path.name for path in wheels]
    assert json.loads(out)["findings"] == []


@pytest.mark.parametrize(
    ("machine", "chosen"),
    [
        ("gfx942", ["rocm_sdk_device", "rocm_sdk_device_gfx942"]),
        ("gfx1100", ["rocm_sdk_device", "rocm_sdk_device_gfx1100"]),
        ("gfx1201", ["rocm_sdk_device", "rocm_sdk_device_gfx1201"]),
        ("", ["rocm_sdk_device"]),
    ],
    ids=["gfx942", "gfx1100", "gfx1201", "none"],
)
def test_uv_installs_the_variant_for_the_gpu_of_the_index(
    run: Run, dist: Path, address: str, call: Callable[..., Finished], uv: str, machine: str, chosen: list[str]
) -> None:
    options = ("--variants-for", machine) if machine else ()
    assert run("index", dist, "--variants", *options, "--quiet")[0] == 0
    site = dist.parent / "site"
    where = ("--target", str(site), "--index-url", f"{address}/packages/simple/")
    finished = call(uv, "pip", "install", *FLAG, *where, "rocm-sdk-device")
    assert finished.returncode == 0, finished.stderr
    assert installed(site) == [*chosen, "rocm_sdk_libraries"]


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_installers_without_variant_support_install_the_plain_wheel_for_all_gpus(
    run: Run, dist: Path, address: str, call: Callable[..., Finished], uv: str, installer: str
) -> None:
    assert run("index", dist, "--variants", "--variants-for", "gfx942", "--quiet")[0] == 0
    site = dist.parent / "site"
    where = ("--target", str(site), "--index-url", f"{address}/packages/simple/")
    command = [sys.executable, "-m", "pip"] if installer == "pip" else [uv, "pip"]
    finished = call(*command, "install", *where, "rocm-sdk-device")
    assert finished.returncode == 0, finished.stderr
    assert installed(site) == [
        "rocm_sdk_device",
        *(f"rocm_sdk_device_{target}" for target in sorted(TARGETS)),
        "rocm_sdk_libraries",
    ]


PLAIN = f"{STEM}-py3-none-any.whl"
EVERY_GPU = [f"rocm-sdk-device-{target}" for target in sorted(TARGETS)]
MACHINES = [*TARGETS, ""]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return the folder of a project that requires the device packages."""
    folder = tmp_path / "project"
    folder.mkdir()
    lines = ["[project]", 'name = "demo"', 'version = "1"', 'requires-python = ">=3.10"',
             'dependencies = ["rocm-sdk-device"]']  # fmt: skip
    (folder / "pyproject.toml").write_text("\n".join([*lines, ""]))
    return folder


def index_for(run: Run, dist: Path, machine: str) -> None:
    options = ("--variants-for", machine) if machine else ()
    assert run("index", dist, "--variants", *options, "--quiet")[0] == 0


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine or "none")
def test_uv_lock_sync_and_export_ignore_variants(
    run: Run, dist: Path, address: str, call: Callable[..., Finished], uv: str, project: Path, machine: str
) -> None:
    index_for(run, dist, machine)
    words = (*FLAG, "--default-index", f"{address}/packages/simple/", "--python", sys.executable)
    assert call(uv, "lock", *words, cwd=project).returncode == 0
    lock = (project / "uv.lock").read_text()
    assert PLAIN in lock
    assert not re.search(r"-(gfx\w+|null)\.whl", lock)
    synced = call(uv, "sync", *words, cwd=project)
    assert synced.returncode == 0, synced.stderr
    (site,) = (project / ".venv/lib").glob("python*/site-packages")
    names = ["rocm_sdk_device", *(name.replace("-", "_") for name in EVERY_GPU), "rocm_sdk_libraries"]
    assert installed(site) == names
    exported = call(uv, "export", *words, "--no-hashes", cwd=project).stdout.splitlines()
    found = [line.partition("==")[0] for line in exported if line.startswith("rocm")]
    assert found == ["rocm-sdk-device", *EVERY_GPU, "rocm-sdk-libraries"]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine or "none")
def test_uv_pip_compile_selects_a_variant_and_its_hashes_are_valid(
    run: Run, dist: Path, address: str, call: Callable[..., Finished], uv: str, tmp_path: Path, machine: str
) -> None:
    index_for(run, dist, machine)
    (tmp_path / "in.txt").write_text("rocm-sdk-device\n")
    locked, site = tmp_path / "locked.txt", tmp_path / "site"
    index = ("--index-url", f"{address}/packages/simple/")
    made = call(uv, "pip", "compile", *FLAG, *index, "--generate-hashes", str(tmp_path / "in.txt"), "-o", str(locked))
    assert made.returncode == 0, made.stderr
    names = [line.partition("==")[0] for line in locked.read_text().splitlines() if line.startswith("rocm")]
    chosen = [f"rocm-sdk-device-{machine}"] if machine else []
    assert names == ["rocm-sdk-device", *chosen, "rocm-sdk-libraries"]
    where = ("--target", str(site), *index, "--require-hashes", "-r", str(locked))
    finished = call(uv, "pip", "install", *FLAG, *where)
    assert finished.returncode == 0, finished.stderr
    assert installed(site) == [name.replace("-", "_") for name in names]


def test_uv_refuses_to_export_a_variant_to_pylock_toml(
    run: Run, dist: Path, address: str, call: Callable[..., Finished], uv: str, tmp_path: Path
) -> None:
    index_for(run, dist, "gfx942")
    (tmp_path / "in.txt").write_text("rocm-sdk-device\n")
    words = ("--index-url", f"{address}/packages/simple/", "--format", "pylock.toml", str(tmp_path / "in.txt"))
    finished = call(uv, "pip", "compile", *FLAG, *words)
    assert finished.returncode != 0
    assert "resolved to a wheel variant, which pylock.toml export does not support" in " ".join(finished.stderr.split())


def test_rocwheel_lock_uses_plain_wheels_regardless_of_uv_preview_features(
    run: Run, dist: Path, address: str, uv: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert uv
    index_for(run, dist, "gfx942")
    monkeypatch.setenv("UV_PREVIEW_FEATURES", "wheel-variants")
    words = ("--index-url", f"{address}/packages/simple/", "-o", tmp_path / "pylock.toml")
    status, _, err = run("lock", "rocm-sdk-device", "--targets", ";".join(TARGETS), *words, "-q")
    assert (status, err) == (0, "")
    assert PLAIN in (tmp_path / "pylock.toml").read_text()
    status, _, err = run("lock", "rocm-sdk-device", "--targets", "gfx942", *words, "-q")
    assert status == 2
    assert "rocm-sdk-device-gfx1100: is required by rocm-sdk-device's plain wheel, because lock files" in err


def test_yanking_keeps_gpus_upload_times_and_other_files(run: Run, dist: Path) -> None:
    assert run("index", dist, "--variants", "--variants-for", "gfx942", "--upload-time", "2026-01-02", "-q")[0] == 0
    folder = dist.parent / "simple/rocm-sdk-device"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert b"static-properties" in before[f"{STEM}-variants.json"]
    name = f"{STEM}-py3-none-any-gfx1201.whl"
    assert run("index", "yank", dist / name, "--reason", "no code", "-q")[0] == 0
    page = json.loads((folder / "index.json").read_text())
    assert {file["filename"]: file.get("yanked") for file in page["files"]}[name] == "no code"
    assert {file["upload-time"] for file in page["files"]} == {"2026-01-02T00:00:00.000000Z"}
    assert (folder / f"{STEM}-variants.json").read_bytes() == before[f"{STEM}-variants.json"]
    assert run("index", "yank", "--undo", dist / name, "-q")[0] == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_yanking_keeps_the_gpus_of_families(run: Run, dist: Path) -> None:
    for target in TARGETS:
        folder = dist / target
        folder.mkdir()
        (package,) = dist.glob(f"rocm_sdk_device_{target}-*.whl")
        package.rename(folder / package.name)
        add_variants(folder)
    output = dist.parent / "simple"
    status, _, err = run("index", dist, "--variants-for", "gfx942", "--output", output)
    assert (status, "there is no variant for" in err) == (0, False)
    lists = {path: path.read_bytes() for path in output.rglob("*-variants.json")}
    assert {path.relative_to(output).parts[0] for path in lists} == set(TARGETS)
    wheel = f"{STEM}-py3-none-any-gfx942.whl"
    assert run("index", "yank", wheel, "--output", output / "gfx942", "-q")[0] == 0
    pages = {target: json.loads((output / target / "rocm-sdk-device/index.json").read_text()) for target in TARGETS}
    marked = {
        target: [file["filename"] for file in page["files"] if "yanked" in file] for target, page in pages.items()
    }
    assert marked == {"gfx942": [wheel], "gfx1100": [], "gfx1201": []}
    assert {path: path.read_bytes() for path in output.rglob("*-variants.json")} == lists


def test_variants_are_created_next_to_the_packages_of_each_family(run: Run, dist: Path) -> None:
    for target in ("gfx942", "gfx1100"):
        (dist / target).mkdir()
        (package,) = dist.glob(f"rocm_sdk_device_{target}-*.whl")
        package.rename(dist / target / package.name)
    next(dist.glob("rocm_sdk_device_gfx1201-*.whl")).unlink()
    status, out, err = run("index", dist, "--variants")
    assert status == 0
    assert f"wrote 3 wheels that select packages for a GPU in {dist / 'gfx1100'} (a draft" in err
    assert f"{STEM}-variants.json: 2 variants (a draft: PEP 825, PEP 850): gfx1100, null" in out
    assert f"{STEM}-variants.json: 2 variants (a draft: PEP 825, PEP 850): gfx942, null" in out
    assert not list(dist.glob("rocm_sdk_device-*"))
    page = json.loads((dist.parent / "simple/gfx942/rocm-sdk-device/index.json").read_text())
    assert [file["filename"] for file in page["files"]] == [
        f"{STEM}-py3-none-any-gfx942.whl",
        f"{STEM}-py3-none-any-null.whl",
        f"{STEM}-py3-none-any.whl",
        f"{STEM}-variants.json",
    ]


def test_all_folders_without_gpu_packages_are_reported(run: Run, dist: Path) -> None:
    for target in TARGETS:
        next(dist.glob(f"rocm_sdk_device_{target}-*.whl")).unlink()
    make_wheel(dist / "more", "rocm", {"rocm.py": b""}, version="7.0.0", tag="py3-none-any")
    status, _, err = run("index", dist, "--variants")
    found = "contains no packages for single GPUs; expected packages whose names end with a GPU"
    assert status == 2
    assert [f"{folder}: {found}" in err for folder in (dist, dist / "more")] == [True, True]


def test_an_additional_gpu_changes_only_the_plain_wheel_and_publish_refuses_it(run: Run, dist: Path) -> None:
    store = (dist.parent / "store").as_uri()
    index_for(run, dist, "")
    assert run("publish", dist, store, "--quiet")[0] == 0
    before = {path.name: path.read_bytes() for path in dist.glob(f"{STEM}*.whl")}
    add_gpu_package(dist, "rocm-sdk-device-gfx906", targets=["gfx906"])
    index_for(run, dist, "")
    assert [name for name, data in before.items() if (dist / name).read_bytes() != data] == [PLAIN]
    pages = {path: path.read_bytes() for path in (dist.parent / "store").rglob("*") if path.is_file()}
    status, _, err = run("publish", dist, store, "--quiet")
    assert status == 2
    assert f"lists {PLAIN} with different bytes" in err
    assert {path: path.read_bytes() for path in (dist.parent / "store").rglob("*") if path.is_file()} == pages


PLUGIN = """
import json
from importlib.metadata import entry_points
from rocm_bootstrap import variant_provider
from rocm_bootstrap.targets import ALL_TARGETS
(point,) = entry_points(group="variant_plugins", name="amd")
plugin = point.load()
found = {}
for target in ALL_TARGETS:
    variant_provider.detect_gfx_targets = lambda: [target]
    found[target.name] = {config.name: list(config.values) for config in plugin.get_supported_configs()}
variant_provider.detect_gfx_targets = lambda: []
print(json.dumps({"api": point.value, "namespace": plugin.namespace, "found": found,
                  "none": list(plugin.get_supported_configs()),
                  "features": {config.name: list(config.values) for config in plugin.get_all_configs()}}))
"""


def test_the_published_plugin_reports_the_properties_that_the_variants_require(dist: Path, tmp_path: Path) -> None:
    """``rocm-bootstrap`` comes from the configured registry: the one call here that keeps the machine's settings."""
    site = tmp_path / "bootstrap"
    fetched = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), "rocm-bootstrap"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if fetched.returncode:
        pytest.skip(f"needs rocm-bootstrap of a registry: {fetched.stderr.splitlines()[-1]}")
    asked = subprocess.run(
        [sys.executable, "-c", PLUGIN], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(site)},
    )  # fmt: skip
    answer = json.loads(asked.stdout)
    assert (answer["api"], answer["namespace"]) == ("rocm_bootstrap.variant_provider:AMDVariantPlugin", "amd")
    assert answer["none"] == []
    owners = set(answer["features"]["gfx_arch"])
    assert owners >= {*TARGETS, "gfx900", "gfx90a", "gfx950", "gfx1250"}
    for target in owners - set(TARGETS):
        add_gpu_package(dist, f"rocm-sdk-device-{target}", targets=[target])
    add_variants(dist)
    wanted = {}
    for target in owners:
        with zipfile.ZipFile(dist / f"{STEM}-py3-none-any-{target}.whl") as wheel:
            wanted[target] = json.loads(wheel.read(f"{STEM}.dist-info/variant.json"))
    for target, features in answer["found"].items():
        (owner,) = features["gfx_arch"]
        assert wanted[owner]["variants"] == {owner: {"amd": {"gfx_arch": [owner]}}}, target
        assert owner in wanted[owner]["providers"]["amd"]["static-properties"]["gfx_arch"], target
