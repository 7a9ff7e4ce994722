#!/bin/bash
# Published experiments on a GPU machine, in one command: set up, train, write a table.
#
#   benchmarks/gpu_results.sh [ARGS]    ARGS go to `python -m benchmarks.published`, for instance
#                                       --hours 48, --seeds 0, or --smoke for a CPU
#
# Models and data are loaded from the hub. Run again, it continues: in runs/published every run has
# its folder, and in runs/published-smoke those of --smoke. PYTHON selects an interpreter, VENV the
# folder of its packages.
set -euo pipefail
cd "$(dirname "$0")/.."
make --no-print-directory setup ${PYTHON:+PYTHON="$PYTHON"} ${VENV:+VENV="$VENV"}
exec "${VENV:-.venv}/bin/python" -m benchmarks.published "$@"
