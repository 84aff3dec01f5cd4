"""MuJoCo: its own integrators with short steps; closures as stiff as it takes them.

Its constraints are soft by design. The largest impedance that it accepts and a time constant of two steps, the shortest
that it accepts, make them as hard as they get; both their error and that of the integrator then fall with the step.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import mujoco
import numpy as np

from bench.workprec import equations
from bench.workprec.contestant import Declined, Failed, Method, Run, steps
from bench.workprec.problems import Observed, Problem
from bench.workprec.trees import GROUND, Link, Tree, build

CODE = "MuJoCo"
VERSION = mujoco.__version__
CLOSURE = 'solref="{solref}" solimp="0.9999 0.9999 0.001 0.5 2"'

TRACE = 1e-14  # inertia of a point mass [kg m²]


def methods(problem: Problem) -> Iterator[Method | Declined]:
    """Runge-Kutta, and the implicit integrator where dampers make the problem stiff."""
    tree = build(problem)
    if any(x.meets != (0, 1, 2) for x in tree.loops):
        yield Declined(CODE, "no equality constraint on a single direction of a point")
        return
    yield Method(CODE, "RK4", "step [s]", _steps(problem), functools.partial(prepare, problem, "RK4"))
    if any(s.damping for s in tree.springs):
        call = functools.partial(prepare, problem, "implicit")
        yield Method(CODE, "implicit Euler", "step [s]", _steps(problem), call)


def _steps(problem: Problem) -> list[float]:
    return steps(problem.t_end, len(problem.grid) - 1)


def prepare(problem: Problem, integrator: str, step: float) -> Run:
    """One step length; it divides the output intervals."""
    tree = build(problem)
    model = mujoco.MjModel.from_xml_string(to_mjcf(tree, integrator, step))
    data = mujoco.MjData(model)
    intervals = len(problem.grid) - 1
    each = round(problem.t_end / intervals / step)
    index = [model.joint(f"joint{k}").qposadr[0] for k in range(len(tree.links))]
    zero = np.array([x.q0 for x in tree.links])
    torque = np.zeros(model.nv)
    for k, value in tree.torques.items():
        torque[index[k]] = value

    def solve():
        mujoco.mj_resetData(model, data)
        data.qvel[index] = tree.v0
        data.qfrc_applied[:] = torque
        rows = [np.concatenate([data.qpos, data.qvel])]
        for _ in range(intervals):
            mujoco.mj_step(model, data, each)
            rows.append(np.concatenate([data.qpos, data.qvel]))
        return np.array(rows)

    def observe(rows) -> Observed:
        if data.warning.number.any():
            raise Failed("MuJoCo warned that the simulation is unstable")
        q, v = rows[:, : model.nq], rows[:, model.nq :]
        return equations.observe(problem, zero + q[:, index], v[:, index])

    return Run(solve, observe)


def to_mjcf(tree: Tree, integrator: str, step: float) -> str:
    """The tree as MJCF, drawn in its initial position, where all joints count from zero.

    Closures are pairs of sites that `connect` holds together, springs are tendons.
    """
    sites: dict[int, list[str]] = {}

    def site(name: str, link: int, at) -> str:
        sites.setdefault(link, []).append(f'<site name="{name}" pos="{_numbers(at)}"/>')
        return name

    equality, tendon = [], []
    solref = CLOSURE.format(solref=f"{2 * step:.17g} 1")
    for k, x in enumerate(tree.loops):
        a, b = site(f"a{k}", x.a, x.at_a), site(f"b{k}", x.b, x.at_b)
        equality.append(f'<connect site1="{a}" site2="{b}" {solref}/>')
    for k, x in enumerate(tree.springs):
        a, b = site(f"c{k}", x.a, x.at_a), site(f"d{k}", x.b, x.at_b)
        how = f'stiffness="{x.stiffness!r}" damping="{x.damping!r}" springlength="{x.length!r}"'
        tendon.append(f'<spatial {how}><site site="{a}"/><site site="{b}"/></spatial>')

    def body(parent: int) -> str:
        inside = "".join(sites.get(parent, []))
        for k, link in enumerate(tree.links):
            if link.parent != parent:
                continue
            kind = "hinge" if link.kind == "R" else "slide"
            at = np.array(link.at) + (link.q0 * np.array(link.axis) if kind == "slide" else 0)
            small = _positive(np.array(link.inertia), tree.planar)
            full = _numbers([small[0, 0], small[1, 1], small[2, 2], small[0, 1], small[0, 2], small[1, 2]])
            inside += (
                f'<body name="{link.name}" pos="{_numbers(at)}" quat="{_numbers(_turn(link))}">'
                f'<joint name="joint{k}" type="{kind}" axis="{_numbers(link.axis)}"/>'
                f'<inertial pos="{_numbers(link.com)}" mass="{link.mass!r}" fullinertia="{full}"/>{body(k)}</body>'
            )
        return inside

    option = f'timestep="{step:.17g}" integrator="{integrator}" gravity="{_numbers(tree.gravity)}"'
    return (
        f'<mujoco><compiler angle="radian" boundmass="0" boundinertia="0"/>'
        f'<option {option} solver="Newton" iterations="100" tolerance="1e-15" jacobian="auto">'
        f'<flag contact="disable" warmstart="enable"/></option>'
        f"<worldbody>{body(GROUND)}</worldbody><tendon>{''.join(tendon)}</tendon>"
        f"<equality>{''.join(equality)}</equality></mujoco>"
    )


def _positive(inertia: np.ndarray, planar: bool) -> np.ndarray:
    """An inertia that MuJoCo accepts: planar motion needs that about z only, and point masses get a trace of it."""
    return max(inertia[2, 2], TRACE) * np.eye(3) if planar else inertia


def _turn(link: Link) -> np.ndarray:
    """How far a link is turned from its parent at the start, as a quaternion w, x, y, z."""
    angle = link.q0 if link.kind == "R" else 0.0
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * np.array(link.axis)])


def _numbers(values) -> str:
    return " ".join(repr(float(x)) for x in values)
