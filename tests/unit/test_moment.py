"""A moment gives positions, velocities, inputs, parameters and poses by the names that a trajectory understands too."""

import numpy as np
import pytest

import sarrus as sr
from sarrus.simulation.callbacks import numeric_moment


@pytest.fixture(scope="module")
def system():
    return sr.compile(sr.library.build("four_bar"))


def test_names_mean_what_a_state_and_a_trajectory_mean_by_them(system):
    state = system.assemble({"A": 0.4}, velocities={"A": 2.0})
    lam = np.array([3.0, 4.0, 5.0])
    x = numeric_moment(system, 0.5, state.q, state.v, np.array([7.0]), lam)
    for name in ("A", "B", "C"):
        assert x[name] == x[f"{name}.q"] == state[name]
        assert x[f"{name}.v"] == state[f"{name}.v"]
    assert (x["A.u"], x["L2"]) == (7.0, system.parameters["L2"])
    np.testing.assert_array_equal(x["D.force"], lam)
    np.testing.assert_allclose(x["coupler.position"], system.frames(state)["coupler"][0])
    assert {"A.v", "B.v", "A.u", "D.force", "coupler.position"} <= set(x.names())
    for name in x.names():
        x[name]


def test_names_of_joints_with_several_coordinates():
    system = sr.compile(sr.library.build("rolling_disc"))
    state = system.assemble(velocities={name: 0.1 * k for k, name in enumerate(system.layout.v_names[-3:], 1)})
    x = numeric_moment(system, 0.0, state.q, state.v, np.zeros(system.layout.nu))
    for name in system.layout.q_names:
        assert x[name] == state[name]
    for k, name in enumerate(system.layout.v_names):
        assert x[name] == state.v[k]


def test_unknown_names_and_inputs_that_are_being_asked_for(system):
    state = system.assemble({"A": 0.4})
    x = numeric_moment(system, 0.0, state.q, state.v, None)
    with pytest.raises(sr.UnknownNameError, match=r"unknown value 'A\.w'. Did you mean 'A\.v'"):
        x["A.w"]
    with pytest.raises(sr.UnknownNameError, match="inputs are what this function is asked for"):
        x["A.u"]
