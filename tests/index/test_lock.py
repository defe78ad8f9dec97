"""Locks: for which GPUs, with whose password, and what uv says, as far as people have to know it."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.index.lock import (
    ResolveOptions,
    check_locked,
    index_urls,
    lacking_extras,
    parse_requirements,
    targets_to_lock,
    why_not,
    with_user,
)
from rocwheel.index.write_index import write_index
from tests.support.fault_proxy import fault_proxy
from tests.support.loopback import served
from tests.support.sdists import write_sdist
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.command_line import Run


@pytest.mark.parametrize(
    ("text", "targets", "environ", "expected"),
    [
        ("rocm[libraries,device-gfx942]", None, {}, ("gfx942",)),
        ("rocm[Device_GFX942,device-gfx1100]", None, {}, ("gfx1100", "gfx942")),
        ("rocm[device]", "MI300X", {}, ("gfx942",)),
        ("rocm[device-gfx942]", "gfx90a:xnack+", {}, ("gfx90a",)),
        ("rocm[device]", None, {"ROCM_SDK_TARGET_FAMILY": "gfx906; gfx942"}, ("gfx906", "gfx942")),
        ("rocm[device-gfx942]", None, {"ROCM_SDK_TARGET_FAMILY": "gfx906"}, ("gfx942",)),
        ("rocm-sdk-device-gfx906", None, {"ROCM_SDK_TARGET_FAMILY": "gfx942"}, ("gfx906",)),
        ("ROCm_SDK.device-gfx906", "gfx942", {}, ("gfx942",)),
        ("rocm-sdk-libraries-gfx94x-dcgpu", None, {}, ()),
        ("rocm[device-all]", None, {}, ()),
        ("rocm", None, {}, ()),
    ],
)
def test_the_gpus_to_lock_come_from_extras_options_and_variables(
    text: str, targets: str | None, environ: dict[str, str], expected: tuple[str, ...]
) -> None:
    found = targets_to_lock(parse_requirements([text]), targets, environ)
    assert tuple(sorted(found)) == expected


def test_a_requirement_that_depends_on_the_gpus_of_a_machine_is_refused() -> None:
    with pytest.raises(InputError, match="depends on the GPUs of a machine") as caught:
        targets_to_lock(parse_requirements(["rocm[device]"]), None, {})
    assert str(caught.value).endswith("Specify the GPUs, for example with --targets gfx942.")


CORE = ("rocm", "rocm-sdk-core")


@pytest.mark.parametrize(
    ("projects", "text", "targets"),
    [
        ((*CORE, "rocm-sdk-device-gfx942"), "rocm[device-gfx942]", ("gfx942",)),
        ((*CORE, "rocm-sdk-libraries-gfx94x-dcgpu"), "rocm[libraries]", ("gfx942",)),
        ((*CORE, "torch-device-gfx12-0", "torch-device-gfx1201"), "torch[device-gfx1201]", ("gfx1201",)),
        ((*CORE, "rocm-sdk-device-gfx9999"), "rocm[device-gfx9999]", ("gfx9999",)),
        ((*CORE, "rocm-sdk-device-gfx906", "rocm-sdk-device-gfx942"), "rocm[device-all]", ()),
        ((*CORE, "rocm-sdk-device-gfx906", "rocm-sdk-device-gfx942"), "rocm[Device_All,device-gfx942]", ("gfx942",)),
        (("rocm-sdk-libraries-gfx94x-dcgpu",), "ROCm_SDK_libraries-gfx94X-dcgpu", ()),
        (CORE, "rocm", ()),
    ],
)
def test_packages_for_the_given_gpus_are_valid(projects: tuple[str, ...], text: str, targets: tuple[str, ...]) -> None:
    check_locked(projects, parse_requirements([text]), targets, "pylock.toml", is_given=False)


def test_the_plain_wheel_of_a_variant_package_is_refused_because_it_requires_every_gpu() -> None:
    projects = ("rocm-sdk-device", "rocm-sdk-device-gfx1100", "rocm-sdk-device-gfx942")
    message = (
        "rocm-sdk-device-gfx942: is required by rocm-sdk-device's plain wheel, because lock files can't contain "
        "variants. Lock rocm-sdk-device-gfx... for the GPU instead, or an extra such as rocm[device-gfx942]."
    )
    with pytest.raises(InputError, match=re.escape(message)):
        check_locked(projects, parse_requirements(["rocm-sdk-device"]), ("gfx1100",), "pylock.toml", is_given=False)


@pytest.mark.parametrize("targets", [(), ("gfx942",)])
def test_a_package_chosen_for_the_gpus_of_this_machine_is_an_error(targets: tuple[str, ...]) -> None:
    message = (
        "rocm-sdk-libraries-gfx103x-dgpu: is for gfx103x-dgpu: it was selected because of this machine's GPUs, or "
        "another package requires it"
    )
    projects = (*CORE, "rocm-sdk-libraries-gfx103x-dgpu")
    with pytest.raises(InputError, match=re.escape(message)):
        check_locked(projects, parse_requirements(["rocm"]), targets, "pylock.toml", is_given=bool(targets))


def test_device_all_does_not_allow_a_library_chosen_for_this_machine() -> None:
    projects = (*CORE, "rocm-sdk-device-gfx906", "rocm-sdk-libraries-gfx103x-dgpu")
    message = (
        "rocm-sdk-libraries-gfx103x-dgpu: is for gfx103x-dgpu: it was selected because of this machine's GPUs, or "
        "another package requires it"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        check_locked(projects, parse_requirements(["rocm[device-all]"]), (), "pylock.toml", is_given=False)


def test_an_extra_that_resolvers_ignore_is_an_error() -> None:
    with pytest.raises(InputError, match=r"pylock.toml: has no package for gfx1100, even though an extra requires it"):
        check_locked(CORE, parse_requirements(["rocm[device-gfx1100]"]), ("gfx1100",), "pylock.toml", is_given=False)


def test_invalid_requirements_are_reported_together() -> None:
    with pytest.raises(ProblemsError) as caught:
        parse_requirements(["rocm[", "rocm", "-r x"])
    assert [str(problem.source) for problem in caught.value.problems] == ["rocm[", "-r x"]  # type: ignore[attr-defined]


def test_a_requirement_with_too_many_brackets_is_an_error() -> None:
    with pytest.raises(InputError, match=r"is not a requirement \(more than 32 nested brackets\)"):
        parse_requirements(["rocm; " + "(" * 5000])


def test_the_error_about_an_invalid_requirement_does_not_contain_its_password() -> None:
    with pytest.raises(InputError, match=re.escape("x @@ https://host/x.whl: is not a requirement")) as caught:
        parse_requirements(["x @@ https://me:secret@host/x.whl"])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "rocm[libraries,device-gfx906]",
            "lists only gfx90a, but an extra requires gfx906. Add gfx906 to --targets, or remove its extra.",
        ),
        (
            "rocm-sdk-device-gfx906",
            (
                "lists only gfx90a, but rocm-sdk-device-gfx906 is required. Add gfx906 to --targets, or remove the "
                "package."
            ),
        ),
        (
            "rocm[device-all]",
            (
                "lists only gfx90a, but device-all requires other GPUs (gfx906). Omit --targets, or request "
                "device-gfx90a instead of device-all."
            ),
        ),
    ],
)
def test_a_requirement_for_a_gpu_that_was_not_requested_is_an_error(text: str, message: str) -> None:
    projects = (*CORE, "rocm-sdk-device-gfx906", "rocm-sdk-device-gfx90a")
    with pytest.raises(InputError) as caught:
        check_locked(projects, parse_requirements([text]), ("gfx90a",), "pylock.toml", is_given=True)
    assert str(caught.value) == f"--targets: {message}"


FORBIDDEN = """\
warning: The requested Python version 3.9 is not available
error: Failed to fetch: `http://me:word@127.0.0.1:1/simple/rocm/?token=SECRET`
  cause: HTTP status client error (403 Forbidden) for url (http://127.0.0.1:1/simple/rocm/?token=SECRET)
"""
NO_GPU = """\
error: Failed to build `rocm==7.0.0`
  cause: The build backend returned an error
  cause: Call to `selector.prepare_metadata_for_build_wheel` failed (exit status: 1)

[stderr]
rocm: ROCM_SDK_TARGET_FAMILY=gfx1100: ROCm 7.0.0 has no packages for gfx1100 on linux. Available: gfx906, gfx90a. \
Choose one of these families, or unset the variable to detect the GPU.

hint: Build failures usually indicate a problem with the package or the build environment
"""


def test_errors_contain_no_password_from_a_url() -> None:
    why, remedy = why_not(FORBIDDEN)
    assert why == (
        "error: Failed to fetch: `http://127.0.0.1:1/simple/rocm/` cause: HTTP status client error (403 Forbidden) "
        "for url (http://127.0.0.1:1/simple/rocm/)"
    )
    assert remedy == "Check the requirements and the package locations (--index-url, --find-links)."


def test_no_secret_of_a_misspelled_url_is_told() -> None:
    why, _ = why_not("error: Distribution not found at: file:///me:secret@127.0.0.1:1/x")
    assert why == "error: Distribution not found at: file:///127.0.0.1:1/x"


def test_the_error_about_a_gpu_without_packages_uses_the_selector_message() -> None:
    assert why_not(NO_GPU) == (
        "ROCm 7.0.0 has no packages for gfx1100 on linux. Available: gfx906, gfx90a",
        "Use --targets to specify GPUs that have packages.",
    )


def test_only_missing_extras_that_were_requested_are_reported() -> None:
    said = (
        "warning: The package `rocm==7.0.0` does not have an extra named `profilr`\n"
        "warning: The package `rocm-sdk==7.0.0` does not have an extra named `other`\n"
    )
    problems = lacking_extras(said, ["ROCm[libraries,Profilr]", "rocm_sdk"])
    assert list(map(str, problems)) == [
        "rocm[profilr]: does not exist. Correct the name of the extra, or omit the extra."
    ]


@pytest.mark.slow
def test_a_missing_extra_prevents_the_lock(run: Run, tmp_path: Path) -> None:
    make_wheel(tmp_path / "dist", "alpha", {}, tag="py3-none-any", extras=("libraries",))
    write_index(tmp_path / "dist", tmp_path / "simple")
    index = ("--index-url", (tmp_path / "simple").as_uri())
    done = run("lock", "alpha[libraries,profilr]", *index, "-o", tmp_path / "pylock.toml")
    assert (done.status, "alpha[profilr]: does not exist" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "pylock.toml").exists()


PYPROJECT = b"""\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "rocm"
version = "1.0"
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    """Give host and port of an index of one sdist, which answers to me and secret alone."""
    (tmp_path / "dist").mkdir()
    info = b"Metadata-Version: 2.2\nName: rocm\nVersion: 1.0\n"
    write_sdist(tmp_path / "dist", "rocm-1.0", {"PKG-INFO": info, "pyproject.toml": PYPROJECT})
    write_index(tmp_path / "dist", tmp_path / "simple")
    with served(tmp_path) as address, fault_proxy(address) as proxy:
        proxy.authorization = f"Basic {base64.b64encode(b'me:secret').decode()}"
        yield proxy.address.partition("://")[2]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["address", "variable", "netrc"])
def test_an_sdist_behind_a_password_can_be_locked(
    run: Run, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    url = f"http://{'' if way == 'netrc' else 'me:secret@'}{host}/simple"
    words = () if way == "variable" else ("--index-url", url)
    if way == "variable":
        monkeypatch.setenv("UV_DEFAULT_INDEX", url)
    if way == "netrc":
        (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
        (tmp_path / "netrc").chmod(0o600)
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    done = run("lock", "rocm", *words, "-o", tmp_path / "pylock.toml", "--json")
    assert done.status == 0, done.stderr
    assert json.loads(done.stdout)["build_requires"] == {"rocm": ["setuptools>=61"]}
    assert "secret" not in done.stdout + done.stderr + (tmp_path / "pylock.toml").read_text()


@pytest.mark.slow
def test_the_password_in_a_requirement_is_used_but_not_written(run: Run, host: str, tmp_path: Path) -> None:
    url = f"{host}/dist/rocm-1.0.tar.gz"
    done = run("lock", f"rocm @ http://me:secret@{url}", "-o", tmp_path / "pylock.toml", "--json")
    assert done.status == 0, done.stderr
    text = (tmp_path / "pylock.toml").read_text()
    assert f'url = "http://{url}"\n' in text
    assert "secret" not in done.stdout + done.stderr + text


@pytest.mark.slow
def test_a_query_is_kept_in_the_file_url_but_not_in_the_requirements(run: Run, host: str, tmp_path: Path) -> None:
    url, output = f"{host}/dist/rocm-1.0.tar.gz", tmp_path / "pylock.toml"
    done = run("lock", f"rocm @ http://me:secret@{url}?token=hidden", "-o", output)
    assert done.status == 0, done.stderr
    text = output.read_text()
    assert f'url = "http://{url}?token=hidden"\n' in text
    assert f'requirements = [\n    "rocm @ http://{url}",\n]' in text
    assert (
        f"warning: {output}: contains the text after the question mark in http://{url}, because installers may need "
        "it. If the text is a secret, such as a token, don't share the file, or lock packages that you downloaded: "
        "--find-links FOLDER."
    ) in " ".join(done.stderr.split())
    assert "secret@" not in done.stderr + text
    assert "hidden" not in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--index-url", "--extra-index-url"])
def test_the_error_about_a_parent_folder_names_the_index(run: Run, host: str, tmp_path: Path, option: str) -> None:
    done = run("lock", "rocm", option, f"http://me:secret@{host}", "-o", tmp_path / "pylock.toml")
    text = f"is the folder above a package index, http://{host}/simple/. Use that URL."
    assert (done.status, done.stderr) == (2, f"error: http://{host}/: {text}\n")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("pylock.toml/inner", "pylock.toml: is a folder; expected an output file. Change --output."),
        ("here", "here: isn't a folder; expected an output folder. Change --output."),
    ],
    ids=["a folder for the file", "a file for its folder"],
)
def test_an_unusable_output_is_an_error_before_the_first_request(
    run: Run, tmp_path: Path, made: str, message: str
) -> None:
    place, asked = tmp_path / made, list[str]()
    place.parent.mkdir(exist_ok=True)
    place.write_text("mine")
    output = tmp_path / "pylock.toml" if made.startswith("pylock") else tmp_path / "here/pylock.toml"
    (tmp_path / "there").mkdir()
    with served(tmp_path / "there", asked) as url:
        done = run("lock", "rocm", "--index-url", f"{url}/simple", "--output", output)
    assert (done.status, " ".join(done.stderr.split()), asked) == (2, f"error: {tmp_path}/{message}", [])


def test_index_urls_come_from_options_and_uv_variables() -> None:
    environ = {
        "UV_INDEX": "own=https://a/simple?x=1 https://b",
        "UV_FIND_LINKS": "https://c,dist",
        "PIP_INDEX_URL": "no",
    }
    options = ResolveOptions("https://me@d/", ("file:///x", "https://e"))
    assert index_urls(options, environ) == (
        "https://me@d/",
        "https://e",
        "https://a/simple?x=1",
        "https://b",
        "https://c",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("machine host login me password w@rd", "https://me:w%40rd@host/x"),
        ("machine other login me password word", "https://host/x"),
        ("machine host login", "https://host/x"),
    ],
    ids=["known", "other", "broken"],
)
def test_credentials_come_from_netrc_if_no_index_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    (tmp_path / "netrc").write_text(f"{text}\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert with_user("https://host/x", ["https://[bad", "https://other/simple"]) == expected
    assert with_user("https://host/x", ["https://you:own@host/simple"]) == "https://you:own@host/x"
