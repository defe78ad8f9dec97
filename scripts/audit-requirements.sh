#!/usr/bin/env bash
# Asks PyPI's advisories for known vulnerabilities of what .ci/requirements.txt names. An index other than PyPI may know no
# package at all: then nothing was checked, and that is said with status 3 rather than taken for good news.
# Usage: audit-requirements.sh BIN, where BIN has pip-audit.
set -euo pipefail
cd "$(dirname "$0")/.."
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT
status=0
"$1/pip-audit" --require-hashes --disable-pip --requirement .ci/requirements.txt --progress-spinner off \
  --format json --output "$answer" || status=$?
"$1/python" - "$answer" "$status" <<'END'
import json
import sys
from pathlib import Path

text = Path(sys.argv[1]).read_text(encoding="utf-8")
packages = json.loads(text)["dependencies"] if text else []
unknown = [package["name"] for package in packages if "skip_reason" in package]
faulty = {package["name"]: [fault["id"] for fault in package["vulns"]] for package in packages if package.get("vulns")}
for name, faults in faulty.items():
    print(f"{name}: {', '.join(faults)}", file=sys.stderr)
checked = len(packages) - len(unknown)
print(f"{checked} of {len(packages)} packages checked, {len(faulty)} with known vulnerabilities", file=sys.stderr)
if not checked:
    print("Nothing was checked: no advisories can be reached from here. Run it where pypi.org answers.", file=sys.stderr)
    sys.exit(3)
sys.exit(1 if faulty else int(sys.argv[2]))
END
