#!/bin/bash
# Downloads the packages of packages.txt from sid or experimental, with all that they depend on, without installing any.
# What apt chose is kept in FOLDER/RELEASE.list: a second run with the same packages.txt downloads and asks nothing.
#
#   download.sh sid|experimental FOLDER      fills FOLDER/RELEASE
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
release=$1
mkdir -p "$2/$release/partial"
folder=$(cd "$2" && pwd)
list=$folder/$release.list
apt=(sh "$here/apt.sh" "$folder/apt")

names=$(sed "/^#/d; s/^\[$release\] *//; /^\[/d" "$here/packages.txt")
asked="# $(printf '%s' "$names" | sha256sum)"

is_complete() {
    [ -f "$list" ] && [ "$(head -n 1 "$list")" = "$asked" ] || return 1
    for file in $(tail -n +2 "$list"); do [ -f "$folder/$release/$file" ] || return 1; done
}
if is_complete; then exit 0; fi

[ -n "$(find "$folder/apt/lists" -name '*_Packages*' -mtime -1 2>/dev/null)" ] || "${apt[@]}" -q update
solve=(-q -y -t "$release" --no-install-recommends)
"${apt[@]}" "${solve[@]}" -qq --print-uris install $names >"$list.uris"
"${apt[@]}" "${solve[@]}" --download-only -o Dir::Cache::archives="$folder/$release" install $names >"$list.log" ||
    { cat "$list.log"; exit 1; }
{ echo "$asked"; awk '{ print $2 }' "$list.uris" | sort; } >"$list"
rm "$list.uris" "$list.log"
is_complete
