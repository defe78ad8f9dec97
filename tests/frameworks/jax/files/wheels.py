"""Builds wheels for several Pythons by lists of arguments; a text of the project's own."""

import os
import subprocess


def find_clang():
    return "/usr/lib/llvm-18/bin/clang"


def build(folder, rocm_path, version, output, xla_path=None, rbe=False, compiler="gcc", wheels="jax-rocm-plugin"):
    use_clang = compiler == "clang"
    command = [
        "python",
        "build/build.py",
        "build",
        "--wheels=%s" % wheels,
        "--rocm_path=%s" % rocm_path,
        f"--rocm_version={version[0]}",
        "--use_clang=%s" % use_clang,
        "--verbose",
        "--output_path=" + output,
        "--bazel_options=--define=xla_rocm_profiler=v1",
    ]
    if use_clang:
        clang_path = find_clang()
        if clang_path:
            command.append("--clang_path=%s" % clang_path)
    if xla_path:
        command.append("--bazel_options=--override_repository=xla=%s" % xla_path)
    if rbe:
        command.extend(["--rbe"])
    subprocess.run(command, cwd=folder, env=dict(os.environ, JAX_RELEASE="1"), check=True)


def build_jaxlib(folder):
    subprocess.run(["python", "build/build.py", "build", "--wheels=jaxlib"], cwd=folder, check=True)


def in_container(folder, pythons):
    command = ["python3", "build/rocm/ci_build", "--python-versions=%s" % ",".join(pythons), "dist_wheels"]
    subprocess.check_call(command, cwd=folder)


def main():
    build(".", "/opt/rocm", "7.2", "out", wheels="jax-rocm-pjrt")
    for _ in ("3.11", "3.12"):
        build(".", "/opt/rocm", "7.2", "out")
