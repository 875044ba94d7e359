#!/bin/sh
# gs:// and az:// over emulators on this machine, in an environment of their own: `make test` has
# neither these nor npm, and skips the tests here.
#
# STORE_ENVS is the folder of the environment, which is kept: by default one below TMPDIR.
set -eu
cd "$(dirname "$0")/../.."
env=${STORE_ENVS:-${TMPDIR:-/tmp}/omnidata-stores}
[ -x "$env/bin/python" ] || ${PYTHON:-python3} -m venv "$env"
"$env/bin/python" -m pip install --quiet --constraint constraints.txt --editable '.[gcs,azure]' \
  gcp-storage-emulator==2026.7.19 hypothesis pytest pytest-xdist
"$env/bin/python" -m pip check
npm install --silent --no-audit --no-fund --prefix "$env" azurite@3.37.0
PATH="$env/node_modules/.bin:$PATH"
export PATH
exec "$env/bin/python" -m pytest -n 0 -W default -p no:cacheprovider tests/stores "$@"
