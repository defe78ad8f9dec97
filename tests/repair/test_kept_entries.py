"""Run path entries that a repair leaves for packages that are not at hand."""

from __future__ import annotations

import pytest

from rocwheel.installed.environments import split_environments
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.plan import RepairPlanner
from tests.support.trees import data, library, package, tree

CORE = "$ORIGIN/../_rocm_sdk_core/lib"
GUESSES = f"{CORE}:$ORIGIN/../nvidia/lib:$ORIGIN/../jaxlib/lib"


def notes(*others: str, requires: tuple[str, ...] = ("jaxlib", "rocm-sdk-core==7.2"), run_path: str = GUESSES) -> str:
    files = [
        library("demo/a.so", "libamdhip64.so.7", runpath=run_path, imports_dlopen=True),
        library("demo/b.so", "libamdhip64.so.7", runpath=CORE),
    ]
    made = tree((package(requires=requires), files), *((package(name), [data(f"{name}/lib/x")]) for name in others))
    return " ".join(RepairPlanner(split_environments(made), RepairOptions()).plan(made.distributions[0]).notes)


def test_entries_that_stay_for_packages_not_at_hand_are_told() -> None:
    assert notes() == (
        "kept 2 run path entries in 1 files that lead to folders of packages not at hand, if to any: "
        "give what the wheel requires --with to have only right ones stay (jaxlib)"
    )


@pytest.mark.parametrize(
    ("others", "requires", "run_path"),
    [
        (("jaxlib",), ("jaxlib", "rocm-sdk-core==7.2"), GUESSES),
        ((), ("rocm-sdk-core==7.2",), GUESSES),
        ((), ("jaxlib", "rocm-sdk-core==7.2"), CORE),
    ],
    ids=["at hand", "none required", "none that leads elsewhere"],
)
def test_nothing_is_told_where_only_right_entries_stay(
    others: tuple[str, ...], requires: tuple[str, ...], run_path: str
) -> None:
    assert notes(*others, requires=requires, run_path=run_path) == ""
