#!/usr/bin/env bash
# Downloads the JSON schema of SARIF 2.1.0 that the tests validate against, into .cache/sarif-2.1.0.json. Needs npm.
set -euo pipefail
cd "$(dirname "$0")/.."
target=.cache/sarif-2.1.0.json
[ -e "$target" ] && exit 0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(cd "$folder" && npm pack --silent @microsoft/jest-sarif@1.0.0-beta.0 > /dev/null && tar xzf ./*.tgz)
mkdir -p .cache
mv "$folder/package/lib/schemas/sarif-2.1.0-rtm.5.json" "$target"
