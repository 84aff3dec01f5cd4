"""States: shapes, names, quaternions, arrays of states, immutability, and moving on the manifold."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import sarrus as sr
from sarrus.dynamics.manifold import difference, normalise, quat_exp
from sarrus.errors import StateError, UnknownNameError

EPS = np.finfo(float).eps


def mixed() -> sr.System:
    """Two quaternions, a planar joint, a cylindrical one and two hinges: nq = 20, nv = 18."""
    mech = sr.Mechanism("all sorts")
    solid = np.diag([1.0, 1.2, 1.4])
    raft = mech.body("raft", 1.0, (0, 0, 0.1), solid)
    mech.free("F", raft)
    ball = mech.body("ball", 1.0, (0.1, 0, 0), solid)
    mech.spherical("S", raft, ball, at=(1, 0, 0))
    puck = mech.body("puck", 1.0, (0, 0, 0), solid)
    mech.planar_joint("P", mech.ground, puck, "z")
    sleeve = mech.body("sleeve", 1.0, (0, 0, 0.2), solid)
    mech.cylindrical("C", puck, sleeve, "y")
    for name in "AB":
        arm = mech.body(f"arm {name}", 1.0, (0.2, 0, 0), solid)
        mech.revolute(name, sleeve, arm, "x")
    mech.universal("U", ball, mech.body("end", 1.0, (0.1, 0.2, 0.3), solid), ("x", "z"))
    return sr.compile(mech)


@pytest.fixture(scope="module")
def system() -> sr.System:
    return mixed()


SYSTEM = mixed()  # hypothesis examples share it
LAYOUT = SYSTEM.layout


def random_q(rng: np.random.Generator, shape: tuple[int, ...] = ()) -> np.ndarray:
    return SYSTEM.retract(np.tile(np.array(LAYOUT.initial), (*shape, 1)), rng.normal(size=(*shape, LAYOUT.nv)))


# --- construction ----------------------------------------------------------------------------------------------------
def test_sizes(system):
    assert (system.layout.nq, system.layout.nv) == (20, 18)
    assert len(system.layout.turns) == 2


def test_rest_is_the_default(system, rng):
    state = system.state(random_q(rng))
    assert state.count is None and state.t == 0.0
    np.testing.assert_array_equal(state.v, np.zeros(18))
    assert system.state(random_q(rng, (3,))).v.shape == (3, 18)


def test_arrays_of_states(system, rng):
    q, v, t = random_q(rng, (4,)), rng.normal(size=(4, 18)), np.arange(4.0)
    states = system.state(q, v, t)
    assert states.count == 4
    for i in range(4):
        row = states.row(i)
        assert row.count is None and row.t == t[i]
        np.testing.assert_array_equal(row.q, q[i])
        np.testing.assert_array_equal(row.v, v[i])
    assert system.state(q, v, 0.5).row(2).t == 0.5


@pytest.mark.parametrize(
    ("q", "v", "t", "text"),
    [
        ((19,), None, 0.0, r"positions q: expected 20 values \(F.position.x, .* …\), got shape \(19,\)"),
        ((21,), None, 0.0, r"positions q: expected 20 values"),
        ((), None, 0.0, r"positions q: expected 20 values .* got shape \(\)"),
        ((2, 3, 20), None, 0.0, r"positions q: .*got shape \(2, 3, 20\)"),
        ((20,), (20,), 0.0, r"velocities v: expected 18 values \(F.velocity.x, .*got shape \(20,\)"),
        ((20,), (2, 18), 0.0, r"positions have shape \(20,\), velocities \(2, 18\); give as many"),
        ((2, 20), (18,), 0.0, r"positions have shape \(2, 20\), velocities \(18,\); give as many"),
        ((2, 20), (3, 18), 0.0, r"positions have shape \(2, 20\), velocities \(3, 18\); give as many"),
        ((20,), None, np.nan, "time: expected a finite number"),
        ((20,), None, [0.0, 1.0], "time: expected a finite number"),
        ((3, 20), None, [0.0, 1.0], "time: expected a finite number or one for each state"),
        ((3, 20), None, [0.0, 1.0, np.inf], "time: expected a finite number"),
    ],
)
def test_wrong_shapes(q, v, t, text, system):
    q = np.ones(q)
    v = None if v is None else np.zeros(v)
    if q.shape[-1:] == (20,):
        q = np.broadcast_to(np.array(system.layout.initial), q.shape)
    with pytest.raises(StateError, match=text):
        system.state(q, v, t)


def test_values_that_are_not_finite_are_named(system):
    for name, bad in (("F.position.y", np.nan), ("A", np.inf), ("P.angle", -np.inf)):
        q = np.array(system.layout.initial)
        q[system.layout.find(name)] = bad
        with pytest.raises(StateError, match=f"positions q: the value of '{name}' is {bad}; expected a finite"):
            system.state(q)
    v = np.zeros((3, 18))
    v[1, system.layout.find("S.omega.z", "v")] = np.nan
    with pytest.raises(StateError, match=r"velocities v: the value of 'S.omega.z' is nan"):
        system.state(np.tile(system.layout.initial, (3, 1)), v)


@pytest.mark.parametrize("wrong", ["text", None, [1, 2, "x"], object()])
def test_values_that_are_no_numbers(wrong, system):
    with pytest.raises(StateError, match="positions q"):
        system.state(wrong)


@pytest.mark.parametrize("name", ["F", "S"])
def test_quaternions_must_have_length_one(name, system):
    for factor, accepted in ((1 + 1e-9, True), (1 + 1e-7, False), (1 - 1e-7, False), (0.5, False), (0.0, False)):
        q = np.array(system.layout.initial)
        q[system.layout.find(f"{name}.quat_wxyz")] *= factor
        if accepted:
            system.state(q)
            continue
        with pytest.raises(StateError, match=rf"{name}\.quat_wxyz: a quaternion must have length 1, got {factor:.9g};"):
            system.state(q)
        with pytest.raises(StateError, match=rf"{name}\.quat_wxyz: a quaternion must have length 1, got {factor:.9g};"):
            system.state(np.stack([np.array(system.layout.initial), q]))


# --- names -----------------------------------------------------------------------------------------------------------
def test_values_by_name(system, rng):
    state = system.state(random_q(rng), rng.normal(size=18))
    for names, values, suffix in ((LAYOUT.q_names, state.q, ".q"), (LAYOUT.v_names, state.v, ".v")):
        for name, value in zip(names, values, strict=True):
            assert state[name + suffix] == value
            assert isinstance(state[name + suffix], float)
    assert state["A"] == state["A.q"] == state.q[LAYOUT.q_names.index("A")]
    assert state["A.v"] == state.v[LAYOUT.v_names.index("A")]
    assert state["F.omega.x"] == state["F.omega.x.v"]  # a name that only velocities have


def test_slices_by_name(system, rng):
    state = system.state(random_q(rng), rng.normal(size=18))
    np.testing.assert_array_equal(state["F"], state.q[:7])
    np.testing.assert_array_equal(state["F.q"], state.q[:7])
    np.testing.assert_array_equal(state["F.v"], state.v[:6])
    np.testing.assert_array_equal(state["F.position"], state.q[:3])
    np.testing.assert_array_equal(state["F.quat_wxyz"], state.q[3:7])
    np.testing.assert_array_equal(state["F.omega"], state.v[3:6])
    np.testing.assert_array_equal(state["F.velocity"], state.v[:3])
    assert state["S"].shape == (4,) and state["S.v"].shape == (3,)
    assert state["P"].shape == (3,) and state["C"].shape == (2,) and state["U.v"].shape == (2,)


def test_names_of_an_array_of_states(system, rng):
    states = system.state(random_q(rng, (5,)), rng.normal(size=(5, 18)))
    assert states["A"].shape == states["A.v"].shape == (5,)
    assert states["F"].shape == (5, 7) and states["F.omega"].shape == (5, 3)
    np.testing.assert_array_equal(states["A"], [states.row(i)["A"] for i in range(5)])


def test_unknown_names(system):
    state = system.assemble()
    for name, text in (
        ("Q", "unknown coordinate 'Q'"),
        ("arm A", "unknown coordinate 'arm A'"),
        ("Q.v", "unknown velocity 'Q'"),
        ("F.omega.x.q", r"unknown coordinate 'F\.omega\.x'"),
        ("F.positon", r"unknown coordinate 'F\.positon'.*Did you mean.*'F\.position'"),
        (3, "unknown coordinate 3"),
        (slice(0, 2), "unknown coordinate slice"),
    ):
        with pytest.raises(UnknownNameError, match=text):
            state[name]
    with pytest.raises(KeyError):  # UnknownNameError is one
        state["Q"]


def test_text(system, rng):
    state = sr.compile(sr.library.build("pendulum")).state([0.25], [-1.5], 2.0)
    assert repr(state) == "<state of pendulum at t=2: q(A=0.25) v(A=-1.5)>"
    assert repr(system.state(random_q(rng, (3,)))) == "<3 states of all sorts>"


# --- immutability ----------------------------------------------------------------------------------------------------
def test_states_cannot_be_changed(system, rng):
    q, v = random_q(rng), rng.normal(size=18)
    state = system.state(q, v)
    kept = q.copy(), v.copy()
    with pytest.raises(ValueError, match="read-only"):
        state.q[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        state.v[0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.q = q
    q[:], v[:] = 7.0, 7.0  # the caller's arrays are the caller's
    np.testing.assert_array_equal(state.q, kept[0])
    np.testing.assert_array_equal(state.v, kept[1])
    part = state["F"]
    part[:] = 9.0  # a copy
    np.testing.assert_array_equal(state.q, kept[0])


def test_times_of_an_array_cannot_be_changed(system, rng):
    t = np.arange(3.0)
    states = system.state(random_q(rng, (3,)), t=t)
    t[0] = 99.0
    assert states.row(0).t == 0.0
    part = states["A"]
    kept = part.copy()
    part += 1.0
    np.testing.assert_array_equal(states["A"], kept)


def test_results_of_assembly_cannot_be_changed():
    state = sr.compile(sr.library.build("pendulum")).assemble()
    with pytest.raises(ValueError, match="read-only"):
        state.q[0] = 1.0


# --- the manifold ----------------------------------------------------------------------------------------------------
numbers = st.floats(-3, 3, allow_nan=False)
steps = arrays(float, LAYOUT.nv, elements=numbers)


def shortened(step: np.ndarray) -> np.ndarray:
    """Turns of less than half a turn, for which the way back is the same."""
    out = step.copy()
    for turn in LAYOUT.turns:
        part = out[turn.v : turn.v + 3]
        part *= min(1.0, 3.1 / max(np.linalg.norm(part), 1e-9))
    return out


@given(steps, steps)
def test_difference_undoes_retract(first, step):
    q, step = SYSTEM.retract(np.array(LAYOUT.initial), first), shortened(step)
    moved = SYSTEM.retract(q, step)
    np.testing.assert_allclose(difference(LAYOUT, q, moved), step, atol=200 * EPS)
    np.testing.assert_array_equal(difference(LAYOUT, q, q)[[t.v for t in LAYOUT.turns]], 0.0)


@given(steps, steps)
def test_retract_undoes_difference(first, second):
    a, b = (SYSTEM.retract(np.array(LAYOUT.initial), x) for x in (first, second))
    there = SYSTEM.retract(a, difference(LAYOUT, a, b))
    for turn in LAYOUT.turns:  # the two signs of a quaternion are one rotation
        quat = slice(turn.q, turn.q + 4)
        there[quat] *= np.sign(there[quat] @ b[quat])
    np.testing.assert_allclose(there, b, atol=100 * EPS)


@given(steps)
def test_quaternions_keep_their_length(step):
    q = SYSTEM.retract(np.array(LAYOUT.initial), step)
    for turn in LAYOUT.turns:
        assert abs(np.linalg.norm(q[turn.q : turn.q + 4]) - 1) <= 2 * EPS
        np.testing.assert_allclose(q[turn.q : turn.q + 4], quat_exp(step[turn.v : turn.v + 3]), atol=4 * EPS)
    np.testing.assert_array_equal(normalise(LAYOUT, q * 1.0).shape, q.shape)


def test_retract_takes_arrays(rng):
    q, step = random_q(rng, (4,)), rng.normal(size=(4, 18))
    together = SYSTEM.retract(q, step)
    for i in range(4):
        np.testing.assert_array_equal(together[i], SYSTEM.retract(q[i], step[i]))
        np.testing.assert_array_equal(SYSTEM.retract(q[0], step)[i], SYSTEM.retract(q[0], step[i]))


def test_retract_follows_the_rate_map(rng):
    """d/dt of the positions is N v."""
    h, q, v = 1e-6, random_q(rng), rng.normal(size=18)
    rate = (SYSTEM.retract(q, h * v) - SYSTEM.retract(q, -h * v)) / (2 * h)
    np.testing.assert_allclose(SYSTEM.terms(SYSTEM.state(q)).N @ v, rate, atol=10 * h**2 + 10 * EPS / h)


@pytest.mark.parametrize(("q", "step"), [((20,), (17,)), ((20,), (19,)), ((19,), (18,)), ((20,), ())])
def test_retract_refuses_wrong_shapes(q, step, system):
    with pytest.raises(StateError, match=r"(positions|step|velocities).*expected (18|20)"):
        system.retract(np.ones(q), np.ones(step))
