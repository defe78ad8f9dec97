"""Tests of `rocwheel.index.trust`."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rocwheel.core.errors import InputError
from rocwheel.index.pages import RawFile, RawPage
from rocwheel.index.trust import check_file, check_variants_list, join_url, trusted_projects

A = "a" * 64
PAGE = "https://host/simple/rocm-sdk/"
WHEEL = "rocm_sdk-1.0-py3-none-any.whl"


def raw(url: str = WHEEL, **more: Any) -> RawFile:
    return RawFile(**{"url": url, "filename": "", "hashes": {"sha256": A}, **more})


@pytest.mark.parametrize(
    ("url", "found"),
    [
        (WHEEL, f"https://host/simple/rocm-sdk/{WHEEL}"),
        (f"../../dist/{WHEEL}", f"https://host/dist/{WHEEL}"),
        (f"/dist/{WHEEL}", f"https://host/dist/{WHEEL}"),
        (f"//files.host/{WHEEL}", f"https://files.host/{WHEEL}"),
        (f"https://other/{WHEEL}?signature=x", f"https://other/{WHEEL}?signature=x"),
    ],
    ids=["beside", "relative", "root", "host", "absolute"],
)
def test_file_urls_are_parsed_like_browsers_do(url: str, found: str) -> None:
    file = check_file(raw(url), "rocm-sdk", PAGE)
    assert file
    assert (file.url, file.filename, file.project, file.version) == (found, WHEEL, "rocm-sdk", "1.0")


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (raw("http://host/" + WHEEL), "points from https to 'http://host/"),
        (raw("file:///etc/" + WHEEL), "points to 'file:///etc/"),
        (raw("ftp://host/" + WHEEL), "points to 'ftp://host/"),
        (raw("https://me:secret@other/" + WHEEL), "points to a URL with a user or password at other"),
        (raw("https://[/" + WHEEL), "lists 'https://[/"),
        (raw("..%2f..%2f" + WHEEL), "lists '../../rocm_sdk-1.0-py3-none-any.whl'"),
        (raw(WHEEL, filename="../" + WHEEL), "lists '../rocm_sdk-1.0-py3-none-any.whl'"),
        (raw("x.whl", filename=WHEEL), "expected a plain file name at the end of the URL"),
        (raw("rocm_sdk-1.0%0a-py3-none-any.whl"), "lists 'rocm_sdk-1.0\\n-py3-none-any.whl'"),
        (raw("-rf-1.0.tar.gz"), "lists '-rf-1.0.tar.gz'"),
        (raw("other-1.0-py3-none-any.whl"), "lists 'other-1.0-py3-none-any.whl', which belongs to other"),
        (raw(hashes={}), f"has no SHA-256 for {WHEEL}"),
        (raw(hashes={"md5": "0" * 32}), f"has no SHA-256 for {WHEEL}"),
        (raw(hashes={"sha256": "zz"}), f"has a malformed SHA-256 for {WHEEL}"),
        (raw(size=-1), f"lists -1 bytes as the size of {WHEEL}"),
        (raw(size=1 << 60), f"lists {1 << 60} bytes as the size of {WHEEL}"),
    ],
    ids=[
        "downgrade", "file", "ftp", "user", "address", "quoted slash", "slash", "name", "newline", "dash", "project",
        "hash", "md5", "malformed", "size", "huge",
    ],
)  # fmt: skip
def test_untrustworthy_files_are_refused(file: RawFile, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        check_file(file, "rocm-sdk", PAGE)


@pytest.mark.parametrize("name", ["notes.txt", "rocm_sdk-1.0.zip", "rocm_sdk-1.0-py3-none-any-GFX942.whl", "x.tar.gz"])
def test_files_that_are_not_distributions_by_name_are_skipped(name: str) -> None:
    assert check_file(raw(name), "rocm-sdk", PAGE) is None


def test_wheel_variants_are_recognized_by_their_labels() -> None:
    file = check_file(raw("rocm_sdk-1.0-py3-none-any-gfx942.whl"), "rocm-sdk", PAGE)
    assert file
    assert (file.project, file.version, file.label) == ("rocm-sdk", "1.0", "gfx942")


def test_lists_of_wheel_variants_are_found_but_may_not_point_elsewhere() -> None:
    name = "rocm_sdk-1.0-variants.json"
    assert check_variants_list(raw(name, hashes={}), PAGE) == (name, f"https://host/simple/rocm-sdk/{name}")
    assert check_variants_list(raw(WHEEL), PAGE) is None
    with pytest.raises(InputError, match="points from https to"):
        check_variants_list(raw(f"http://host/{name}"), PAGE)


def test_error_messages_contain_no_passwords() -> None:
    with pytest.raises(InputError) as caught:
        check_file(raw(hashes={}), "rocm-sdk", "https://me:secret@host/simple/rocm-sdk/")
    assert "secret" not in str(caught.value)


def test_relative_urls_in_a_bucket_are_resolved() -> None:
    assert join_url("s3://b/simple/x/", "../../dist/x.whl") == "s3://b/dist/x.whl"
    assert join_url("s3://b/simple/x/", "https://h/x.whl") == "https://h/x.whl"


def test_project_names_are_normalized_and_invalid_names_are_omitted() -> None:
    page = RawPage(projects=("Rocm_SDK", "rocm.sdk", "../evil", "", "torch"))
    assert trusted_projects(page) == ("rocm-sdk", "torch")


@pytest.mark.parametrize("name", [f"a-{'1' * 5000}-py3-none-any.whl", f"a-{'1' * 5000}.tar.gz"])
def test_a_version_with_more_digits_than_python_can_parse_is_skipped(name: str) -> None:
    assert check_file(raw(name), "a", PAGE) is None
