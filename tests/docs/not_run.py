"""Why examples of pages are left out, in the order of the page, which has the same text before each."""

from __future__ import annotations

__all__ = ["NOT_RUN"]

NOT_RUN = {
    "README.md": [
        "tests run in the environment that make setup made",
        "it ends the environment",
    ],
    "docs/artifacts.md": [
        "there are no such stores",
        "it needs builds for two families",
    ],
    "docs/audit.md": [
        "it needs the wheel of a framework",
    ],
    "docs/cache.md": [
        "it needs a cluster",
        "it needs a cluster",
        "it needs several machines",
        "it needs Slurm",
        "it needs Kubernetes",
    ],
    "docs/commands.md": [
        "it needs a network",
    ],
    "docs/debian.md": [
        "make debian runs it, on Debian's packages",
        "make debian runs it, on Debian's packages",
    ],
    "docs/device-code.md": [
        "the sample SDK has no static library with device code",
    ],
    "docs/diff.md": [
        "it needs two builds",
    ],
    "docs/trust.md": [
        "it installs releases of Debian",
    ],
    "docs/index.md": [
        "tests run in the environment that make setup made",
    ],
    "docs/install.md": [
        "tests run in the environment that make setup made",
    ],
    "docs/jax-migration.md": [
        "it needs a checkout of rocm-jax",
        "it needs checkouts of XLA and rocm-jax",
    ],
    "docs/jax.md": [
        "the tutorial of the framework builder runs it, but for build.sh, which needs Bazel",
        "it needs a checkout of JAX",
        "it needs a checkout of JAX",
        "it needs a checkout of JAX",
        "it needs an environment with JAX",
    ],
    "docs/mirror.md": [
        "the commands install into the environment that they are run in",
        "the host does not exist",
        "the host does not exist",
        "the packages are several gigabytes",
        "the commands install into the environment that they are run in",
    ],
    "docs/mistakes.md": [
        "tests install it; tests/docs/test_mistakes.py hides it",
    ],
    "docs/publish.md": [
        "a server does not end",
        "nothing is wrong with the sample",
        "it needs a bucket",
        "the sample SDK is not built per family",
    ],
    "docs/release.md": [
        "it needs an index with such a rocm",
        "it needs builds of two systems",
    ],
    "docs/repair.md": [
        "it needs a published wheel of JAX",
    ],
    "docs/runpath.md": [
        "it needs an extension that is built",
        "it needs an extension that is built",
    ],
    "docs/sdk.md": [
        "the tutorial of the end user runs it",
    ],
    "docs/split.md": [
        "it needs Debian's libraries",
        "it needs a wheel of torch",
        "it needs Debian's libraries",
    ],
    "docs/targets.md": [
        "the sample SDK has no device code for similar GPUs",
        "it needs a wheel of torch",
        "it needs a wheel of torch",
        "it needs a machine with a GPU",
    ],
    "docs/torch.md": [
        "needs a ROCm with a compiler; examples/hip-extension/run.sh does",
    ],
    "docs/tutorials/end-user.md": [
        "the sample SDK's compiler compiles nothing",
    ],
    "docs/variants.md": [
        "it takes a published index",
    ],
    "docs/verify.md": [
        "it signs as somebody",
    ],
    "docs/windows.md": [
        "it needs a build for Windows",
        "it needs builds for both",
        "it needs such an index",
    ],
}
