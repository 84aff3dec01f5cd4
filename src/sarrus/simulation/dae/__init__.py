"""Differential-algebraic forms of a machine's motion, and the solvers that integrate them."""
