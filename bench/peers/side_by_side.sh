#!/usr/bin/env bash
# Runs the C++ benchmark and its Python counterparts in turn at small batches: side_by_side.sh [ROUNDS]
# SPARSIGHT_BENCH: the benchmark program; PYTHON: an interpreter with torch.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bench=${SPARSIGHT_BENCH:-build/release/bench/sparsight_bench}
python=${PYTHON:-.venv/bin/python}
for _ in $(seq "${1:-3}"); do
  "$bench" moe --tokens 1,49,197 --experts 32
  "$python" bench/peers/peers.py --tokens 1,49,197 --experts 32
done
