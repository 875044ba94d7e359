#!/bin/sh
# What is released, tried as whoever installs it meets it: built, checked, and installed out of the
# wheel into an empty environment of every Python that is here, where it makes its demo.
#
#   tests/release.sh [DIST]     the folder for sdist and wheel, made anew: dist
#
# PYTHONS names the interpreters; by default 3.11 to 3.14, as far as they are found.
set -eu
cd "$(dirname "$0")/.."
out=${1:-dist}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1

${PYTHON:-python3} -m venv "$work/build"
"$work/build/bin/python" -m pip install --quiet build twine
rm -rf "$out"
"$work/build/bin/python" -m build --outdir "$out" . >"$work/build.log" 2>&1 || { cat "$work/build.log" >&2; exit 1; }
"$work/build/bin/python" -m twine check --strict "$out"/*

tried=0
for python in ${PYTHONS:-python3.11 python3.12 python3.13 python3.14}; do
  "$python" -c "" 2>/dev/null || { echo "$python: not here, not tried"; continue; }
  env=$work/$(basename "$python")
  "$python" -m venv "$env"
  "$env/bin/python" -m pip install --quiet --upgrade pip
  "$env/bin/python" -m pip install --quiet "$out"/*.whl
  "$env/bin/python" -m pip check
  # From another folder, as the checkout has a package of that name.
  (cd "$work" && "$env/bin/omnidata" --version && "$env/bin/omnidata" demo --out "$env/demo" >"$work/demo.log" 2>&1) ||
    { cat "$work/demo.log" >&2; exit 1; }
  tail -n 1 "$work/demo.log"
  rm -rf "$env"
  tried=$((tried + 1))
done
[ "$tried" -gt 0 ] || { echo "no Python to try it with" >&2; exit 1; }
echo "$out: good with $tried"
