"""Assemblies that cannot be: the error names the closure, its residual, the rows and what to change."""

import re

import numpy as np
import pytest

import sarrus as sr
from sarrus.errors import AssemblyError, StateError, UnknownNameError

LENGTHS = dict(L1=0.5, L2=1.2, L3=0.9, L4=1.1)


@pytest.fixture(scope="module")
def four_bar() -> sr.System:
    return sr.compile(sr.library.build("four_bar"))  # 1, 1, 1 over a ground of 1.5: the crank cannot turn round


@pytest.fixture(scope="module")
def crank_rocker() -> sr.System:
    return sr.compile(sr.library.build("four_bar", **LENGTHS))


# --- positions -------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def out_of_reach(four_bar) -> AssemblyError:
    """At A = π the other bars, 2 m together, must span 2.5 m."""
    with pytest.raises(AssemblyError) as caught:
        four_bar.assemble({"A": np.pi})
    return caught.value


def test_out_of_reach(out_of_reach):
    text = str(out_of_reach)
    assert re.search("^four-bar: constraint 'D' cannot be satisfied", text)
    assert re.search(r"largest rows: D\.x (0\.\d+) m", text)
    assert re.search(r"hint: held at A = 3\.14.*cannot be reached.*with A = (-?[\d.]+)\.", text)
    assert out_of_reach.residuals["D"] == pytest.approx(0.5, rel=0.1)  # stretched straight, 0.5 m are missing
    residual = float(re.search(r"residual ([\d.]+) after \d+ Newton iterations", text)[1])
    assert residual == pytest.approx(out_of_reach.residuals["D"], rel=1e-2)


def test_the_hint_can_be_followed(four_bar, out_of_reach):
    reachable = float(re.search(r"with A = (-?[\d.]+)\.", str(out_of_reach))[1])
    limit = np.arccos((1 + 1.5**2 - 4) / 3)  # the coupler and the rocker straight
    assert np.cos(reachable) >= np.cos(limit) - 1e-3
    assert four_bar.assemble({"A": reachable})["A"] == reachable


def test_the_best_positions_found_come_with_the_error(four_bar, out_of_reach):
    q = np.asarray(out_of_reach.q)
    assert q.shape == (3,) and q[0] == np.pi
    phi = four_bar.terms(four_bar.state(q)).phi
    assert np.max(np.abs(phi)) == pytest.approx(out_of_reach.residuals["D"], rel=1e-12)


def test_a_machine_that_never_closes():
    system = sr.compile(sr.library.build("four_bar", L4=5.0))
    with pytest.raises(AssemblyError, match=r"'D' cannot be satisfied(.|\n)*D\.x(.|\n)*hint: check lengths") as caught:
        system.assemble()
    assert caught.value.residuals["D"] == pytest.approx(2.0, rel=1e-3)
    with pytest.raises(AssemblyError, match=r"'D'(.|\n)*hint: held at A = 0.3; it does not close without holding"):
        system.assemble({"A": 0.3})


def test_the_closure_at_fault_is_named_and_the_others_are_said_to_be_fine():
    """Two independent loops, the second impossible."""
    mech = sr.Mechanism("two loops", planar=True)
    for loop, ground in (("good", 1.0), ("bad", 9.0)):
        before = mech.ground
        for k, at in enumerate([(0, 0), (1, 0), (1, 0)]):
            bar = mech.body(f"{loop}{k}", 1.0, (0.5, 0), 0.1)
            mech.revolute(f"{loop} {k}", before, bar, at=at, initial=0.5)
            before = bar
        mech.close(f"{loop} end", sr.point_on(before, (1, 0)), sr.point_on(mech.ground, (ground, 0)))
    system = sr.compile(mech)
    with pytest.raises(
        AssemblyError, match=r"constraint 'bad end'(.|\n)*bad end.x(.|\n)*satisfied: good end"
    ) as caught:
        system.assemble()
    assert caught.value.residuals["bad end"] > 1 > 1e-9 > caught.value.residuals["good end"]


def test_over_determined_positions(crank_rocker):
    good = crank_rocker.assemble({"A": 0.8})
    given = {"A": 0.8, "B": good["B"], "C": good["C"]}
    np.testing.assert_array_equal(crank_rocker.assemble(given).q, good.q)
    with pytest.raises(AssemblyError, match=r"'D'(.|\n)*held at A = 0.8, B = .*, C = "):
        crank_rocker.assemble(given | {"B": good["B"] + 0.1})


def test_signs_that_no_assembly_has(crank_rocker):
    """With A and C held, B has but one value."""
    good = crank_rocker.assemble({"A": 0.8}, signs={"C": -1})
    wrong = -int(np.sign(np.sin(good["B"])))
    text = f"can be satisfied, but not with the signs asked for \\(B {'>' if wrong > 0 else '<'} 0\\)"
    with pytest.raises(AssemblyError, match=text):
        crank_rocker.assemble({"A": 0.8, "C": good["C"]}, signs={"B": wrong})


def test_a_motion_out_of_reach():
    mech = sr.library.build("four_bar")
    mech.prescribe("drive", "A", lambda t: 1.0 + t)
    system = sr.compile(mech)
    system.assemble(t=0.0)
    with pytest.raises(AssemblyError, match=r"'(D|drive)'"):
        system.assemble(t=2.1)


def test_two_constraints_that_contradict():
    mech = sr.library.build("pendulum")
    mech.lock("here", "A", 0.2)
    mech.lock("there", "A", 0.5)
    system = sr.compile(mech)
    with pytest.raises(AssemblyError, match=r"constraint '(here|there)' cannot be satisfied"):
        system.assemble()
    assert system.assemble(active={"there": False})["A"] == pytest.approx(0.2, abs=1e-15)


# --- velocities ------------------------------------------------------------------------------------------------------
def test_inconsistent_velocities(crank_rocker):
    with pytest.raises(AssemblyError) as caught:
        crank_rocker.assemble({"A": 0.8}, velocities={"A": 1.0, "B": 5.0})
    text = str(caught.value)
    assert re.search(r"no velocities satisfy constraint 'D' \(A v - a: D\.[xz] [\d.]+", text)
    assert "given: A = 1.0, B = 5.0; release one of them" in text
    assert caught.value.residuals["D"] > 0.1


def test_over_determined_velocities_that_agree(crank_rocker):
    good = crank_rocker.assemble({"A": 0.8}, velocities={"A": 1.0})
    given = {"A": 1.0, "B": good["B.v"], "C": good["C.v"]}
    np.testing.assert_array_equal(crank_rocker.assemble({"A": 0.8}, given).v, list(given.values()))
    with pytest.raises(AssemblyError, match=r"'D'(.|\n)*given: A = 1.0, B = "):
        crank_rocker.assemble({"A": 0.8}, given | {"C": good["C.v"] + 1e-3})


def test_velocity_against_a_prescribed_motion():
    mech = sr.library.build("four_bar", **LENGTHS)
    mech.prescribe("drive", "A", lambda t: 0.8 + 0.5 * t)
    system = sr.compile(mech)
    with pytest.raises(AssemblyError, match=r"'drive'(.|\n)*given: A = 1.0"):
        system.assemble(velocities={"A": 1.0})


def test_a_driven_machine_at_its_dead_point():
    """The crank is driven, but at the end of its range it cannot move on."""
    mech = sr.library.build("four_bar")
    limit = float(np.arccos((1 + 1.5**2 - 4) / 3))
    mech.prescribe("drive", "A", lambda t: limit + t)
    with pytest.raises(AssemblyError, match=r"constraint '(D|drive)'"):
        sr.compile(mech).assemble()


# --- names and values ------------------------------------------------------------------------------------------------
CASES = [
    (dict(positions={"Q": 1.0}), UnknownNameError, "unknown coordinate 'Q'.*Known: 'A', 'B', 'C'"),
    (dict(positions={"a": 1.0}), UnknownNameError, "unknown coordinate 'a'"),
    (dict(positions={"D": 1.0}), UnknownNameError, "unknown coordinate 'D'"),
    (dict(positions={"A.v": 1.0}), UnknownNameError, r"unknown coordinate 'A\.v'"),
    (dict(velocities={"Q": 1.0}), UnknownNameError, "unknown velocity 'Q'"),
    (dict(velocities={"A.q": 1.0}), UnknownNameError, r"unknown velocity 'A\.q'"),
    (dict(near={"Q": 1.0}), UnknownNameError, "unknown coordinate 'Q'"),
    (dict(signs={"Q": 1}), UnknownNameError, "unknown coordinate 'Q'"),
    (dict(active={"Q": False}), UnknownNameError, "unknown constraint 'Q'.*'D'"),
    (dict(positions={"A": (1.0, 2.0)}), StateError, r"'A': expected 1 value\(s\), got \(1.0, 2.0\)"),
    (dict(positions={"A": np.nan}), StateError, "'A': expected finite numbers, got nan"),
    (dict(positions={"A": "wide"}), StateError, "'A': expected .*'wide'"),
    (dict(velocities={"A": np.inf}), StateError, "'A': expected finite numbers, got inf"),
    (dict(near={"A": np.nan}), StateError, "'A': expected finite numbers, got nan"),
    (dict(signs={"A": 0}), StateError, "signs: 'A' must be a single coordinate with .1 or -1, got 0"),
    (dict(signs={"A": "up"}), StateError, "signs: 'A' must be .*, got 'up'"),
    (dict(t=np.nan), StateError, "time: expected a finite number"),
]


@pytest.mark.parametrize(("arguments", "kind", "text"), CASES)
def test_wrong_requests(arguments, kind, text, crank_rocker):
    with pytest.raises(kind, match=text):
        crank_rocker.assemble(**arguments)


def test_wrong_quaternions():
    system = sr.compile(sr.library.build("rolling_disc"))
    cases = [
        ({"disc.quat_wxyz.w": 1.0}, "'disc.quat_wxyz.w': give the whole quaternion 'disc.quat_wxyz'"),
        ({"disc.quat_wxyz": (0, 0, 0, 0)}, "'disc.quat_wxyz': a quaternion must not be zero"),
        ({"disc.quat_wxyz": (1, 0, 0)}, r"'disc.quat_wxyz': expected 4 value\(s\)"),
        ({"disc": (0, 0, 0)}, r"'disc': expected 7 value\(s\)"),
    ]
    for positions, text in cases:
        with pytest.raises(StateError, match=text):
            system.assemble(positions)
    with pytest.raises(StateError, match=r"signs: 'disc.quat_wxyz' must be a single coordinate"):
        system.assemble(signs={"disc.quat_wxyz": 1})


def test_near_must_be_a_state_of_this_machine(crank_rocker):
    pendulum = sr.compile(sr.library.build("pendulum"))
    with pytest.raises(StateError, match="near: expected a single state of 'four-bar'"):
        crank_rocker.assemble(near=pendulum.assemble())
    many = crank_rocker.state(np.zeros((2, 3)))
    with pytest.raises(StateError, match="near: expected a single state of 'four-bar'"):
        crank_rocker.assemble(near=many)
