"""Benchmarks: Sarrus against other packages, side by side in one run."""
