#!/usr/bin/env bash
# Makes Debian packages for one GPU each out of packages whose libraries have device code for several: of librocrand1 come
# librocrand1 without device code, and librocrand1-gfx906, librocrand1-gfx90a ... with an archive for each library.
# Usage: split-debs.sh DEST PACKAGE.deb...   Needs rocwheel on PATH and dpkg-dev; no root.
set -euo pipefail
dest=$(realpath -m "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# field NAME CONTROL: the value of a field, its further lines included.
field() { awk -v name="$1:" 'index($0, name) == 1 { sub(/^[^:]*: */, ""); print; on = 1; next } /^[^ \t]/ { on = 0 } on' "$2"; }

# without NAMES CONTROL: all other fields.
without() { awk -v names="$1" '/^[^ \t]/ { on = (" " names " ") !~ (" " substr($0, 1, index($0, ":") - 1) " ") } on' "$2"; }

# build FOLDER: md5sums and the installed size, then the package, under its standard name.
build() {
    (cd "$1" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0r md5sum > DEBIAN/md5sums)
    echo "Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$1" | cut -f1)" >> "$1/DEBIAN/control"
    find "$1" -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group --build "$1" "$dest" >/dev/null
}

mkdir -p "$dest"
for deb in "$@"; do
    rm -rf "$work"/*
    dpkg-deb --raw-extract "$deb" "$work/whole"
    control=$work/control
    mv "$work/whole/DEBIAN" "$work/scripts"
    cp --preserve=timestamps "$work/scripts/control" "$control"
    # The same input gives the same bytes: nothing is newer than the package was.
    export SOURCE_DATE_EPOCH
    SOURCE_DATE_EPOCH=$(stat --format %Y "$control")
    name=$(field Package "$control") version=$(field Version "$control") architecture=$(field Architecture "$control")
    libraries=usr/lib/$(dpkg-architecture --host-arch "$architecture" --query DEB_HOST_MULTIARCH 2>/dev/null)

    # Archives lie below usr/, where packages may have files; the libraries' markers lead there.
    rocwheel device split --quiet "$work/whole" --archives "$libraries/rocm-kpack" --output "$work/split"
    targets=$(cd "$work/split" && find . -mindepth 1 -maxdepth 1 -type d ! -name host -printf '%f\n' | sort -V)
    if [ -z "$targets" ]; then
        echo "$name: no library with device code that can be split: copied" >&2
        cp "$deb" "$dest"
        continue
    fi

    # The host's package keeps its scripts, triggers (ldconfig), shlibs and symbols: its libraries are where they were.
    mv "$work/scripts" "$work/split/host/DEBIAN"
    {
        without "Installed-Size Recommends" "$control"
        printf 'Recommends: %s\n' "$(field Recommends "$control" | sed 's/$/, /' | tr -d '\n')$name-device"
    } > "$work/split/host/DEBIAN/control"
    build "$work/split/host"

    # A GPU's package has no library, so it needs neither triggers nor shlibs. GPUs go together: their files differ.
    for target in $targets; do
        package=$name-${target//_/-}
        mkdir -p "$work/split/$target/DEBIAN" "$work/split/$target/usr/share/doc"
        ln -s "$name" "$work/split/$target/usr/share/doc/$package"
        {
            printf 'Package: %s\nVersion: %s\nArchitecture: %s\n' "$package" "$version" "$architecture"
            printf 'Source: %s\n' "$(field Source "$control" | grep . || echo "$name")"
            printf 'Maintainer: %s\nSection: %s\nPriority: optional\n' \
                "$(field Maintainer "$control")" "$(field Section "$control" | grep . || echo libs)"
            printf 'Depends: %s (= %s)\nProvides: %s-device (= %s)\n' "$name" "$version" "$name" "$version"
            multi=$(field Multi-Arch "$control")
            [ -z "$multi" ] || printf 'Multi-Arch: %s\n' "$multi"
            printf 'X-ROCm-GPU-Architecture: %s\n' "$target"
            printf 'Description: %s - device code for %s\n' "$(field Description "$control" | head -1)" "$target"
            printf ' The code that the libraries of %s load on GPUs of the target %s.\n' "$name" "$target"
        } > "$work/split/$target/DEBIAN/control"
        build "$work/split/$target"
    done
    echo "$name: $(wc -w <<< "$targets") packages for GPUs: $(xargs <<< "$targets")" >&2
done
