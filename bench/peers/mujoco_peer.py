"""MuJoCo as a contestant: mj_forward, and one fourth of a Runge-Kutta step."""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path

import mujoco
import numpy as np

import sarrus as sr
from bench.machines import Samples, relative_error
from bench.peers.contestant import Contestant, build_helper, pointer
from bench.peers.convert import MUJOCO_DEFAULTS, to_mjcf
from bench.timing import CLOCK
from sarrus.kernel.compiler import find_compiler

VERSION = mujoco.__version__
BOUND = 1e-2  # its constraints are springs by construction: at the stiffest setting errors are 1e-5 to 1e-3

# The solver needs one iteration, because equality constraints make the problem quadratic.
CHOICES = {"solver": ("Newton", "CG"), "jacobian": ("dense", "sparse"), "island": ("disable", "enable")}


class Loop:
    """The machine in MuJoCo with the sampled states, run by the compiled timing loop."""

    def __init__(self, system: sr.System, samples: Samples, settings: dict[str, str]):
        """Build the model and translate the states by name."""
        self.settings = {**MUJOCO_DEFAULTS, **settings}
        self.model = mujoco.MjModel.from_xml_string(to_mjcf(system.description, settings))
        self.data = mujoco.MjData(self.model)
        q_index, self.v_index = _indices(system, self.model)
        self.states = len(samples.tau)
        start = np.zeros((self.states, self.model.nv))
        rows = (samples.states.q[:, q_index], *(x[:, self.v_index] for x in (samples.states.v, samples.tau)), start)
        self.rows = [np.ascontiguousarray(x) for x in rows]
        d = self.data
        targets = (d.qpos, d.qvel, d.qfrc_applied, d.qacc_warmstart)
        self._target = (ctypes.c_void_p * 4)(*map(pointer, targets))
        self._source = (ctypes.c_void_p * 4)(*map(pointer, self.rows))
        self._size = (ctypes.c_long * 2)(self.model.nq, self.model.nv)
        self._run = build_helper("mujoco_loop.c", (*find_compiler(), "-O2", "-fPIC", "-shared")).mujoco_run
        self._run.restype = None
        p, n = ctypes.c_void_p, ctypes.c_long
        self._run.argtypes = [p, p, p, p, p, p, n, n, p, p]
        library = ctypes.CDLL(str(_library()))
        self._calls = {name: ctypes.cast(getattr(library, name), p).value for name in ("mj_forward", "mj_step")}
        self.rows[3][:] = self._just_before()

    def run(self, call: str, count: int, out: np.ndarray | None = None) -> int:
        """Call one of its functions `count` times, cycling through the states."""
        self._run(
            self._calls[call], self.model._address, self.data._address, self._size, self._target, self._source,
            self.states, count, pointer(self.data.qacc), 0 if out is None else pointer(out),
        )  # fmt: skip
        return count

    def _just_before(self) -> np.ndarray:
        """Solutions one time step earlier: where the solver starts in a simulation.

        The solution itself would let an iterative solver do nothing, and another state's would make it do too much.
        """
        out = self._accelerations()
        q, v, force, _ = self.rows
        for k in range(self.states):
            before = q[k].copy()
            mujoco.mj_integratePos(self.model, before, v[k], -self.model.opt.timestep)
            self.data.qpos[:], self.data.qvel[:] = before, v[k] - self.model.opt.timestep * out[k]
            self.data.qfrc_applied[:], self.data.qacc_warmstart[:] = force[k], out[k]
            mujoco.mj_forward(self.model, self.data)
            out[k] = self.data.qacc
        return out

    def _accelerations(self) -> np.ndarray:
        out = np.zeros((self.states, self.model.nv))
        self.run("mj_forward", self.states, out)
        return out

    def accelerations(self) -> np.ndarray:
        """v̇ of every sampled state in Sarrus' order."""
        out = np.zeros((self.states, self.model.nv))
        out[:, self.v_index] = self._accelerations()
        return out

    def step_error(self, expected: np.ndarray) -> float:
        """What mj_step itself does: change of velocity in a short step over the step, against the accelerations."""
        kept, dt = self.model.opt.timestep, 1e-7
        self.model.opt.timestep = dt
        change = np.zeros_like(expected)
        for k in range(self.states):
            self.data.qpos[:], self.data.qvel[:] = self.rows[0][k], self.rows[1][k]
            self.data.qfrc_applied[:], self.data.qacc_warmstart[:] = self.rows[2][k], self.rows[3][k]
            mujoco.mj_step(self.model, self.data)
            change[k, self.v_index] = (self.data.qvel - self.rows[1][k]) / dt
        self.model.opt.timestep = kept
        return relative_error(change, expected)


def contestants(system: sr.System, samples: Samples, expected: np.ndarray, compiled: bool) -> tuple[list, list[str]]:
    """mj_forward and mj_step / 4, each in its fastest accurate settings, and remarks (none).

    Its loop is C, and Sarrus needs a C compiler anyway: it is built whatever `compiled` says.
    """
    loops = []
    for values in itertools.product(*CHOICES.values()):
        loop = Loop(system, samples, dict(zip(CHOICES, values, strict=True)))
        if relative_error(loop.accelerations(), expected) <= BOUND:
            loops.append(loop)
    if not loops:
        loops = [Loop(system, samples, {})]
    out = []
    for name, call, share in (("MuJoCo mj_forward", "mj_forward", 1), ("MuJoCo RK4 step / 4", "mj_step", 4)):
        loop = min(loops, key=lambda candidate: _quick_time(candidate, call))
        settings = dict(loop.settings, warm_start="the solution one time step earlier", loop="C", call=call)
        if call == "mj_step":
            settings["short_step_error"] = loop.step_error(expected)

        def run(count: int, loop=loop, call=call, share=share) -> int:
            return share * loop.run(call, max(1, count // share))

        out.append(Contestant(name, run, loop.accelerations, BOUND, settings))
    return out, []


def _quick_time(loop: Loop, call: str) -> float:
    times = []
    for _ in range(5):
        start = CLOCK()
        loop.run(call, 100)
        times.append(CLOCK() - start)
    return min(times)


def _indices(system: sr.System, model: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """For each entry of qpos and of qvel, its place in Sarrus' q and v."""
    q_index, v_index = np.full(model.nq, -1), np.full(model.nv, -1)
    for k in range(model.njnt):
        name = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, k)
        for index, start, kind in ((q_index, model.jnt_qposadr[k], "q"), (v_index, model.jnt_dofadr[k], "v")):
            part = system.layout.find(name, kind)
            index[start : start + part.stop - part.start] = range(part.start, part.stop)
    assert sorted(q_index) == list(range(system.layout.nq)) and sorted(v_index) == list(range(system.layout.nv))
    return q_index, v_index


def _library() -> Path:
    """The library that the Python package itself has loaded."""
    folder = Path(mujoco.__file__).parent
    return next(p for pattern in ("libmujoco.so*", "libmujoco*.dylib") for p in sorted(folder.glob(pattern)))
