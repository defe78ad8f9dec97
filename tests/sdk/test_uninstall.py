"""Uninstalling with real pip and uv: nothing stays, and no package takes anything of another."""

from __future__ import annotations

import threading
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from tests.support.record_check import record_faults

if TYPE_CHECKING:
    from tests.sdk.installed import Installed, MakeEnvironment, MakeSet

pytestmark = pytest.mark.slow


TOOLS = pytest.mark.parametrize("tool", ["pip", "uv"])
PACKAGES = ("rocm", "rocm-sdk-core", "rocm-sdk-libraries", "rocm-sdk-device-gfx906", "rocm-sdk-devel")
EVERY_ORDER = list(permutations(PACKAGES))
ORDERS = [EVERY_ORDER[number] for number in range(0, len(EVERY_ORDER), 29)]


def use(environment: Installed) -> None:
    environment.run("hipcc", "--version")
    environment.run("rocm-sdk", "path", "--root")


def test_uninstalling_one_by_one_in_any_order_leaves_nothing(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set(), "uv")
    before = environment.files()
    for order in ORDERS:
        environment.install("rocm[devel,device-gfx906]")
        use(environment)
        for name in order:
            environment.uninstall(name)
        assert environment.files() == before, order


def test_uninstalling_one_by_one_with_pip_leaves_nothing(make_set: MakeSet, make_environment: MakeEnvironment) -> None:
    environment = make_environment(make_set(), "pip")
    before = environment.files()
    environment.install("rocm[devel,device-gfx906]")
    use(environment)
    for name in ORDERS[2]:
        environment.uninstall(name)
    assert environment.files() == before


@TOOLS
def test_uninstalling_all_at_once_leaves_nothing(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str
) -> None:
    environment = make_environment(make_set(), tool)
    before = environment.files()
    environment.install("rocm[devel,device-all,profiler]")
    use(environment)
    names = (*PACKAGES, "rocm-sdk-device-gfx1030", "rocm-profiler")
    environment.uninstall(*names)
    assert environment.files() == before


class _User(threading.Thread):
    """Uses the development files again and again, and notes what goes wrong but for errors that say so."""

    def __init__(self, environment: Installed) -> None:
        super().__init__()
        self.is_over = threading.Event()
        self.uses, self.wrong = 0, list[str]()
        self._environment = environment

    def run(self) -> None:
        """Use them until it is over."""
        while not self.is_over.is_set():
            done = self._environment.run("rocm-sdk", *(("path", "--root"), ("init",))[self.uses % 2], check=False)
            self.uses += 1
            is_told = done.returncode == 1 and done.stderr.startswith("rocm-sdk: ") and "Traceback" not in done.stderr
            if done.returncode and not is_told:
                self.wrong.append(done.stderr)


@TOOLS
def test_packages_can_be_installed_and_removed_while_processes_use_them(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str
) -> None:
    """The commands themselves stay, as no package can tell what is wrong that is half gone itself."""
    environment = make_environment(make_set(), tool)
    before = environment.files()
    environment.install("rocm")
    users = [_User(environment) for _ in range(2)]
    for user in users:
        user.start()
    for _ in range(2):
        environment.install("rocm[devel,device-gfx906]")
        environment.uninstall(*PACKAGES[1:])
    for user in users:
        user.is_over.set()
        user.join()
    assert [line for user in users for line in user.wrong] == []
    assert min(user.uses for user in users) >= 2
    # Then all is as if nobody had used them meanwhile
    environment.install("rocm[devel,device-gfx906]")
    use(environment)
    assert record_faults(environment.site) == []
    environment.uninstall(*PACKAGES)
    assert environment.files() == before


@TOOLS
def test_files_that_a_user_added_to_the_tree_are_removed_with_it(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str
) -> None:
    environment = make_environment(make_set(), tool)
    environment.install("rocm[devel]")
    use(environment)
    (environment.root / "lib/mine").mkdir()
    (environment.root / "lib/mine/file").touch()
    environment.uninstall("rocm-sdk-devel")
    assert not environment.root.exists()


@TOOLS
def test_a_renamed_distribution_removes_its_tree(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str
) -> None:
    environment = make_environment(make_set(devel_name="Acme.rocm-sdk-devel"), tool)
    environment.install("rocm[devel]")
    use(environment)
    environment.uninstall("acme-rocm-sdk-devel")
    assert list(environment.site.glob("*rocm_sdk_devel*")) == []


def test_the_archive_of_a_renamed_distribution_is_identified_by_its_hash(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set(devel_name="acme-rocm-sdk-devel"))
    environment.install("rocm[devel]")
    use(environment)
    assert '"archive": "sha256=' in (environment.root / ".expanded.json").read_text()


@TOOLS
def test_uninstalling_devel_keeps_core_and_its_programs(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str
) -> None:
    environment = make_environment(make_set(), tool)
    environment.install("rocm[devel,libraries]")
    use(environment)
    environment.uninstall("rocm-sdk-devel")
    assert environment.run("hipcc").stdout == f"script {environment.site}/_rocm_sdk_core/bin\n"
    environment.run("rocm-sdk", "test")


@TOOLS
def test_an_upgrade_replaces_the_tree(make_set: MakeSet, make_environment: MakeEnvironment, tool: str) -> None:
    environment = make_environment(make_set(), tool)
    environment.install("rocm[devel]")
    use(environment)
    newer = environment.__class__(environment.path, make_set(version="7.3.0"), tool, None)
    newer.install("--upgrade", "rocm[devel]")
    assert not environment.root.exists()
    use(newer)
    assert '"version": "7.3.0"' in (environment.root / ".expanded.json").read_text()
    newer.run("rocm-sdk", "test")


@TOOLS
def test_reinstalled_devel_is_expanded_again(make_set: MakeSet, make_environment: MakeEnvironment, tool: str) -> None:
    environment = make_environment(make_set(), tool)
    environment.install("rocm[devel]")
    use(environment)
    environment.install("--no-deps", "--force-reinstall", "rocm-sdk-devel")
    assert (environment.site / "rocm_sdk_devel/_devel.tar").exists()
    use(environment)
    assert not (environment.site / "rocm_sdk_devel/_devel.tar").exists()
    environment.run("rocm-sdk", "test")


@pytest.mark.parametrize("data", [None, b"", b"\xff"], ids=["absent", "empty", "not utf-8"])
def test_the_command_from_the_doctor_repairs_a_package_that_pip_cannot_uninstall(
    make_set: MakeSet, make_environment: MakeEnvironment, data: bytes | None
) -> None:
    # Given a package with a damaged RECORD and a library less
    environment = make_environment(make_set(), "pip")
    environment.install("rocm")
    record = next(environment.site.glob("rocm_sdk_core-*/RECORD"))
    record.unlink() if data is None else record.write_bytes(data)
    (environment.site / "_rocm_sdk_core/lib/libamdhip64.so.6").unlink()
    found = environment.run("rocm-sdk", "doctor", check=False, ROCM_BOOTSTRAP_DISABLE_DETECTION="1").stdout
    assert 'pip install "rocm==7.2.0" --ignore-installed ' in found
    # When its command is run, then nothing is wrong any more
    environment.install("rocm==7.2.0", "--ignore-installed")
    environment.run("rocm-sdk", "doctor", ROCM_BOOTSTRAP_DISABLE_DETECTION="1")
