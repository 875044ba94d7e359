#!/bin/sh
# The harnesses and trainers that omnidata works inside, each in an environment of its own, and the
# tests with it.
# They pull in much and pin what omnidata's own environment has otherwise, so `make test` has none of
# them, where the tests here are skipped.
#
#   tests/harness/run.sh inspect        inspect_ai
#   tests/harness/run.sh lmms           lmms-eval; torch, gigabytes
#   tests/harness/run.sh vlmevalkit     VLMEvalKit; torch, gigabytes
#   tests/harness/run.sh swift          ms-swift; likewise, as all that follow
#   tests/harness/run.sh verl           verl's dataset and rewards, without what serves models
#   EASYR1=FOLDER tests/harness/run.sh easyr1   likewise; a checkout of hiyouga/EasyR1 at b44b311
#
# VLMEvalKit is on no index: VLMEVALKIT is where its repository is cloned from.
# HARNESS_ENVS is the folder of the environments, which are kept: by default one below TMPDIR.
set -eu
cd "$(dirname "$0")/../.."
name=${1:?inspect, lmms, vlmevalkit, swift, verl or easyr1}
shift
env=${HARNESS_ENVS:-${TMPDIR:-/tmp}/omnidata-harness}/$name
case $name in
  inspect) packages="inspect_ai==0.3.285" ;;
  lmms) packages="lmms-eval==0.7.3 torch==2.13.0 filelock<4" ;;
  # It imports rouge-score, and does not say so.
  vlmevalkit) packages="torch==2.13.0 rouge-score" ;;
  swift) packages="ms-swift==4.6.0 torch==2.13.0 qwen_omni_utils decord librosa soundfile" ;;
  # Their own lists bring servers of models and loggers, which no test here opens.
  verl | easyr1) packages="torch==2.13.0 transformers>=5.5.3,<5.11,!=5.6.0 tensordict>=0.8,<=0.10.0,!=0.9.0
    ray hydra-core codetiming torchdata qwen_vl_utils peft accelerate decord soundfile" ;;
  *) echo "no harness is called $name" >&2; exit 2 ;;
esac
[ -x "$env/bin/python" ] || ${PYTHON:-python3} -m venv "$env"
"$env/bin/python" -m pip install --quiet --upgrade pip
if [ "$name" = vlmevalkit ]; then
  # Editable, as its wheel lacks the folders that have no __init__.py.
  [ -d "$env/source" ] ||
    git clone --quiet "${VLMEVALKIT:-https://github.com/open-compass/VLMEvalKit}" "$env/source"
  git -C "$env/source" checkout --quiet e8e78f05f3080fe28154f2130321f17951c3be94
  packages="$packages --editable $env/source"
fi
# shellcheck disable=SC2086
"$env/bin/python" -m pip install --quiet --editable . $packages openpyxl pytest pytest-xdist hypothesis
[ "$name" != verl ] || "$env/bin/python" -m pip install --quiet --no-deps verl==0.9.1
# torchvision names the torch that it goes with, of a build that there may not be here.
case $name in swift | verl | easyr1) "$env/bin/python" -m pip install --quiet --no-deps torchvision==0.28.0 ;; esac
# decord's wheel is for other platforms by its name; the lists of verl and EasyR1 are not installed.
case $name in inspect | lmms) "$env/bin/python" -m pip check ;; esac
[ "$name" != easyr1 ] || export PYTHONPATH="${EASYR1:?the folder of its checkout}"
# As in the Makefile: the usual build of torchvision cannot be imported without CUDA.
[ "$name" = inspect ] || "$env/bin/python" -c "import torchvision" 2>/dev/null ||
  truncate -s 0 "$env"/lib/python*/site-packages/torchvision/_meta_registrations.py
exec "$env/bin/python" -m pytest -n 0 -W default -p no:cacheprovider "tests/harness/test_$name.py" omnidata/harness "$@"
