"""Benchmarks: Sarrus against other packages, side by side in one run."""

import os

# Before NumPy loads: every contestant has one thread.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
