#!/bin/bash
# All GPU benchmarks in one call of less than nine minutes, with random weights.
#
#   benchmarks/perf/gpu.sh prepare     run with a network: pack what the GPU machine needs
#   benchmarks/perf/gpu.sh [ARGS]      run on the GPU machine: measure; ARGS go to `python -m benchmarks.perf.gpu`
#
# The GPU machine needs Python, torch, transformers and numpy, this repository, and the
# folder CARRY (build/gpu-carry, some 5 MB): pure Python packages, PettingZoo, Gymnasium and what
# they import, and comlrl. If `datasets` or `wandb` are missing, comlrl gets replacements that hold
# a list of rows and log nothing. No network is used.
set -euo pipefail
cd "$(dirname "$0")/../.."
CARRY=${CARRY:-build/gpu-carry}
[[ $CARRY == /* ]] || CARRY=$PWD/$CARRY
PYTHON=${PYTHON:-python3}

if [[ ${1:-} == prepare ]]; then
  rm -rf "$CARRY"
  "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-deps --no-compile \
    --target "$CARRY" gymnasium pettingzoo cloudpickle farama-notifications typing-extensions \
    comlrl==1.4.3
  du -sh "$CARRY"
  exit 0
fi

export PYTHONPATH="$CARRY:$PWD${PYTHONPATH:+:$PYTHONPATH}"
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
exec timeout 535 "$PYTHON" -m benchmarks.perf.gpu "$@"
