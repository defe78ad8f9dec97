"""What ``make setup`` installs: each package in a version that suits pyproject.toml, each file known by its hash."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
EXTRAS = ("test", "lint", "docs", "dev", "release", "security", "dask", "lock", "report", "stores")


def entries(name: str) -> list[str]:
    """Return the lines of a lock file, each with its hashes."""
    text = (ROOT / ".ci" / name).read_text().replace("\\\n", "")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


ENTRIES = entries("requirements.txt")
DEMO = entries("requirements-demo.txt")


def pinned(python: str, lines: list[str] = ENTRIES) -> dict[str, str]:
    """Return the version of each package for a Python on Linux."""
    environment = {"python_version": python, "python_full_version": f"{python}.9", "sys_platform": "linux"}
    found = [Requirement(entry.partition(" --hash")[0].strip()) for entry in lines]
    chosen = [one for one in found if one.marker is None or one.marker.evaluate(environment)]
    names = [canonicalize_name(one.name) for one in chosen]
    assert sorted(set(names)) == sorted(names)
    return {canonicalize_name(one.name): str(one.specifier).removeprefix("==") for one in chosen}


def wanted(python: str, extras: tuple[str, ...] = EXTRAS) -> Iterator[Requirement]:
    """Yield what pyproject.toml asks for, directly."""
    project = msgspec.toml.decode((ROOT / "pyproject.toml").read_bytes())["project"]
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    for one in map(Requirement, lines):
        if one.name != "rocwheel" and (one.marker is None or one.marker.evaluate({"python_version": python})):
            yield one


def test_every_package_has_one_version_with_hashes() -> None:
    for entry in [*ENTRIES, *DEMO]:
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==[\w.+!]+ ", entry), entry
        assert re.search(r" --hash=sha256:[0-9a-f]{64}", entry), entry
    assert len(ENTRIES) > 100


@pytest.mark.parametrize("python", PYTHONS)
def test_every_requirement_is_satisfied(python: str) -> None:
    versions = pinned(python)
    unmet = [
        str(one) for one in wanted(python) if not one.specifier.contains(versions.get(canonicalize_name(one.name), "0"))
    ]
    assert unmet == []


@pytest.mark.parametrize("python", PYTHONS)
def test_the_demo_pins_the_same_runtime_versions(python: str) -> None:
    versions = pinned(python, DEMO)
    assert {canonicalize_name(one.name) for one in wanted(python, ())} | {"hatchling", "editables"} <= set(versions)
    assert versions.items() <= pinned(python).items()
    assert len(versions) < 40


@pytest.mark.parametrize("name", ["hatchling", "editables", "bandit", "pip-audit", "zizmor"])
def test_build_and_check_tools_are_pinned(name: str) -> None:
    assert name in pinned("3.13")


def test_requirements_name_no_index() -> None:
    for name in ("requirements.txt", "requirements-demo.txt"):
        text = (ROOT / ".ci" / name).read_text()
        assert "http" not in text
        assert "file:" not in text
        assert "-i " not in text


def test_ci_installs_and_runs_the_commands_in_the_readme() -> None:
    script = (ROOT / ".ci/run").read_text()
    assert script.endswith("\nmake test${DEEP:+-deep}\n")
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    assert not [line for line in (script + workflow).splitlines() if "NEWEST" in line or line.startswith("export ")]
    assert "pip install" not in workflow, "pip would choose versions itself"
