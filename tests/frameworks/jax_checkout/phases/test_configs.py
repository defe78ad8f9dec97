"""Lines of the workspace's own configs that the fragment says again."""

from __future__ import annotations

import pytest

from rocwheel.frameworks.jax_checkout.checkout import Checkout, SourceFile
from rocwheel.frameworks.jax_checkout.editing.draft import Draft
from rocwheel.frameworks.jax_checkout.phases.configs import drop_overridden
from rocwheel.frameworks.jax_checkout.phases.plan import Plan
from rocwheel.frameworks.jax_checkout.phases.prepare import FRAGMENT
from rocwheel.frameworks.jax_checkout.reading.structure import Structure

KEPT = (
    "build:rocm_base --config=clang_local\n"
    "build:rocm_base --define=using_rocm=true --define=mine=1\n"
    "build:rocm --action_env=TF_ROCM_CLANG=1\n"
    "build:other --action_env=CLANG_COMPILER_PATH=/old\n"
)
DROPPED = 'build:rocm --action_env CLANG_COMPILER_PATH="/old"\nbuild:rocm_base --define=using_rocm=true\n'
SETTINGS = (
    "build:rocm_build --config=rocm\nbuild:rocm_build --action_env=CLANG_COMPILER_PATH=/new\n"
    "build:rocm_build --repo_env=TF_ROCM_CLANG=1\nbuild:rocm_build --define=using_rocm=true\n"
)


def after(**files: str) -> str:
    texts = {".bazelrc": KEPT + DROPPED, FRAGMENT: SETTINGS, **files}
    draft = Draft(Checkout({path: SourceFile(text) for path, text in texts.items()}))
    drop_overridden(Plan(draft, Structure(".bazelrc", *[""] * 6), {}, ""))
    return draft.text(".bazelrc")


def test_what_the_fragment_sets_in_the_same_way_goes() -> None:
    assert after() == KEPT


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("test.sh", "bazel test --config=rocm //...\n"),
        ("rbe.bazelrc", "build:rocm_rbe --config=rocm_base\n"),
        ("a.py", 'run(["--config=rocm"])\n'),
    ],
)
def test_it_stays_while_something_builds_by_these_configs(path: str, text: str) -> None:
    assert after(**{path: text}) == KEPT + DROPPED


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("README.md", "bazel test --config=rocm\n"),
        ("jax_rocm_plugin/third_party/jax/0001.patch", "+bazel test --config=rocm //...\n"),
        ("test.sh", "# bazel test --config=rocm\nbazel test --config=rocm_build --config=rocm_rbe\n"),
        ("rbe.bazelrc", "# --config=rocm\nbuild:rocm_rbe --jobs=1\n"),
    ],
)
def test_other_words_are_no_use(path: str, text: str) -> None:
    assert after(**{path: text}) == KEPT
