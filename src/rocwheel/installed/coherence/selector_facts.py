"""What the sdist that chooses packages for a machine requires, read from its ``_build_info.py`` without running it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.core.decoding import parse_python
from rocwheel.core.errors import InputError
from rocwheel.installed.coherence.carriers import WheelFacts, read_requirements
from rocwheel.wheels.requirements import read_requirement
from rocwheel.wheels.tar import read_sdist_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["find_selectors", "parse_literals", "read_selector_facts"]


class _BuildInfo(msgspec.Struct, frozen=True, rename="upper"):
    """The literals about requirements; ``src/rocwheel/sdk/README.md`` describes each."""

    version: str
    layout: str
    families: dict[str, object]
    packages: dict[str, dict[str, str]]
    requires: list[str]
    extras: dict[str, list[tuple[str, str]]]
    selected: dict[str, str]


def find_selectors(folders: Iterable[Path]) -> list[Path]:
    """Return the sdists below ``folders`` that choose packages; others say nothing about GPUs until they are built."""
    paths = [path for folder in folders for path in sorted(folder.rglob("*.tar.gz")) if path.is_file()]
    return [path for path in paths if _read_build_info(path)]


def read_selector_facts(path: Path) -> WheelFacts:
    """Return what the sdist requires for any of the GPUs that its release has packages for.

    Raises `InputError` for another sdist and for a damaged file.
    """
    text = _read_build_info(path)
    if not text:
        raise InputError(path, "has no rocm_sdk/_build_info.py", expected="a wheel, or the sdist of rocm")
    try:
        info = msgspec.convert(parse_literals(text), _BuildInfo)
        facts = _facts(path, info)
    except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError) as e:
        raise InputError(path, f"its _build_info.py can't be read ({e})", remedy="Build or fetch it again.") from e
    read_requirements(facts.path, facts.requirements)
    return facts


def _facts(path: Path, info: _BuildInfo) -> WheelFacts:
    chosen = {
        extra: [text.replace("{family}", family) for family in info.families] for extra, text in info.selected.items()
    }
    by_extra = [(extra, text, marker) for extra, pairs in info.extras.items() for text, marker in pairs]
    by_extra += [(extra, text, "") for extra, texts in chosen.items() for text in texts]
    alternatives = {read_requirement(text).name for texts in chosen.values() for text in texts}
    return WheelFacts(
        str(path),
        canonicalize_name(info.packages["meta"]["dist"]),
        (*info.requires, *(_conditional(*row) for row in by_extra)),
        (),
        frozenset(),
        info.version,
        # In the neutral layout, device packages complete the libraries that all GPUs share.
        frozenset(map(canonicalize_name, alternatives)) if info.layout == "per-family" else frozenset(),
    )


def _conditional(extra: str, requirement: str, marker: str) -> str:
    condition = f"({marker}) and " if marker else ""
    return f"{requirement}; {condition}extra == '{extra}'"


def parse_literals(text: bytes) -> dict[str, Any]:
    """Return what a module of literals assigns, without running it.

    Raises `SyntaxError`, `ValueError`, `RecursionError` or `MemoryError` for any other text.
    """
    statements = [node for node in parse_python(text).body if isinstance(node, ast.Assign)]
    named = {target.id: node.value for node in statements for target in node.targets if isinstance(target, ast.Name)}
    try:
        return {name: ast.literal_eval(value) for name, value in named.items()}
    except TypeError as e:  # a set within a set, a list as a key
        raise ValueError(str(e)) from e


def _read_build_info(path: Path) -> bytes:
    """Return the module's text, empty for an sdist without one."""
    return (
        read_sdist_file(path, "src/rocm_sdk/_build_info.py") or read_sdist_file(path, "rocm_sdk/_build_info.py") or b""
    )
