"""Archives of development files: order, compression, damage, members that would lie or lead outside."""

from __future__ import annotations

import re
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sdk.devel.trees import REINSTALL, TREE, describe, member, replace_archive
from tests.support.bombs import tar_block
from tests.support.command_line import ASCII
from tests.support.record_check import record_faults

if TYPE_CHECKING:
    from tests.sdk.installed import Installed, MakeEnvironment, MakeSet

pytestmark = pytest.mark.slow

LINK = "_rocm_sdk_devel/link"
NO_TEXT = "_rocm_sdk_devel/a\udcff"


@pytest.mark.parametrize("reverse", [False, True], ids=["as packed", "reversed"])
@pytest.mark.parametrize("suffix", ["", ".xz", ".zst"])
def test_the_tree_does_not_depend_on_order_or_compression(
    make_set: MakeSet, make_environment: MakeEnvironment, suffix: str, reverse: bool
) -> None:
    environment = make_environment(make_set(devel=suffix, reverse_devel=reverse))
    environment.install("rocm[devel]", "--link-mode=copy")
    environment.run("rocm-sdk", "init", "--quiet")
    assert describe(environment.root) == TREE


def test_a_zstd_archive_is_read_with_the_system_library(make_set: MakeSet, make_environment: MakeEnvironment) -> None:
    # Given a Python before 3.14 without a package for it: the requirements of the set are all in its index
    environment = make_environment(make_set(devel=".zst"))
    environment.install("rocm[devel]", "--link-mode=copy")
    environment.run("rocm-sdk", "init", "--quiet")
    assert describe(environment.root) == TREE


def test_a_zstd_archive_is_read_with_an_installed_package(make_set: MakeSet, make_environment: MakeEnvironment) -> None:
    environment = make_environment(make_set(devel=".zst"))
    environment.install("rocm[devel]", "--link-mode=copy")
    code = "import sys; sys.modules['compression'] = None; from rocm_sdk._devel import get_devel_root; "
    code += "from rocm_sdk import _devel_archive as archives; "
    code += "archives._load_library = None; get_devel_root()"
    path = Path(sys.executable).parents[1] / environment.site.relative_to(environment.path)
    environment.run("python", "-c", code, PYTHONPATH=str(path))
    assert describe(environment.root) == TREE


def test_the_error_for_an_unreadable_zstd_archive_names_what_is_required(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set(devel=".zst"))
    environment.install("rocm[devel]", "--link-mode=copy")
    code = "import sys; from rocm_sdk import _devel_archive as archives; archives.MODULES = (); "
    code += "archives.LIBRARY = 'libgone.so.1'; "
    code += "from rocm_sdk._cli import main; main(['init'])"
    done = environment.run("python", "-c", code, check=False)
    archive = environment.site / "rocm_sdk_devel/_devel.tar.zst"
    assert (done.returncode, done.stderr) == (
        1,
        (
            f"rocm-sdk: error: {archive}: reading this archive requires libzstd.so.1 or Python 3.14, or: pip install "
            "backports.zstd\n"
        ),
    )


def fail_to_expand(environment: Installed) -> str:
    """Return the message of a failing expansion, after checking that it left nothing and kept the archive."""
    before = environment.files()
    done = environment.run("rocm-sdk", "init", check=False, PYTHONDONTWRITEBYTECODE="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert environment.files() == before
    assert [fault for fault in record_faults(environment.site) if "_devel.tar" not in fault] == []
    return done.stderr


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (member("/etc/passwd"), "'/etc/passwd' is not below _rocm_sdk_devel/."),
        (member("_rocm_sdk_devel/../x"), "'_rocm_sdk_devel/../x' is not below _rocm_sdk_devel/."),
        (member("rocm_sdk/x.py"), "'rocm_sdk/x.py' is not below _rocm_sdk_devel/."),
        (member(LINK, tarfile.SYMTYPE, "/etc"), f"{LINK!r} links to '/etc', which is outside site-packages."),
        (member(LINK, tarfile.SYMTYPE, "../../x"), f"{LINK!r} links to '../../x', which is outside site-packages."),
        (member(LINK, tarfile.LNKTYPE, "_rocm_sdk_devel/x"), f"{LINK!r} is not a file, a folder, or a symlink."),
        (member(LINK, tarfile.CHRTYPE), f"{LINK!r} is not a file, a folder, or a symlink."),
        (member(NO_TEXT), f"{NO_TEXT!r} is not UTF-8, which RECORD requires."),
    ],
    ids=["absolute", "dots", "other package", "absolute link", "link out", "hard link", "device", "no text"],
)
def test_an_unsafe_member_is_refused(environment: Installed, bad: tarfile.TarInfo, message: str) -> None:
    replace_archive(environment, member("_rocm_sdk_devel/fine"), bad)
    complete = f"rocm-sdk: error: The archive of the ROCm development files has an unsafe member: {message}\n"
    assert fail_to_expand(environment) == complete


def test_a_file_below_a_link_is_refused(environment: Installed) -> None:
    link = member("_rocm_sdk_devel/lib", tarfile.SYMTYPE, "../_rocm_sdk_core/lib")
    replace_archive(environment, link, member("_rocm_sdk_devel/lib/x"))
    assert fail_to_expand(environment) == (
        "rocm-sdk: error: The archive of the ROCm development files has an unsafe member: '_rocm_sdk_devel/lib/x' "
        "is below a path that is not a folder.\n"
    )
    assert not (environment.site / "_rocm_sdk_core/lib/x").exists()


def test_non_ascii_names_are_reported_with_a_remedy_if_python_uses_ascii_file_names(environment: Installed) -> None:
    replace_archive(environment, member("_rocm_sdk_devel/share/café.txt"))
    archive = environment.site / "rocm_sdk_devel/_devel.tar"
    done = environment.run("rocm-sdk", "init", check=False, **ASCII)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        f"rocm-sdk: error: {archive}: this Python can't represent its file names ('ascii' codec "
    )
    assert done.stderr.endswith("). Set PYTHONUTF8=1, and run `rocm-sdk init` again.\n")
    environment.run("rocm-sdk", "init", PYTHONUTF8="1")
    assert describe(environment.root)["share/café.txt"]


def test_a_duplicate_member_is_refused(environment: Installed) -> None:
    replace_archive(environment, member("_rocm_sdk_devel/x"), member("_rocm_sdk_devel/x"))
    assert "'_rocm_sdk_devel/x' occurs twice." in fail_to_expand(environment)


@pytest.mark.parametrize("suffix", ["", ".xz", ".zst"])
def test_a_damaged_archive_is_refused(make_set: MakeSet, make_environment: MakeEnvironment, suffix: str) -> None:
    environment = make_environment(make_set(devel=suffix))
    environment.install("rocm[devel]", "--link-mode=copy")
    archive = environment.site / f"rocm_sdk_devel/_devel.tar{suffix}"
    data = archive.read_bytes()
    archive.write_bytes(data[: len(data) // 2 + 7])
    message = fail_to_expand(environment)
    assert message.startswith(f"rocm-sdk: error: {archive}: is damaged (")
    assert message.endswith(f"Reinstall: {REINSTALL}\n")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        pytest.param(b"\xff" * 512, "a header is damaged: bad checksum", id="no header"),
        pytest.param(bytes(512), "there is a block of zeros between its members", id="zeros"),
    ],
)
def test_a_damaged_header_is_not_mistaken_for_the_end(environment: Installed, damage: bytes, why: str) -> None:
    replace_archive(environment, *(member(f"_rocm_sdk_devel/{name}") for name in "abc"))
    archive = environment.site / "rocm_sdk_devel/_devel.tar"
    data = archive.read_bytes()
    archive.write_bytes(data[:512] + damage + data[1024:])
    complete = f"rocm-sdk: error: {archive}: is damaged ({why}). Reinstall: {REINSTALL}\n"
    assert fail_to_expand(environment) == complete


def test_an_archive_truncated_between_two_members_is_refused(environment: Installed) -> None:
    replace_archive(environment, *(member(f"_rocm_sdk_devel/{name}") for name in "abc"))
    archive = environment.site / "rocm_sdk_devel/_devel.tar"
    archive.write_bytes(archive.read_bytes()[:1024])
    complete = f"rocm-sdk: error: {archive}: is damaged (its end is missing). Reinstall: {REINSTALL}\n"
    assert fail_to_expand(environment) == complete


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        (tar_block(tarfile.GNUTYPE_LONGNAME, b"n" * 5000), "'n' is a header of an unexpected kind or size"),
        (tar_block(tarfile.GNUTYPE_LONGNAME, size=1 << 40), "'n' is a header of an unexpected kind or size"),
        (tar_block(tarfile.XHDTYPE, size=1 << 40), "'n' is a header of an unexpected kind or size"),
        (tar_block(tarfile.XGLTYPE, b"8 a=bc\n\n"), "'n' is a header of an unexpected kind or size"),
        (tar_block(tarfile.GNUTYPE_SPARSE), "'n' is a header of an unexpected kind or size"),
        (tar_block(tarfile.REGTYPE, size=-512), "'n' has a negative size"),
        (
            tar_block(tarfile.XHDTYPE, b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n")
            + tar_block(tarfile.REGTYPE, b"9" * 512),
            "'n' is a sparse file",
        ),
    ],
    ids=["long name", "endless name", "endless records", "global", "sparse", "negative", "sparse by pax"],
)
def test_a_header_that_no_build_writes_is_refused_with_a_reason(
    environment: Installed, headers: bytes, why: str
) -> None:
    archive = environment.site / "rocm_sdk_devel/_devel.tar"
    archive.write_bytes(headers + bytes(10240))
    message = fail_to_expand(environment)
    assert message.startswith(f"rocm-sdk: error: {archive}: is damaged ({why}")
    assert message.endswith(f"Reinstall: {REINSTALL}\n")


def test_a_file_larger_than_the_disk_is_refused_before_writing(environment: Installed) -> None:
    archive = environment.site / "rocm_sdk_devel/_devel.tar"
    archive.write_bytes(tar_block(tarfile.REGTYPE, b"x" * 600, name="_rocm_sdk_devel/x", size=1 << 60))
    assert re.fullmatch(
        r"rocm-sdk: error: The ROCm development files can't be expanded in .+ "
        r"\(1152921504606846976 bytes to write, but only \d+ bytes free: .+/x\)\. Run `rocm-sdk init` once .*\n",
        fail_to_expand(environment),
    )


def test_a_link_to_a_file_missing_from_its_package_is_refused(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set(extra_devel=(("lib/x", "../../_rocm_sdk_core/lib/gone.so.2"),)))
    environment.install("rocm[devel]", "--link-mode=copy")
    assert fail_to_expand(environment) == (
        "rocm-sdk: error: The ROCm development files link to _rocm_sdk_core/lib/gone.so.2, which the installed "
        "packages lack. All packages must have version 7.2.0; reinstall them together.\n"
    )


def test_links_to_several_missing_files_are_counted(make_set: MakeSet, make_environment: MakeEnvironment) -> None:
    links = tuple((f"lib/{name}", f"../../_rocm_sdk_core/lib/gone.so.{name}") for name in "ab")
    environment = make_environment(make_set(extra_devel=links))
    environment.install("rocm[devel]", "--link-mode=copy")
    assert "link to 2 files, such as _rocm_sdk_core/lib/gone.so.a, which the installed packages lack." in (
        fail_to_expand(environment)
    )
