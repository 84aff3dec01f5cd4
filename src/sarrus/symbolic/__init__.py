"""Descriptions turned into CasADi expressions."""

import contextlib

import casadi as _casadi

# NumPy's functions applied to CasADi symbols give plain symbols, silently: users write np.sin(t) in their lambdas
with contextlib.suppress(AttributeError):  # older CasADi behaves so without being asked
    _casadi.GlobalOptions.setNumpyMode(-1)
