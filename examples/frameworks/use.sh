#!/bin/bash
# Runs inside the chroot, called by in-chroot.sh: an environment with the frameworks, and each probe under LD_DEBUG=libs.
#
#   use.sh WORK      fills WORK/traces: PROBE.json with what the probe tells, PROBE.libs with what the loader tells
set -euo pipefail
mkdir -p "$1/traces"
cd "$1"
if [ -n "${LD_LIBRARY_PATH:-}" ]; then echo "use.sh: LD_LIBRARY_PATH is set" >&2; exit 1; fi

python3 -m venv env
install=(env/bin/pip install --quiet --no-index --no-cache-dir --no-compile)
"${install[@]}" --find-links /mnt/wheels --find-links /mnt/dist /mnt/repaired/jax_rocm7_*.whl jax
# Without torch, which bitsandbytes requires; what it requires of ROCm is there by now.
"${install[@]}" --no-deps /mnt/repaired/bitsandbytes-*.whl
env/bin/pip list

probe() { # NAME [STAND-INS]
    local trace=traces/$1
    LD_PRELOAD=${2:-} LD_DEBUG=libs LD_DEBUG_OUTPUT=$trace.ld env/bin/python /mnt/probes/probes.py "$1" >"$trace.json"
    cat "$trace".ld.* >"$trace.libs"
    rm "$trace".ld.*
    cat "$trace.json"
}
for name in jax jax-extensions jax-client bitsandbytes; do probe "$name"; done

# With stand-ins for the libraries that Debian lacks, whose functions do nothing and return 0, the plugin shows whether it
# finds all others, and comes as far as the missing GPU.
plugin=$(env/bin/python /mnt/probes/probes.py --pjrt)
absent=$(env/bin/python /mnt/probes/probes.py --absent)
if [ -n "$absent" ]; then
    stand_ins=""
    for soname in $absent; do
        gcc -shared -x c /dev/null -Wl,-soname,"$soname" -o "$soname"
        stand_ins="$stand_ins $PWD/$soname"
    done
    # Who has undefined functions is known by now; they all go to the last one.
    LD_PRELOAD=${stand_ins# } ldd -r "$plugin" 2>&1 | sed -n 's/^undefined symbol: \([A-Za-z0-9_]*\).*/long \1(void) { return 0; }/p' |
        sort -u >functions.c
    gcc -shared -fPIC functions.c -Wl,-soname,"$soname" -o "$soname"
    probe jax-client-with-stand-ins "${stand_ins# }"
fi
