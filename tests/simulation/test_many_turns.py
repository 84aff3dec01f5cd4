"""Runs of many turns: angles get large, crossings many, and neither may end or change the run."""

import numpy as np
import pytest

import sarrus as sr


@pytest.fixture(scope="module")
def turning():
    """A slider-crank that turns over and over, faster than it loses digits: 4000 s in few rows."""
    system = sr.compile(sr.library.build("slider_crank"))
    start = system.assemble(velocities={"A": 2.0})
    return sr.simulate(system, start, 4000.0, rtol=1e-6, output=np.linspace(0.0, 4000.0, 101))


def test_large_angles_do_not_end_a_run(turning):
    """An angle of 20000 rad is stored to 4e-12: no projection can bring the loop error below that."""
    assert turning.status.code == "finished", turning.status
    size = np.abs(turning.q).max()
    assert size > 1e4
    assert turning.audit().loop.relative < 4 * np.spacing(size) * turning.system.layout.nq
    np.testing.assert_allclose(turning["A"] + turning["B"] / 2, np.pi, atol=1e-9)  # on its branch


def test_every_crossing_of_a_long_run_is_reported(turning):
    """One for each half turn, upright or hanging, however many there are between two looks at the integrator."""
    angle = np.array([crossing.q[0] for crossing in turning.crossings])
    half_turns = (angle - np.pi / 2) / np.pi
    assert len(angle) > 2000
    np.testing.assert_allclose(half_turns, np.arange(len(angle)), atol=1e-5)
    assert len(angle) == np.floor((turning.final["A"] - np.pi / 2) / np.pi) + 1
