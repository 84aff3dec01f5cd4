"""The advice is true: what it says to change is changed, and the machine is looked at again."""

from dataclasses import replace

import numpy as np
import pytest

import sarrus as sr
from sarrus.analysis import relax
from sarrus.analysis.dependence import dependence
from sarrus.analysis.joints import Bodies
from sarrus.model import features as on

from .machines import braced_frame, quaternion, spatial_four_bar

MAKE = {
    "point-on-line": on.line_on,
    "point-on-plane": on.plane_on,
    "cylindrical": on.cylindrical_on,
    "planar": on.planar_on,
}


def changed(model, place, change: relax.Relaxation):
    """The model with one joint or closure made looser, as the advice says, at the place where it is."""
    c = next(c for c in place.connections() if c.name == change.name)
    (Ra, pa), (Rb, pb) = place.pose[c.parent], place.pose[c.child]
    own = c.axes[:, 2] if change.axis is None else np.array(change.axis)

    def side(make, body, R, p, axis):
        return make(body, R.T @ (c.point - p), R.T @ axis)

    if change.kind.startswith("point"):
        second = on.point_on(c.child, Rb.T @ (c.point - pb))
        first = (
            on.point_on(c.parent, Ra.T @ (c.point - pa))
            if change.kind == "point"
            else side(MAKE[change.kind], c.parent, Ra, pa, own)
        )
    elif change.kind == "universal":  # its axis stays with the parent, the second axis goes with the child
        first = side(on.universal_on, c.parent, Ra, pa, own_axis(c))
        second = side(on.universal_on, c.child, Rb, pb, np.array(change.axis))
    else:
        first, second = (side(MAKE[change.kind], *x, own) for x in ((c.parent, Ra, pa), (c.child, Rb, pb)))
    closures = [x for x in model.closures if x.name != c.name]
    joints = tuple(j for j in model.joints if j.name != c.name)
    groups = tuple(g for g in model.groups if g != c.name)
    draft = sr.Mechanism("draft")
    draft.close(c.name, first, second)
    new = draft._parts["closures"][0]
    reached = {"ground"}
    for _ in joints:
        reached |= {x for j in joints if {j.parent, j.child} & reached for x in (j.parent, j.child)}
    for body in [b.name for b in model.bodies if b.name not in reached]:  # no joint holds it any more
        draft.free(f"free {body}", body, initial=(*place.pose[body][1], *quaternion(place.pose[body][0])))
        joints = (*joints, draft._parts["joints"][-1])
        break
    return replace(model, joints=joints, closures=(*closures, new), groups=(*groups, c.name))


def with_inertia(model):
    """Inertia about every axis, so that every body may be let go."""
    return replace(model, bodies=tuple(replace(b, inertia=b.inertia + 0.01 * np.eye(3)) for b in model.bodies))


def own_axis(c):
    return c.axes[:, 2]


MACHINES = {
    "parallelogram": lambda: sr.library.build("parallelogram"),
    "four cranks": lambda: sr.library.build("parallelogram", cranks=4),
    "spatial four-bar": spatial_four_bar,
    "bricard": lambda: sr.library.build("bricard"),
    "sarrus": lambda: sr.library.build("sarrus"),
    "bennett": lambda: sr.library.build("bennett"),
    "spherical": lambda: sr.library.build("spherical_four_bar"),
}


def plans_of(system, state):
    """All that the advice offers, from the texts' own source."""
    from sarrus.analysis.diagnose import _Examination

    look = _Examination(system, state, None, {}, [], None)
    loops = look._loops()
    (loop,) = dict.fromkeys(loops)
    return look._plans(list(look.dependence.families), loop)


@pytest.mark.parametrize("name", MACHINES)
def test_relaxing_as_told(name):
    """After the change nothing is redundant, and the machine moves as before."""
    system = sr.compile(with_inertia(MACHINES[name]().finalize()))
    state = system.assemble()
    before = sr.diagnose(system, state)
    offered = plans_of(system, state)
    assert offered
    for plan in offered[:2]:
        for change in plan:
            assert change.text in before.find("redundant-constraints")[0].advice
        model = system.description
        for change in plan:
            looser = sr.compile(model)
            at = looser.assemble(near=_same(system, state, looser))
            model = changed(model, Bodies.of(looser).at(at), change)
        after = sr.compile(model)
        d = sr.diagnose(after, after.assemble(near=_same(system, state, after)))
        assert (d.mobility, d.mobilities.finite) == (before.mobility, before.mobilities.finite), plan
        assert not d.spare and all(x.unique for x in d.joints.values()), plan


def _same(system, state, other):
    """The coordinates that both have."""
    names = dict(zip(system.layout.q_names, state.q.tolist(), strict=True))
    return {n: names[n] for n in other.layout.q_names if n in names}


@pytest.mark.parametrize("name", [*MACHINES, "frame"])
def test_spare_rows_can_go(name):
    """Without the spare rows the rank is the same and nothing is left over."""
    system = sr.compile(braced_frame() if name == "frame" else MACHINES[name]())
    state = system.assemble()
    d = sr.diagnose(system, state)
    names = [row.name for row in system.layout.rows]
    idle = [names.index(r) for r in d.idle] if system.description.planar else []
    A = system.terms(state).A
    kept = [i for i, n in enumerate(names) if n not in d.spare and i not in idle]
    assert np.linalg.matrix_rank(A[kept], tol=1e-9) == len(kept) == d.rank
    for family in d.families:
        for circuit in family.circuits:  # any one of a circuit follows from its others, and no smaller set depends
            rows = [names.index(r) for r in circuit]
            assert np.linalg.matrix_rank(A[rows], tol=1e-9) == len(rows) - 1
            for i in rows:
                rest = [j for j in rows if j != i]
                assert np.linalg.matrix_rank(A[rest], tol=1e-9) == len(rest)


def test_all_circuits_are_found(rng):
    """Against trying all subsets of the rows of a matrix with several dependences."""
    from itertools import combinations

    from sarrus.analysis.dependence import _circuits, _fundamental

    A = rng.normal(size=(7, 3))
    A[3], A[4], A[6] = A[0] - 2 * A[1], 3 * A[2], A[0]
    U, s, _ = np.linalg.svd(A)
    null = U[:, 3:]
    pivots, basis = _fundamental(null)
    found, complete = _circuits(basis, list(range(7)), pivots)
    expected = []
    for size in range(1, 5):
        for rows in combinations(range(7), size):
            if np.linalg.matrix_rank(A[list(rows)], tol=1e-9) < size and not any(set(e) < set(rows) for e in expected):
                expected.append(rows)
    assert complete and sorted(map(tuple, found)) == sorted(expected)
    assert len(expected) > 4 and s[-1] > 0.1


def test_nothing_is_offered_that_costs_mobility():
    """Letting go of a direction that carries no internal load is never proposed: in-plane forces of the four-bar."""
    system = sr.compile(spatial_four_bar())
    state = system.assemble()
    place, dep = Bodies.of(system).at(state), dependence(system, system.rank(state))
    for name in "ABCD":
        (plan,) = relax.plans([(place.connections(), dep.multipliers)], [name], system.layout.length, False)
        (change,) = plan
        axes = next(c for c in place.connections() if c.name == name).axes
        for k in change.freed:  # forces along y, moments across it
            along_y = abs(axes[1, k % 3]) > 0.99
            assert along_y == (k < 3)


def four_bar_in_space(scale: float, closures: int) -> sr.System:
    """A four-bar of hinges in space, its last joint closed once or several times over."""
    mech = sr.Mechanism("four-bar in space")
    ground, a, b, c = (scale * x for x in (4.0, 1.5, 3.0, 3.5))
    crank, coupler, rocker = (
        mech.body(name, mass=scale**3, com=(x / 2, 0, 0)) for name, x in (("a", a), ("b", b), ("c", c))
    )
    mech.revolute("A", mech.ground, crank, "z", initial=1.2)
    mech.revolute("B", crank, coupler, "z", at=(a, 0, 0), initial=-0.9)
    mech.revolute("C", mech.ground, rocker, "z", at=(ground, 0, 0), initial=1.8)
    for k in range(closures):
        mech.close(f"D{k}", sr.revolute_on(coupler, (b, 0, 0), "z"), sr.revolute_on(rocker, (c, 0, 0), "z"))
    return sr.compile(mech)


def redundancies(system: sr.System) -> list[str]:
    return [f.advice for f in sr.diagnose(system).findings if f.topic == "redundant-constraints"]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_advice_does_not_depend_on_the_size_of_the_machine(scale):
    (advice,) = redundancies(four_bar_in_space(scale, 1))
    assert "make `D0` a point on a line (`line_on` with `point_on`) along z; or make `C` a point" in advice


def test_a_closure_given_twice_is_to_be_left_out_once():
    """What is advised for its rows in the plane fits what is advised for those across it."""
    (advice,) = redundancies(four_bar_in_space(1.0, 2))
    ways = "leave out `D1`, and make `D0` a point on a line (`line_on` with `point_on`) along z"
    assert advice.startswith(f"To make it determinate: {ways}. ")


def test_a_single_row_out_of_reach_is_no_pair_that_contradicts():
    mech = sr.Mechanism("short arm")
    arm = mech.body("arm", mass=1.0, inertia=np.eye(3))
    mech.revolute("J", mech.ground, arm, "z")
    mech.close("pin", sr.point_on(mech.ground, (2, 0, 0)), sr.point_on(arm, (1, 0, 0)))
    (found,) = [f for f in sr.diagnose(sr.compile(mech)).findings if f.topic == "rows-that-contradict-each-other"]
    assert found.text == "`pin.x` cannot be satisfied: no motion changes it here, and it misses by 1 m at t = 0 s."
