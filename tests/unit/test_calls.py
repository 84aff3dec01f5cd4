"""Calling compiled machines: one state or many, inputs for each or for all, from many threads at once."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import sarrus as sr
from sarrus.errors import StateError, UnknownNameError

# nq, nv, rows and inputs all differ; a redundant machine; quaternions and nonholonomic rows; no constraint; no input
MACHINES = ("stewart", "five_bar", "parallelogram", "rolling_disc", "geared_chain", "pendulum", "flyball")
COUNT = 7


def compiled(name: str) -> sr.System:
    return sr.compile(sr.library.build(name))


def states_of(system: sr.System, count: int, seed: int = 0) -> sr.State:
    """An array of states near the start; the closures need not hold for a comparison of two ways to call."""
    rng = np.random.default_rng(seed)
    q = system.retract(np.tile(system.assemble().q, (count, 1)), 0.01 * rng.normal(size=(count, system.layout.nv)))
    return system.state(q, rng.normal(size=(count, system.layout.nv)), rng.uniform(size=count))


@pytest.fixture(params=MACHINES)
def system(request) -> sr.System:
    return compiled(request.param)


def test_an_array_of_states_is_the_states_one_by_one(system, rng):
    x = system.layout
    states = states_of(system, COUNT)
    u, f = rng.normal(size=(COUNT, x.nu)), rng.normal(size=(COUNT, x.nv))
    together = system.solve(states, u, f)
    assert together.vdot.shape == (COUNT, x.nv) and together.lam.shape == (COUNT, x.m)
    np.testing.assert_array_equal(system.acceleration(states, u, f), together.vdot)
    for i in range(COUNT):
        alone = system.solve(states.row(i), u[i], f[i])
        assert alone.vdot.shape == (x.nv,) and alone.lam.shape == (x.m,)
        np.testing.assert_array_equal(together.vdot[i], alone.vdot)
        np.testing.assert_array_equal(together.lam[i], alone.lam)
        assert (together.rank[i], together.path[i]) == (alone.rank, alone.path)
        assert (together.accepted[i], together.rejected[i]) == (alone.accepted, alone.rejected)
    assert together.rows == alone.rows


def test_inputs_and_forces_for_all_states_or_for_each(system, rng):
    x = system.layout
    states = states_of(system, COUNT)
    u, f = rng.normal(size=x.nu), rng.normal(size=x.nv)
    everywhere = np.tile(u, (COUNT, 1)), np.tile(f, (COUNT, 1))
    expected = system.acceleration(states, *everywhere)
    np.testing.assert_array_equal(system.acceleration(states, u, f), expected)
    np.testing.assert_array_equal(system.acceleration(states, everywhere[0], f), expected)
    np.testing.assert_array_equal(system.acceleration(states, u, everywhere[1]), expected)
    np.testing.assert_array_equal(system.acceleration(states), system.acceleration(states, 0 * u, 0 * f))


def test_one_time_for_all_states(rng):
    mech = sr.library.build("five_bar")
    mech.prescribe("drive", "A", lambda t: 2.0 + t * t * t)
    system = sr.compile(mech)
    base = states_of(system, COUNT)
    for t in (0.3, np.full(COUNT, 0.3)):
        states = system.state(base.q, base.v, t)
        for i in (0, COUNT - 1):
            alone = system.acceleration(system.state(base.q[i], base.v[i], 0.3))
            np.testing.assert_array_equal(system.acceleration(states)[i], alone)
    assert system.acceleration(system.state(base.q[0], base.v[0], 0.5)) @ np.ones(4) != pytest.approx(alone.sum())


def test_arrays_of_any_layout_are_accepted(rng):
    system = compiled("five_bar")
    states, u = states_of(system, COUNT), rng.normal(size=(COUNT, 2))
    expected = system.acceleration(states, u)
    odd = system.state(np.asfortranarray(states.q), np.repeat(states.v, 2, axis=1)[:, ::2], states.t)
    np.testing.assert_array_equal(system.acceleration(odd, np.asfortranarray(u)), expected)
    np.testing.assert_array_equal(system.acceleration(odd, u.tolist()), expected)
    single = system.acceleration(states.row(0), np.array([1.0, 2.0]))
    for u in ([1, 2], (1.0, 2.0), np.array([1, 2]), np.array([1, 2], dtype=np.float32), np.array([1.0, 0, 2.0])[::2]):
        np.testing.assert_array_equal(system.acceleration(states.row(0), u), single)


def test_results_are_the_callers_own():
    """A later call must not change what an earlier one returned, nor may the caller change the machine's buffers."""
    system = compiled("five_bar")
    states = states_of(system, 2)
    first = system.solve(states.row(0))
    vdot, lam = first.vdot.copy(), first.lam.copy()
    system.solve(states.row(1))
    np.testing.assert_array_equal(first.vdot, vdot)
    np.testing.assert_array_equal(first.lam, lam)
    first.vdot[:] = 7.0
    np.testing.assert_array_equal(system.solve(states.row(0)).vdot, vdot)


def test_inputs_do_not_stick():
    system = compiled("five_bar")
    state = states_of(system, 2).row(0)
    plain = system.acceleration(state)
    system.acceleration(state, [3.0, 4.0], [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(system.acceleration(state), plain)
    off = system.acceleration(state, active={"C": False})
    np.testing.assert_array_equal(system.acceleration(state), plain)
    assert np.max(np.abs(off - plain)) > 0.1


def test_an_array_of_one_state(system):
    states = states_of(system, 1)
    np.testing.assert_array_equal(system.acceleration(states)[0], system.acceleration(states.row(0)))


def test_an_array_of_no_states():
    system = compiled("five_bar")
    x = system.layout
    none = system.state(np.zeros((0, x.nq)), np.zeros((0, x.nv)))
    assert system.acceleration(none).shape == (0, x.nv)


def test_wrong_inputs_are_named():
    system = compiled("five_bar")
    many = states_of(system, 3)
    one = many.row(0)
    cases = [
        (one, dict(u=[1.0]), r"inputs u: expected 2 values \(A, E\), got shape \(1,\)"),
        (one, dict(u=np.zeros(3)), r"inputs u: expected 2 values \(A, E\), got shape \(3,\)"),
        (one, dict(u=[1.0, np.nan]), "inputs u: the value of 'E' is nan; expected a finite number"),
        (one, dict(u=np.array([np.inf, 0.0])), "inputs u: the value of 'A' is inf; expected a finite number"),
        (one, dict(u=["a", "b"]), "inputs u: expected numbers, got"),
        (one, dict(u=np.array(["a", "b"])), "inputs u: expected numbers, got"),
        (one, dict(u=3.0), r"inputs u: expected 2 values \(A, E\)"),
        (one, dict(f=np.zeros(5)), r"forces f: expected 4 values \(A, E, B, D\), got shape \(5,\)"),
        (one, dict(f=np.array([0, 0, np.nan, 0])), "forces f: the value of 'B' is nan"),
        (one, dict(u=np.zeros((3, 2))), r"inputs u: 3 rows for a single state\(s\)"),
        (many, dict(u=np.zeros((2, 2))), r"inputs u: 2 rows for 3 state\(s\)"),
        (many, dict(u=np.array([[0, 0], [0, 0], [0, np.nan]])), "inputs u: the value of 'E' is nan"),
        (many, dict(f=np.zeros((4, 4))), r"forces f: 4 rows for 3 state\(s\)"),
        (many, dict(u=np.zeros((1, 3, 2))), r"inputs u: expected 2 values .* got shape \(1, 3, 2\)"),
    ]
    for state, wrong, text in cases:
        with pytest.raises(StateError, match=text):
            system.acceleration(state, **wrong)


def test_wrong_names_and_foreign_states():
    system, other = compiled("five_bar"), compiled("pendulum")
    with pytest.raises(UnknownNameError, match=r"unknown constraint 'Q'.*'C'"):
        system.acceleration(states_of(system, 1).row(0), active={"Q": False})
    with pytest.raises(StateError, match="this state belongs to 'pendulum', not to 'five-bar'"):
        system.acceleration(other.assemble())
    with pytest.raises(StateError, match="expected a state of five-bar, got ndarray"):
        system.acceleration(np.zeros(4))


# --- threads ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["bricard", "five_bar"])  # with and without the work space of the slow path
def test_many_threads_give_the_same_results(name):
    system = compiled(name)
    states = states_of(system, 64)
    expected = system.acceleration(states)
    start = threading.Barrier(8)

    def work(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        start.wait()
        for _ in range(40):
            i = int(rng.integers(64))
            if not np.array_equal(system.acceleration(states.row(i)), expected[i]):
                return False
            if not np.array_equal(system.acceleration(states), expected):
                return False
        return True

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(8)))
    finally:
        sys.setswitchinterval(switch)


def test_the_interpreter_is_free_meanwhile():
    """With switching between threads forbidden, another thread can only run while the compiled code does."""
    system = compiled("bricard")
    count = 100_000
    states = states_of(system, 1)
    inputs = (
        np.zeros((count, 1)), np.tile(states.q, (count, 1)), np.tile(states.v, (count, 1)), np.zeros(1), np.zeros(5),
    )  # fmt: skip
    arguments = (inputs, system._constants, system.active_rows(None), True)
    assert system.library is not None
    events: list[str] = []
    started = threading.Event()

    def work() -> None:
        started.set()
        system.library.accelerate(*arguments)
        events.append("batch done")

    worker = threading.Thread(target=work)
    switch = sys.getswitchinterval()
    sys.setswitchinterval(3600.0)
    try:
        worker.start()
        started.wait()
        steps = sum(1 for _ in range(1000))
        events.append("counted")
    finally:
        sys.setswitchinterval(switch)
    worker.join()
    assert steps == 1000
    assert events == ["counted", "batch done"]


def test_systems_share_nothing_that_changes():
    """Two machines from one library, with different parameters, called in turn."""
    first = compiled("five_bar")
    second = first.with_parameters(m2=5.0)
    state = states_of(first, 1).row(0)
    a, b = first.acceleration(state), second.acceleration(state)
    assert np.max(np.abs(a - b)) > 1e-3
    for _ in range(3):
        np.testing.assert_array_equal(first.acceleration(state), a)
        np.testing.assert_array_equal(second.acceleration(state), b)
