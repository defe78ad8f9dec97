"""Tests of what actions would save."""

from __future__ import annotations

from rocwheel.report.savings import MeasuredCode, find_savings
from rocwheel.report.values import Action, FileFacts, Part, Saving

TEXT = FileFacts(package=0, component="doc", path="a.txt", size=10, packed=4)
KERNELS = FileFacts(
    package=0, component="kernels", path="k_gfx906.dat", size=100, packed=50, parts=(Part("gfx906", 100, 50),)
)
LIBRARY = FileFacts(
    package=0,
    component="lib",
    path="lib.so",
    size=1000,
    packed=500,
    parts=(Part("", 200, 100), Part("gfx90a:xnack+", 400, 200), Part("gfx906", 400, 200)),
)
CODE = MeasuredCode(
    host=200, host_packed=60, bundles=800, compressed=300, archived={"gfx90a:xnack+": 90, "gfx906": 110}, measured=800
)


def test_each_action_leaves_what_it_is_for_of_the_same_whole() -> None:
    """Of 600 packed bytes, 46 are those of headers: these stay."""
    gpus = ["gfx906", "gfx90a"]
    found = find_savings([TEXT, KERNELS, LIBRARY], {2: CODE}, gpus, packed=600, is_estimated=False)
    assert found is not None
    assert (found.measured, found.of, found.is_estimated) == (800, 800, False)
    assert found.rows == (
        Saving(Action.COMPRESS, "", 1110, 10 + 100 + 500, 600, 46 + 4 + 50 + 360),
        Saving(Action.SPLIT, "gfx906", 1110, 10 + 100 + 310, 600, 46 + 4 + 50 + 170),
        Saving(Action.PRUNE, "gfx906", 1110, 10 + 100 + 600, 600, 46 + 4 + 50 + 60 + 220),
        Saving(Action.SPLIT, "gfx90a", 1110, 10 + 0 + 290, 600, 46 + 4 + 0 + 150),
        Saving(Action.PRUNE, "gfx90a", 1110, 10 + 0 + 600, 600, 46 + 4 + 0 + 60 + 220),
    )


def test_generic_code_is_kept_for_the_gpus_that_it_covers() -> None:
    file = FileFacts(
        package=0, component="lib", path="a", size=30, parts=(Part("gfx11-generic", 20), Part("gfx906", 10))
    )
    found = find_savings([file], {}, ["gfx1100", "gfx906"], packed=None, is_estimated=True)
    assert found is not None
    assert found.rows == (
        Saving(Action.PRUNE, "gfx1100", 30, 20, None, None),
        Saving(Action.PRUNE, "gfx906", 30, 10, None, None),
    )


def test_without_device_code_there_is_nothing_to_save() -> None:
    assert find_savings([TEXT], {}, [], packed=4, is_estimated=False) is None


def test_what_would_pack_worse_counts_as_a_loss() -> None:
    worse = MeasuredCode(host=200, host_packed=450, bundles=800, compressed=300, archived={}, measured=800)
    found = find_savings([LIBRARY], {0: worse}, [], packed=500, is_estimated=False)
    assert found is not None
    assert found.rows == (Saving(Action.COMPRESS, "", 1000, 500, 500, 750),)
