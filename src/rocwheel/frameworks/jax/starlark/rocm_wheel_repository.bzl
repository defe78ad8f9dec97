"""A repository that passes the settings of ROCm wheels from --repo_env to BUILD files.

* ROCM_WHEEL_RPATH: run path entries, separated by colons: $SITE_PACKAGES/FOLDER (a folder of an installed package,
  from whatever folder the library itself is installed in), $ORIGIN/FOLDER, or an absolute folder.
* ROCM_WHEEL_RPATH_TAG: `runpath` (LD_LIBRARY_PATH comes first; the default) or `rpath` (it comes last).
* ROCM_WHEEL_COMMITS: REPOSITORY=COMMIT pairs, separated by commas, for commit_info.py.

A malformed value fails the fetch, not the user's import.
"""

_PATH = "ROCM_WHEEL_RPATH"
_TAG = "ROCM_WHEEL_RPATH_TAG"
_COMMITS = "ROCM_WHEEL_COMMITS"
_TOKENS = ["$ORIGIN", "$SITE_PACKAGES"]
_NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
_ASCII = _NAME_CHARACTERS + "!#$%&()*+-./;<=>?@[]^{|}~"

def _entry_fault(entry):
    token = entry.split("/")[0] if entry.startswith("$") else ""
    if not entry:
        return "is empty, which the loader takes for the folder that a program runs in"
    if entry.startswith("/..") or entry.startswith("/_rocm_sdk"):
        return "looks like $ORIGIN or $SITE_PACKAGES expanded by a shell; put it into single quotes, or into .bazelrc"
    if entry.startswith("$$"):
        return "has its $ doubled, which --repo_env does not undo"
    if token and token not in _TOKENS:
        return "begins with %s; expected $SITE_PACKAGES or $ORIGIN" % token
    if "$" in entry[len(token):]:
        return "has a $ elsewhere than at its beginning"
    if "," in entry:
        return "has a comma, at which the compiler would part it"
    for character in [" ", "\t", "\n", "'", '"', "\\", "`"]:
        if character in entry:
            return "has a blank, a quote or a backslash, at which Bazel would part or change the linker's option"
    if [character for character in entry.elems() if character not in _ASCII]:
        return "has a character that is no printable ASCII, which Bazel would write as another"
    if not token and not entry.startswith("/"):
        return "is relative; expected $SITE_PACKAGES/FOLDER, $ORIGIN/FOLDER or an absolute folder"
    return None

def _entries(value):
    entries = value.split(":") if value else []
    for entry in entries:
        fault = _entry_fault(entry)
        if fault:
            fail("%s=%s: the entry %r %s." % (_PATH, value, entry, fault))
    if len(entries) != len({entry: None for entry in entries}):
        fail("%s=%s: an entry occurs twice." % (_PATH, value))
    return entries

def _tag(value):
    if value not in ["rpath", "runpath"]:
        fail("%s=%s: expected rpath or runpath." % (_TAG, value))
    return value

def _commits(value):
    commits = {}
    for pair in value.split(",") if value else []:
        name, equals, commit = pair.rpartition("=")
        digits = commit.strip("0123456789abcdef")
        strange = [character for character in name.elems() if character not in _NAME_CHARACTERS + "./-"]
        if not name or not equals or strange or digits or len(commit) < 7 or len(commit) > 64:
            fail("%s=%s: %r isn't REPOSITORY=COMMIT with 7 to 64 hexadecimal digits." % (_COMMITS, value, pair))
        if commits.get(name, commit) != commit:
            fail("%s=%s: has two commits for %s." % (_COMMITS, value, name))
        commits[name] = commit
    return commits

def _rocm_wheel_repository_impl(repository_ctx):
    environ = repository_ctx.os.environ
    values = {
        "WHEEL_RUN_PATH": _entries(environ.get(_PATH, "")),
        "WHEEL_RUN_PATH_TAG": _tag(environ.get(_TAG, "runpath")),
        "WHEEL_COMMITS": _commits(environ.get(_COMMITS, "")),
    }
    repository_ctx.file("BUILD.bazel", "")
    repository_ctx.file("defs.bzl", "".join(["%s = %r\n" % (name, values[name]) for name in sorted(values)]))

rocm_wheel_repository = repository_rule(
    implementation = _rocm_wheel_repository_impl,
    environ = [_PATH, _TAG, _COMMITS],
    doc = "Settings of ROCm wheels from --repo_env. Name it rocm_wheel.",
)
