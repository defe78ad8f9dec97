"""Files of device packages in the development tree, as device packages come and go."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.sdk.devel.trees import KILLER
from tests.sdk.installed import FROM_INDEX, read_only
from tests.support.record_check import record_faults

if TYPE_CHECKING:
    from tests.sdk.installed import Installed, MakeEnvironment, MakeInstalled, MakeSet

pytestmark = pytest.mark.slow


KERNELS_906 = "lib/rocblas/library/kernels_gfx906.co"
KERNELS_1030 = "lib/rocblas/library/kernels_gfx1030.co"


@pytest.fixture
def environment(make_installed: MakeInstalled) -> Installed:
    """Return an environment with an expanded tree and no device package."""
    environment = make_installed("rocm[devel]")
    environment.run("rocm-sdk", "init")
    return environment


def device_files(environment: Installed) -> list[str]:
    """Return the links of the tree that lead to device files, after checking that they are those files."""
    links = [path.relative_to(environment.root) for path in environment.root.rglob("*gfx*") if path.is_file()]
    links = [path for path in links if path.parts[0] != ".device_links"]
    assert all((environment.root / path).samefile(environment.site / "_rocm_sdk_libraries" / path) for path in links)
    return sorted(map(str, links))


def test_files_are_linked_to_the_package_that_contains_them(environment: Installed) -> None:
    environment.install("rocm-sdk-device-gfx906")
    environment.run("rocm-sdk", "init")
    link = environment.root / KERNELS_906
    assert not link.is_symlink()
    assert link.samefile(environment.site / "_rocm_sdk_libraries" / KERNELS_906)
    assert link.read_text() == "gfx906"


def test_a_replaced_file_is_linked_again(environment: Installed) -> None:
    environment.install("rocm-sdk-device-gfx906", "--link-mode=copy")
    environment.run("rocm-sdk", "init")
    file = environment.site / "_rocm_sdk_libraries" / KERNELS_906
    file.unlink()
    file.write_text("another build")
    environment.run("rocm-sdk", "init")
    assert (environment.root / KERNELS_906).samefile(file)


def test_packages_installed_before_the_expansion_are_linked(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set())
    environment.install("rocm[devel,device-all]")
    environment.run("rocm-sdk", "init")
    assert [name for name in device_files(environment) if "kernels" in name] == [KERNELS_1030, KERNELS_906]


def test_the_compiler_links_packages_installed_later(environment: Installed) -> None:
    environment.install("rocm-sdk-device-gfx906")
    environment.run("hipcc")
    environment.install("rocm-sdk-device-gfx1030")
    environment.run("hipcc")
    assert [name for name in device_files(environment) if "kernels" in name] == [KERNELS_1030, KERNELS_906]


def test_links_of_an_uninstalled_package_are_removed_with_their_folders(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set())
    environment.install("rocm[devel,device-gfx906,device-gfx1030]")
    environment.run("hipcc")
    environment.uninstall("rocm-sdk-device-gfx906")
    environment.run("hipcc")
    assert device_files(environment) == [".device-gfx1030", ".kpack/blas_lib_gfx1030.kpack", KERNELS_1030]
    environment.uninstall("rocm-sdk-device-gfx1030")
    environment.run("hipcc")
    assert device_files(environment) == []
    assert not (environment.root / ".kpack").exists()


def test_a_file_of_the_tree_itself_is_kept(environment: Installed) -> None:
    environment.install("rocm-sdk-device-gfx906")
    environment.run("rocm-sdk", "init")
    environment.uninstall("rocm-sdk-device-gfx906")
    environment.run("rocm-sdk", "init")
    assert (environment.root / "lib/note.txt").read_text() == "of devel itself"


def change_manifest(environment: Installed, **changes: object) -> None:
    path = environment.site / "_rocm_sdk_libraries/.devel_links/gfx906.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("version", ["7.2.0.post1", "7.2.0"])
def test_a_post_release_of_a_device_package_is_linked(environment: Installed, version: str) -> None:
    environment.install("rocm-sdk-device-gfx906", "--link-mode=copy")
    change_manifest(environment, version=version)
    assert environment.run("rocm-sdk", "init").stderr == ""
    assert KERNELS_906 in device_files(environment)


def test_unreadable_device_packages_are_reported(environment: Installed) -> None:
    environment.install("rocm-sdk-device-gfx906")
    environment.run("rocm-sdk", "init")
    folder = environment.site / "_rocm_sdk_libraries/.devel_links"
    with read_only(environment) as prefix:
        folder.chmod(0)
        command = [*prefix, str(environment.path / "bin/rocm-sdk"), "path", "--root"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        folder.chmod(0o755)
    assert (done.returncode, done.stdout) == (0, f"{environment.root}\n")
    assert done.stderr == (
        f"rocm-sdk: warning: {environment.root} lacks files from installed device packages: "
        f"[Errno 13] Permission denied: '{folder}'. As a user with write access, run: rocm-sdk init\n"
    )


def test_the_metadata_of_a_device_package_takes_precedence_over_its_manifest(environment: Installed) -> None:
    """The reference's promotion script changes the metadata alone."""
    environment.install("rocm-sdk-device-gfx906", "--link-mode=copy")
    change_manifest(environment, version="7.2.0rc1")
    assert environment.run("rocm-sdk", "init").stderr == ""
    assert KERNELS_906 in device_files(environment)


def test_a_device_package_of_another_release_is_left_out_with_a_warning(environment: Installed) -> None:
    environment.install("rocm-sdk-device-gfx906", "--link-mode=copy")
    [metadata] = environment.site.glob("rocm_sdk_device_gfx906-*.dist-info/METADATA")
    metadata.write_text(metadata.read_text().replace("Version: 7.2.0", "Version: 7.1.0"))
    assert environment.run("rocm-sdk", "init").stderr == (
        "rocm-sdk: warning: the device package for gfx906 has version 7.1.0, not 7.2.0, so its files are not linked\n"
    )
    assert device_files(environment) == []


def warning_of(environment: Installed, found: str) -> str:
    """Return the warning about the manifest of gfx906."""
    path = environment.site / "_rocm_sdk_libraries/.devel_links/gfx906.json"
    reinstall = f'pip install "rocm[device-gfx906]==7.2.0" --force-reinstall {FROM_INDEX}'
    left_out = "The files of this device package are not linked."
    return f"rocm-sdk: warning: {path}: {found}. {left_out} Reinstall: {reinstall}\n"


OBJECT = "expected an object with 'version' and 'links'"
INSIDE = "expected relative paths that stay inside the tree"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("manifest", "found"),
    [
        (b"", f"is not JSON (Expecting value: line 1 column 1 (char 0)); {OBJECT}"),
        (b"\xff", f"is not UTF-8 at byte 0; {OBJECT}"),
        (b"[" * 200_000, f"is nested too deeply; {OBJECT}"),
        (b"[]", f"contains []; {OBJECT}"),
        (b"{}", "has {}; expected an object whose 'version' is a string"),
        (b'{"version": 5}', "has 5 for 'version'; expected an object whose 'version' is a string"),
        (b'{"version": "7.2.0"}', """has {"version": "7.2.0"}; expected an object whose 'links' is a list"""),
        (b'{"version": "7.2.0", "links": "x"}', """has "x" for 'links'; expected an object whose 'links' is a list"""),
        (b'{"version": "7.2.0", "links": [1]}', "has 1; expected an object whose 'relpath' is a string"),
        (
            b'{"version": "7.2.0", "links": [{"relpath": 1}]}',
            "has 1 for 'relpath'; expected an object whose 'relpath' is a string",
        ),
        (b'{"version": "7.2.0", "links": [{"relpath": ""}]}', f"has the path ''; {INSIDE}"),
        (b'{"version": "7.2.0", "links": [{"relpath": "../../x"}]}', f"has the path '../../x'; {INSIDE}"),
        (b'{"version": "7.2.0", "links": [{"relpath": "/etc/x"}]}', f"has the path '/etc/x'; {INSIDE}"),
        (b'{"version": "7.2.0", "links": [{"relpath": "a\\u0000"}]}', f"has the path 'a\\x00'; {INSIDE}"),
        (b'{"version": "7.2.0", "links": [{"relpath": "a\\ud800"}]}', f"has the path 'a\\ud800'; {INSIDE}"),
    ],
)
def test_a_damaged_manifest_is_left_out_with_a_warning(environment: Installed, manifest: bytes, found: str) -> None:
    environment.install("rocm-sdk-device-gfx906", "--link-mode=copy")
    (environment.site / "_rocm_sdk_libraries/.devel_links/gfx906.json").write_bytes(manifest)
    assert environment.run("rocm-sdk", "init").stderr == warning_of(environment, found)
    assert device_files(environment) == []


def test_a_manifest_that_is_a_folder_is_left_out_with_a_warning(environment: Installed) -> None:
    environment.install("rocm-sdk-device-gfx906", "--link-mode=copy")
    path = environment.site / "_rocm_sdk_libraries/.devel_links/gfx906.json"
    path.unlink()
    path.mkdir()
    assert environment.run("rocm-sdk", "init").stderr == warning_of(environment, f"is a folder; {OBJECT}")


def test_a_manifest_that_is_a_named_pipe_is_left_out_with_a_warning(environment: Installed) -> None:
    environment.install("rocm-sdk-device-gfx906", "--link-mode=copy")
    path = environment.site / "_rocm_sdk_libraries/.devel_links/gfx906.json"
    path.unlink()
    os.mkfifo(path)
    assert environment.run("rocm-sdk", "init").stderr == warning_of(environment, f"is a named pipe; {OBJECT}")


@pytest.mark.parametrize(
    ("note", "found"),
    [
        ("5", "contains 5; expected a list of paths"),
        ('{"a": 1}', 'contains {"a": 1}; expected a list of paths'),
        ("[1]", f"has the path 1; {INSIDE}"),
        ('["../../x"]', f"has the path '../../x'; {INSIDE}"),
    ],
)
def test_a_damaged_note_is_reported_and_replaced(environment: Installed, note: str, found: str) -> None:
    environment.install("rocm-sdk-device-gfx906")
    environment.run("rocm-sdk", "init")
    path = environment.root / ".device_links/gfx906.json"
    path.write_text(note)
    environment.install("rocm-sdk-device-gfx1030")
    assert environment.run("rocm-sdk", "init").stderr == (
        f"rocm-sdk: warning: {path}: {found}. Links to removed device packages may remain. "
        f'Reinstall: pip install "rocm[devel]==7.2.0" --force-reinstall {FROM_INDEX}\n'
    )
    assert "kernels_gfx906.co" in path.read_text()


def test_links_never_pass_through_a_link_into_another_package(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    # Given a tree in which the folder of a device file is a link to a folder of the libraries
    link = ("lib/rocblas", "../../_rocm_sdk_libraries/lib/rocblas")
    environment = make_environment(make_set(extra_devel=(link,)))
    environment.install("rocm[devel,device-gfx906]")
    environment.run("rocm-sdk", "init")
    assert (environment.root / KERNELS_906).read_text() == "gfx906"
    assert not (environment.site / "_rocm_sdk_libraries" / KERNELS_906).is_symlink()


def test_the_next_process_finishes_after_a_kill_at_any_step(environment: Installed) -> None:
    environment.install("rocm-sdk-device-gfx906")
    for installed in (True, False):
        for steps in range(1, 100):
            done = environment.run("python", "-c", KILLER, str(steps), check=False)
            if done.returncode == 0:
                break
            assert done.returncode == -9
        assert steps > 4
        assert (KERNELS_906 in device_files(environment)) == installed
        environment.uninstall("rocm-sdk-device-gfx906") if installed else None


ADDED_906 = (".kpack/blas_lib_gfx906.kpack", ".device-gfx906", KERNELS_906, ".device_links/gfx906.json")


@pytest.fixture
def linked(environment: Installed) -> Installed:
    """Return an environment in whose tree the files of gfx906 are linked."""
    environment.install("rocm-sdk-device-gfx906", "--link-mode=copy")
    environment.run("rocm-sdk", "init")
    return environment


def test_deleted_links_are_reported_and_init_restores_them(linked: Installed) -> None:
    for name in ADDED_906:
        (linked.root / name).unlink()
    machine = {"ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "gfx906"}
    found = linked.run("rocm-sdk", "doctor", check=False, **machine)
    text = (
        f"error: {linked.root} lacks links to files from device packages: .device-gfx906 and 3 more\n  rocm-sdk init\n"
    )
    assert (found.returncode, text in found.stdout) == (1, True)
    # When it is run, then it says what it did, and everything is as before
    assert linked.run("rocm-sdk", "init").stdout == (
        f"Restored 4 links to files from device packages\nThe ROCm development files are ready in {linked.root}\n"
    )
    assert all((linked.root / name).exists() for name in ADDED_906)
    assert text not in linked.run("rocm-sdk", "doctor", check=False, **machine).stdout
    assert linked.run("rocm-sdk", "init").stdout == f"The ROCm development files are ready in {linked.root}\n"


@pytest.mark.parametrize(
    ("words", "status", "kind"),
    [(["path", "--root"], 0, "warning"), (["init"], 1, "error")],
    ids=["a use", "init"],
)
def test_a_user_without_write_access_is_told_about_links_not_yet_made(
    environment: Installed, words: list[str], status: int, kind: str
) -> None:
    environment.install("rocm-sdk-device-gfx906")
    with read_only(environment) as prefix:
        command = [*prefix, str(environment.path / "bin/rocm-sdk"), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        status,
        (
            f"rocm-sdk: {kind}: {environment.root} lacks files from installed device packages: [Errno 13] Permission "
            f"denied: '{environment.site}/rocm_sdk_devel/__init__.py'. "
            "As a user with write access, run: rocm-sdk init\n"
        ),
    )


def test_a_user_without_write_access_is_told_about_deleted_links(linked: Installed) -> None:
    (linked.root / KERNELS_906).unlink()
    with read_only(linked) as prefix:
        command = [*prefix, str(linked.path / "bin/rocm-sdk"), "init"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        (
            f"rocm-sdk: error: {linked.root} lacks files from installed device packages: [Errno 13] Permission denied: "
            f"'{linked.site}/rocm_sdk_devel/__init__.py'. As a user with write access, run: rocm-sdk init\n"
        ),
    )


def test_record_lists_the_links_correctly_as_device_packages_come_and_go(linked: Installed) -> None:
    assert record_faults(linked.site) == []
    linked.uninstall("rocm-sdk-device-gfx906")
    assert record_faults(linked.site) == []
    linked.run("rocm-sdk", "init")
    assert record_faults(linked.site) == []


_FULL = """
import errno, os
from rocm_sdk._cli import main
def fail(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
os.link = fail
main(["init"])
"""


def test_init_fails_if_files_of_device_packages_cannot_be_linked(environment: Installed) -> None:
    """On a full disk a symlink would be in the place of the hard link ever after."""
    environment.install("rocm-sdk-device-gfx906")
    done = environment.run("python", "-c", _FULL, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"rocm-sdk: error: {environment.root} lacks files from installed device packages: "
        "[Errno 28] No space left on device\n"
    )
    assert environment.run("rocm-sdk", "init").stderr == ""
    assert KERNELS_906 in device_files(environment)
