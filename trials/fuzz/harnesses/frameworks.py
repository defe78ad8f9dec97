"""What frameworks give: calls of JAX's old build, descriptions of wheels, Bazel's lists, run paths to spell."""

from __future__ import annotations

import shlex
from contextlib import suppress

from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.environment.link_flags import TOOLS, cmake_arguments, ldflags_setting, spell_run_path
from rocwheel.frameworks.jax.settings import read_settings
from rocwheel.frameworks.jax.starlark import read_rule_call
from rocwheel.frameworks.jax.translate import translate
from rocwheel.frameworks.jax.words import mark_variables
from rocwheel.frameworks.wheel_draft import read_runfiles_manifest, read_source_list
from rocwheel.frameworks.wheel_spec import make_spec, read_spec
from rocwheel.wheels.requirements import read_build_requires
from trials.fuzz.harness import Harness, require
from trials.fuzz.seeds.files import on_disk

_COMMAND = b"HERMETIC_PYTHON_VERSION=3.12 python3 build/build.py build --wheels=jax-rocm-plugin --clang_path=/c"
_SPEC = b"""schema = 1
name = "demo-{suffix}"
version = "{version}"
summary = "A demonstration"
requires = ["rocm{pair}"]
files = [{ from = "a.so", to = "demo/" }]
[values]
suffix = "x"
version = "1.0"
[stamp]
[entry-points.console_scripts]
demo = "demo:main"
"""


def _old_command(data: bytes) -> None:
    try:
        words = shlex.split(data.decode(errors="replace"))
    except ValueError:  # quotes that don't end are the shell's business
        return
    translate([mark_variables(word) for word in words])


def _rule_call(data: bytes) -> None:
    words = [word for word in data.decode(errors="replace").split("\n") if not word.startswith("@")]
    read_rule_call(words)


def _spec(data: bytes) -> None:
    path = on_disk(data, "wheel.toml")
    make_spec(read_spec(path), {}, source="input")


def _settings(data: bytes) -> None:
    read_settings(on_disk(data, "rocm.toml"))


def _lists(data: bytes) -> None:
    path = on_disk(data, "MANIFEST")
    with suppress(InputError):
        read_source_list(path)
    with suppress(RocwheelError):
        read_build_requires(on_disk(data, "pyproject.toml"))
    read_runfiles_manifest(path)


def _run_path(data: bytes) -> None:
    """Spell lines as a run path for every tool; a shell and Python get back what was meant."""
    entries = data.decode(errors="replace").split("\n")
    for tool in TOOLS:
        spell_run_path(entries, tool)
    words = shlex.split(spell_run_path(entries, "shell"))
    require(words[-1:] == [f"-Wl,-rpath,{':'.join(entries)}"], f"a shell reads {words}")
    cmake_arguments(entries)
    ldflags_setting(entries)


_SHELL = (
    b"$(",
    b"${",
    b"<<EOF\n",
    b"`",
    b"'",
    b'"',
    b" \\\n",
    b"build/build.py ",
    b"if ",
    b"fi\n",
    b"case ",
    b"esac",
    b"&&",
)
_TOML = (b"[[", b"{version}", b"{", b"}", b"nan", b"1979-05-27", b'"\\u0000"', b"[values]\n", b"schema = 1\n")
_NESTED = b"a = " + b"[" * 60000
_RULE = b"--output_path=out\n--cpu=x86_64\n--platform_version=7\n--enable-rocm=True\n--srcs=a/b.so"

HARNESSES = (
    Harness("frameworks.old_command", _old_command, lambda: [_COMMAND], tokens=(b"--", b"=", *_SHELL), largest=2000),
    Harness("frameworks.rule_call", _rule_call, lambda: [_RULE], tokens=(b"--", b"=", b"\n"), largest=2000),
    Harness("frameworks.wheel_spec", _spec, lambda: [_SPEC, _NESTED], tokens=_TOML),
    Harness(
        "frameworks.settings",
        _settings,
        lambda: [b'schema = 1\ncompiler = "/usr/bin/gcc"\ntargets = ["gfx942"]\npython-versions = ["3.12"]\n', _NESTED],
        tokens=_TOML,
    ),
    Harness(
        "frameworks.lists",
        _lists,
        lambda: [b"a/b /x/b\n c\\sd /x\\nb\nempty \n", _NESTED],
        tokens=(b"\\s", b"\\b", b"\n "),
    ),
    Harness(
        "frameworks.run_path",
        _run_path,
        lambda: [b"$ORIGIN\n$ORIGIN/../lib", b"/opt/rocm/lib"],
        tokens=(b"$$", b"%", b"*", b"!", b"~"),
    ),
)
"""See `trials.fuzz.harness.Harness`."""
