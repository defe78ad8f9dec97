#!/bin/sh
# Installs rocwheel itself from the wheels in /mnt/dist with a Python and uses it. The last line that begins with == names
# the step that failed.
#
#   check-tool.sh PYTHON
set -eu
step() { printf '== %s\n' "$*"; }

step "venv"
"$1" -m venv env
step "pip install"
env/bin/pip install --quiet --no-index --find-links /mnt/dist rocwheel
step "rocwheel demo"
env/bin/rocwheel demo --dest-dir demo
step "rocwheel inspect"
env/bin/rocwheel inspect --quiet --json demo/dist >facts.json
env/bin/python -m json.tool facts.json /dev/null
