"""Names in a user's function of the motion, and bodies with awkward names."""

import numpy as np
import pytest

import sarrus as sr
from sarrus.model.inertia import rod


@pytest.fixture(scope="module")
def system() -> sr.System:
    mech = sr.Mechanism("two links", planar=True)
    frame = mech.body("frame", 1.0, com=(0.5, 0), inertia=rod(1.0, 1.0))
    other = mech.body("other", 2.0, com=(0.4, 0), inertia=0.1)
    mech.revolute("A", mech.ground, frame)
    mech.revolute("B", frame, other, at=(1, 0), initial=0.5)
    mech.motor("A")
    mech.motor("B", name="drive")
    return sr.compile(mech)


@pytest.mark.parametrize("sample", [None, 1e-3])
def test_velocities_positions_and_parts_by_name(system, sample):
    """Compiled and called in Python: the same torques as from the vectors."""

    def by_name(t, x):
        return -3 * x["A"] - 0.2 * x["A.v"], -2 * x["B.q"] - 0.1 * x["B.v"] + x["frame.position"][0]

    def by_vector(t, q, v):
        return -3 * q[0] - 0.2 * v[0], -2 * q[1] - 0.1 * v[1]

    start = system.assemble(velocities={"A": 1.0, "B": -2.0})
    named, plain = (
        sr.simulate(system, start, 0.5, rtol=1e-10, inputs=law, sample=sample) for law in (by_name, by_vector)
    )
    assert named.status.ok and plain.status.ok
    np.testing.assert_allclose(named.final.q, plain.final.q, rtol=1e-12)
    np.testing.assert_allclose(named.final.v, plain.final.v, rtol=1e-12)


def test_a_body_may_be_called_frame(system):
    traj = sr.simulate(system, system.assemble(), 0.1)
    for name in ("frame.position", "frame.rotation", "other.position", "frame.other.position", "frame.frame.rotation"):
        assert len(traj[name]) == len(traj)
    np.testing.assert_array_equal(traj["other.position"], traj["frame.other.position"])


def test_unknown_names_are_refused(system):
    with pytest.raises(sr.UnknownNameError, match=r"unknown value 'C\.v'\. Did you mean"):
        sr.simulate(system, system.assemble(), 0.1, inputs=lambda t, x: (x["C.v"], 0.0))
