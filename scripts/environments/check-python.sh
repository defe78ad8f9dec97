#!/bin/sh
# Tells by the exit status whether a Python starts here, with what pip and the packages need of its standard library.
#
#   check-python.sh PYTHON
set -eu
"$1" -c 'import ctypes, hashlib, ssl, venv, zlib'
