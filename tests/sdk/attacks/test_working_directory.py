"""``rocm_sdk`` in a folder in which somebody has planted modules, libraries and programs: it uses none of them.

Two things are out of reach. ``python -c`` and ``python -m`` look in that folder first, before a line of ``rocm_sdk``
runs, so that a planted ``rocm_sdk``, ``ctypes`` or other module of Python itself wins; ``python -P`` and ``-I``, and
the console scripts, don't. And a ``sitecustomize`` runs before any program; whoever can plant one in site-packages can
change ``rocm_sdk`` as well.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.sdk.attacks.planted import Planted, plant

if TYPE_CHECKING:
    from tests.sdk.installed import Installed, MakeEnvironment, MakeInstalled, MakeSet

pytestmark = pytest.mark.slow

FIND = "import rocm_sdk; print(rocm_sdk.find_libraries('hipsparse'))"
LOAD = "import rocm_sdk; rocm_sdk.initialize_process(preload_shortnames=['amdhip64', 'hipsparse'])"
ABSENT = "ROCm libraries not installed: hipsparse (in the package libraries)"


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc (Debian package build-essential)")
    return plant(tmp_path_factory.mktemp("attack"))


@pytest.fixture(scope="module")
def core_alone(make_installed: MakeInstalled) -> Installed:
    """Return an environment that lacks every optional package."""
    return make_installed("rocm")


Attack = Any


@pytest.fixture
def attack(planted: Planted) -> Attack:
    """Return a function that runs a command in the hostile folder, where ``.`` is on every search path."""

    def run(*command: object, **environ: str) -> subprocess.CompletedProcess[str]:
        paths = {"PATH": ".::/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", **environ}
        words = list(map(str, command))
        return subprocess.run(
            words, cwd=planted.folder, env=paths, capture_output=True, text=True, timeout=120, check=False
        )

    return run


WAYS = {
    "-c": {},
    "PYTHONPATH with an empty entry": {"PYTHONPATH": ":/nowhere"},
    "PYTHONPATH with a dot": {"PYTHONPATH": "."},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_missing_package_is_not_loaded_from_the_working_directory(
    core_alone: Installed, attack: Attack, planted: Planted, way: str
) -> None:
    done = attack(core_alone.python, "-c", LOAD, **WAYS[way])
    assert (done.returncode, ABSENT in done.stderr) == (1, True)
    assert str(planted.folder) not in done.stderr, "pip would install from there"
    assert planted.ran() == []


@pytest.mark.parametrize("way", WAYS)
def test_the_legacy_interface_finds_no_package_in_the_working_directory(
    core_alone: Installed, attack: Attack, planted: Planted, way: str
) -> None:
    code = "from rocm_sdk import _dist_info as d; e = d.ALL_PACKAGES['libraries']; print(e.has_py_package('gfx906'), "
    done = attack(core_alone.python, "-c", code + "e.get_py_package('gfx906'))", **WAYS[way])
    assert (done.stdout, done.stderr) == ("False None\n", "")
    assert planted.ran() == []


@pytest.mark.parametrize("way", WAYS)
def test_only_the_installed_libraries_are_loaded(
    make_installed: MakeInstalled, attack: Attack, planted: Planted, way: str
) -> None:
    environment = make_installed("rocm[libraries]")
    shown = "; print(open('/proc/self/maps').read())"
    done = attack(environment.python, "-c", LOAD + shown, **WAYS[way])
    assert (done.returncode, done.stderr) == (0, "")
    loaded = {
        line.split(maxsplit=5)[-1] for line in done.stdout.splitlines() if "libamdhip" in line or "libhipsparse" in line
    }
    assert loaded == {
        f"{environment.site}/_rocm_sdk_core/lib/libamdhip64.so.6",
        f"{environment.site}/_rocm_sdk_libraries/lib/libhipsparse.so.1",
    }
    assert planted.ran() == []


@pytest.mark.parametrize(
    "command", ["path --root", "path --cmake", "targets", "doctor --deep", "doctor --report", "init"]
)
@pytest.mark.parametrize("start", ["rocm-sdk", "python -m rocm_sdk"])
def test_the_commands_use_nothing_from_the_working_directory(
    core_alone: Installed, attack: Attack, planted: Planted, start: str, command: str
) -> None:
    program, *rest = start.split()
    done = attack(core_alone.path / "bin" / program, *rest, *command.split())
    assert "Traceback" not in done.stderr
    assert not {"gfx666", str(planted.folder / "_rocm_sdk_core"), str(planted.folder)} & {*done.stdout.split()}
    assert "planted-file" not in done.stdout
    assert planted.ran() == []


@pytest.mark.parametrize("start", ["rocm-sdk init", "python -m rocm_sdk init", "python -c"])
@pytest.mark.parametrize("variables", [{}, {"LD_LIBRARY_PATH": "/nowhere:"}, {"PYTHONPATH": "."}], ids=str)
def test_the_archive_is_decompressed_without_modules_from_the_working_directory(
    make_set: MakeSet,
    make_environment: MakeEnvironment,
    attack: Attack,
    planted: Planted,
    start: str,
    variables: dict[str, str],
) -> None:
    # Given an archive that Python before 3.14 can't read by itself
    environment = make_environment(make_set(devel=".zst"))
    environment.install("rocm[devel]")
    program, *rest = start.split()
    code = ["from rocm_sdk._devel import get_devel_root; get_devel_root()"] if rest == ["-c"] else []
    done = attack(environment.path / "bin" / program, *rest, *code, **variables)
    assert planted.ran() == []
    assert (done.returncode, done.stderr) == (0, "")
    assert (environment.root / "bin/hipcc").exists()


def test_scripts_run_the_programs_of_their_own_packages(
    make_installed: MakeInstalled, attack: Attack, planted: Planted
) -> None:
    environment = make_installed("rocm[devel]")
    done = attack(environment.path / "bin/hipcc", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"script {environment.root}/bin --version\n"
    assert planted.ran() == []


SELF_TESTS = {
    "rocm-sdk test": {},
    "python -m rocm_sdk test": {},
    "python -c": {},
    "rocm-sdk test with an empty entry": {"PYTHONPATH": ":/nowhere"},
    "rocm-sdk test with a relative entry": {"PYTHONPATH": "../hostile/."},
}


@pytest.mark.parametrize("way", SELF_TESTS)
def test_the_self_test_runs_nothing_from_the_working_directory(
    make_installed: MakeInstalled, attack: Attack, planted: Planted, way: str
) -> None:
    environment = make_installed("rocm[libraries]")
    program, *rest = way.partition(" with ")[0].split()
    code = ["from rocm_sdk.tests import run_tests; run_tests()"] if rest == ["-c"] else []
    done = attack(environment.path / "bin" / program, *rest, *code, **SELF_TESTS[way])
    assert (done.returncode, " 0 failed" in done.stdout) == (0, True)
    assert planted.ran() == []


@pytest.mark.parametrize("entry", ["below", "./below", "../hostile/below"])
def test_relative_path_entries_are_ignored_like_the_working_directory(
    core_alone: Installed, attack: Attack, planted: Planted, entry: str
) -> None:
    folder = planted.folder / "below"
    folder.mkdir(exist_ok=True)
    for name in ("_rocm_sdk_libraries", "rocm_sdk_libraries-7.2.0.dist-info"):
        shutil.copytree(planted.folder / name, folder / name, dirs_exist_ok=True)
    done = attack(core_alone.path / "bin/rocm-sdk", "doctor", PYTHONPATH=entry)
    assert "rocm-sdk-libraries" not in done.stdout
    done = attack(core_alone.python, "-c", LOAD, PYTHONPATH=entry)
    assert (done.returncode, ABSENT in done.stderr) == (1, True)
    assert planted.ran() == []


def test_the_planted_files_would_run(attack: Attack, planted: Planted) -> None:
    code = "import zstandard, backports.zstd, ctypes, os; ctypes.CDLL('./libzstd.so.1'); os.system('rocminfo')"
    done = attack(sys.executable, "-c", code)
    assert done.returncode == 0
    assert planted.ran() == ["backports", "backports.zstd", "library", "rocminfo", "zstandard"]
