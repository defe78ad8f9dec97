"""Packages are built, indexed, published and promoted."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING

from tests.support.wheels import make_wheel
from trials.faults.case import Case
from trials.faults.cases.inputs import add_wheel, copy_sample, prepared

if TYPE_CHECKING:
    from pathlib import Path

    from trials.faults.case import Place

__all__ = ["CASES"]

_TIME = "--upload-time=2026-01-01T00:00:00Z"


def _build(place: Place) -> tuple[str | Path, ...]:
    return (
        "build",
        "--artifact-dir",
        place.given,
        "--dest-dir",
        place.out,
        "--default-family",
        "gfx906",
        "--jobs",
        "1",
    )


def _cached(place: Place) -> tuple[str | Path, ...]:
    return (*_build(place), "--cache")


def _fill_cache(place: Place) -> None:
    """Build with a cache, and take what was built away."""
    prepared(place, *_cached(place))
    shutil.rmtree(place.out)


def _index(place: Place) -> tuple[str | Path, ...]:
    return ("index", place.given / "dist", "--output", place.out, "--files", "copy", _TIME)


def _publish(place: Place) -> tuple[str | Path, ...]:
    return ("publish", place.given / "dist", place.out, _TIME)


def _prepare_wheels(place: Place) -> None:
    add_wheel(place.given / "before", "alpha")
    add_wheel(place.given / "before", "gamma")
    shutil.copytree(place.given / "before", place.given / "dist")
    add_wheel(place.given / "dist", "beta")


def _index_before(place: Place) -> None:
    prepared(place, "index", place.given / "before", "--output", place.out, "--files", "copy", _TIME)


def _publish_before(place: Place) -> None:
    prepared(place, "publish", place.given / "before", place.out, _TIME)


def _prepare_candidate(place: Place) -> None:
    make_wheel(place.given, "demo", {"demo.py": b"pass\n"}, version="1.0rc1", tag="py3-none-any", is_purelib=True)


_index_case = partial(
    Case,
    may_leave_out=tuple(f"dist/{name}-1.0-py3-none-any.whl" for name in ("alpha", "beta", "gamma")),
    varies=(".rocwheel-index.json",),
    between=(".rocwheel-index-begun.json",),
)
_NOTES = ("simple/.rocwheel-published.json",)

CASES = (
    Case("build", _build, lambda place: copy_sample(place.given)),
    Case("build-first-cached", _cached, lambda place: copy_sample(place.given)),
    Case("build-cached", _cached, lambda place: copy_sample(place.given), _fill_cache),
    Case(
        "cache-verify",
        lambda _: ("cache", "info", "--verify"),
        lambda p: copy_sample(p.given),
        _fill_cache,
        is_report=True,
    ),
    Case("cache-prune", lambda _: ("cache", "prune", "--max-size", "0"), lambda p: copy_sample(p.given), _fill_cache),
    _index_case("index", _index, _prepare_wheels),
    _index_case("index-again", _index, _prepare_wheels, _index_before),
    Case("publish", _publish, _prepare_wheels, varies=_NOTES),
    Case("publish-again", _publish, _prepare_wheels, _publish_before, varies=_NOTES),
    Case("promote", lambda place: ("promote", place.given, "--to", "1.0", "--output", place.out), _prepare_candidate),
)
