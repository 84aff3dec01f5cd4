"""Named parameters at run time: other values, same code; wrong names and values."""

import numpy as np
import pytest

import sarrus as sr
from sarrus.errors import StateError, UnknownNameError

CASES = {
    "pendulum": ({}, dict(L=2.5, m=0.3)),
    "four_bar": ({}, dict(L1=0.5, L2=1.2, L3=0.9, L4=1.1, m1=0.7, m2=2.0, m3=0.2)),
    "five_bar": ({}, dict(L0=0.5, L1=0.35, L2=0.6, m1=0.2, m2=1.1)),
    "slider_crank": ({}, dict(L1=0.8, L2=1.4, m1=2.0, m2=0.5)),
}


def refuse(*arguments):
    raise AssertionError("nothing may be derived or compiled here")


@pytest.mark.parametrize("name", CASES)
def test_equal_to_a_machine_built_with_these_numbers(name, rng):
    _, values = CASES[name]
    changed = sr.compile(sr.library.build(name)).with_parameters(**values)
    built = sr.compile(sr.library.build(name, **values))
    assert changed.parameters == built.parameters == values
    state = built.assemble()
    v = built.projector(state) @ rng.normal(size=built.layout.nv)
    ours, theirs = changed.state(state.q, v), built.state(state.q, v)
    u = rng.normal(size=built.layout.nu)
    np.testing.assert_allclose(changed.acceleration(ours, u), built.acceleration(theirs, u), rtol=1e-11, atol=1e-11)
    for field in ("M", "h", "A", "gamma", "phi", "B"):
        ours_field, theirs_field = (getattr(s.terms(x), field) for s, x in ((changed, ours), (built, theirs)))
        np.testing.assert_allclose(ours_field, theirs_field, rtol=1e-13, atol=1e-13)
    assert changed.energy(ours).total == pytest.approx(built.energy(theirs).total, rel=1e-13)
    assert changed.rank(ours).rank == built.rank(theirs).rank
    np.testing.assert_allclose(
        changed.constraint_forces(ours, u).generalised, built.constraint_forces(theirs, u).generalised, atol=1e-9
    )


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_compiled_again(name, monkeypatch):
    _, values = CASES[name]
    system = sr.compile(sr.library.build(name))
    monkeypatch.setattr("sarrus.dynamics.compile._derive", refuse)
    monkeypatch.setattr("sarrus.kernel.compiler.compile_library", refuse)
    monkeypatch.setattr("subprocess.run", refuse)
    changed = system.with_parameters(**values)
    assert changed.library is system.library
    near = sr.library.build(name, **values).finalize()
    guess = {j.name: float(j.initial[0]) for j in near.joints if j.initial is not None}
    state = changed.assemble(near=guess)
    assert np.max(np.abs(changed.terms(state).phi), initial=0.0) <= 1e-12
    assert np.all(np.isfinite(changed.acceleration(state)))


def test_the_first_system_stays_as_it_was():
    system = sr.compile(sr.library.build("pendulum"))
    state = system.assemble({"A": 0.3})
    before = system.acceleration(state)
    changed = system.with_parameters(L=2.0)
    np.testing.assert_allclose(changed.acceleration(changed.state(state.q)), before / 2, rtol=1e-14)
    np.testing.assert_array_equal(system.acceleration(state), before)
    assert system.parameters == {"L": 1.0, "m": 1.0}
    assert changed.with_parameters(m=3.0).parameters == {"L": 2.0, "m": 3.0}
    assert changed.with_parameters().parameters == changed.parameters


def test_states_travel_between_systems_of_one_machine():
    system = sr.compile(sr.library.build("pendulum"))
    state = system.assemble({"A": 0.3})
    assert system.with_parameters(L=2.0).acceleration(state)[0] == pytest.approx(-9.81 * np.cos(0.3) / 2)


def test_wrong_names_and_values():
    system = sr.compile(sr.library.build("four_bar"))
    with pytest.raises(UnknownNameError, match=r"unknown parameter 'L5'.*Known: .*'L1'"):
        system.with_parameters(L5=1.0)
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(StateError, match=f"parameter 'L2': expected a finite number, got {value}"):
            system.with_parameters(L1=1.0, L2=value)
    for value in ("long", None, [1.0, 2.0]):
        with pytest.raises(StateError, match="parameter 'L2': expected"):
            system.with_parameters(L2=value)
    with pytest.raises(UnknownNameError, match=r"unknown parameter 'L'\..*none"):
        sr.compile(sr.library.build("bricard")).with_parameters(L=1.0)


def test_values_for_which_the_machine_is_no_machine():
    """No mass at all: named, not NaN."""
    with pytest.raises(sr.ModelError, match="'A'"):
        sr.compile(sr.library.build("pendulum")).with_parameters(m=0.0)


def test_parameters_everywhere_in_a_description(rng):
    """Mass, com, inertia, place, stiffness, rest, damping, rotor, pitch, gravity, gear, length, coupling."""

    def machine(number) -> sr.Mechanism:
        p = {name: number(name, 0.3 + 0.1 * k) for k, name in enumerate("abcdefghijklm")}
        mech = sr.Mechanism("every number", gravity=(0, p["a"], -9.81 * p["b"]))
        base = mech.body("base", p["c"], (p["a"], 0, 0.1), sr.box(p["c"], (1, p["d"], 1)))
        arm = mech.body("arm", 1 + p["d"], (0, p["e"], 0), sr.parallel_axis(sr.rod(p["f"], 1), p["f"], (0, p["a"], 0)))
        nut = mech.body("nut", 0.5, (0.1, 0.1, p["h"]), sr.sphere(0.5, p["g"]))
        mech.revolute(
            "A", mech.ground, base, "z", at=(p["a"], 0, 0), stiffness=p["b"], rest=p["c"], damping=p["d"],
            rotor_inertia=p["e"], initial=0.3,
        )  # fmt: skip
        mech.revolute("B", base, arm, "x", at=(0, p["f"], 0), child_at=(0, 0, p["g"]), initial=0.4)
        mech.helical("C", arm, nut, "y", p["h"], at=(0, 1, p["i"]))
        mech.distance("rod", sr.point_on(arm, (p["j"], 1, 0)), sr.point_on(mech.ground, (2, p["k"], 0)), 2 * p["l"] + 1)
        mech.couple("gear", {"A": 1.0, "C": -p["m"]}, 0.1 * p["a"])
        mech.spring("s", sr.point_on(nut, (p["b"], 0, 0)), sr.point_on("ground", (0, 0, 2)), p["c"], p["d"], p["e"])
        mech.joint_spring("coil", {"A": p["f"], "B": 1}, p["g"], p["h"], p["i"])
        mech.force("push", sr.point_on(nut), (p["j"], 0, p["k"]))
        mech.motor("B", gear=p["l"])
        mech.actuator("both", {"A": p["m"], "B": 1})
        return mech

    named = sr.compile(machine(sr.parameter))
    assert set(named.parameters) == set("abcdefghijklm")
    values = {name: float(x) for name, x in zip(named.parameters, rng.uniform(0.4, 0.9, 13), strict=True)}
    plain = sr.compile(machine(lambda name, default: values[name]))
    changed = named.with_parameters(**values)
    q, v, u = rng.normal(size=3), rng.normal(size=3), rng.normal(size=2)
    ours, theirs = changed.state(q, v), plain.state(q, v)
    for field in ("M", "h", "A", "gamma", "phi", "B"):
        a, b = getattr(changed.terms(ours), field), getattr(plain.terms(theirs), field)
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
    expected = plain.acceleration(theirs, u)
    np.testing.assert_allclose(changed.acceleration(ours, u), expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    assert np.abs(named.acceleration(named.state(q, v), u) - expected).max() > 1e-3


@pytest.mark.parametrize("function", [np.sin, np.cos, np.tan, np.sqrt, np.exp, np.arctan, np.arcsin, np.arccos])
def test_functions_of_parameters_in_a_description(function):
    def machine(x) -> sr.Mechanism:
        mech = sr.Mechanism("bar on a hinge", planar=True)
        bar = mech.body("bar", 1.0, (function(x), 0), 0.1)
        mech.revolute("A", mech.ground, bar)
        return mech

    system = sr.compile(machine(sr.parameter("x", 0.5))).with_parameters(x=0.7)
    expected = sr.compile(machine(0.7))
    assert system.acceleration(system.assemble())[0] == pytest.approx(expected.acceleration(expected.assemble())[0])
