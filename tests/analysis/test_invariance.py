"""Verdicts belong to the machine: not to units, the order of its parts, the cut, or rows written twice."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sarrus as sr
from sarrus.model.tree import span

from .machines import braced_frame, in_other_units, spatial_four_bar

NAMES = ["parallelogram", "bricard", "bennett", "stewart", "two_arms", "five_bar", "spherical_four_bar", "slider_crank"]
SEEDS = (1, 10, 11, 12, 19, 25, 31, 43)  # random machines; odd ones have redundant rows on top


def verdict(d: sr.Diagnosis) -> dict:
    """Everything that is not a number with a unit."""
    m, a = d.mobilities, d.actuation
    return {
        "mobility": (d.mobility, m.finite, m.grubler, m.dependent, m.singular, m.rank_near),
        "rows": (d.rows, d.rank, set(d.redundant), set(d.idle)),
        "families": {(frozenset(f.rows), f.nullity, frozenset(map(frozenset, f.circuits))) for f in d.families},
        "loops": set(map(frozenset, d.loops)),
        "determinate": dict(d.determinate),
        "sums": set(map(frozenset, d.sums)),
        "joints": dict(d.joints),
        "actuation": (a.kind, a.driven, a.unique, a.passive, a.idle, a.without_constraints, len(a.internal)),
        "misfit": None if d.misfit is None else (d.misfit.posture, d.misfit.joint),
        "topics": set(d.topics),
        "assembled": d.assembled,
        "index": d.figures.index,
    }


def of_joints(d: sr.Diagnosis) -> dict:
    """What does not depend on which joints have coordinates."""
    whole = verdict(d)
    out = {key: whole[key] for key in ("mobility", "loops", "misfit", "assembled")}
    out["spare"] = len(d.spare)
    out["joints"] = {name: (x.force, x.moment) for name, x in d.joints.items()}
    out["actuation"] = whole["actuation"][:3]
    return out


def random_case(seed: int):
    from oracles.random_machines import random_machine

    return random_machine(seed)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("length", "mass"), [(1000.0, 1.0), (1e-3, 1e3), (39.37, 2.2)])
def test_units(name, length, mass):
    model = sr.library.build(name).finalize()
    plain, scaled = in_other_units(model, 1.0, 1.0), in_other_units(model, length, mass)
    assert verdict(sr.diagnose(scaled)) == verdict(sr.diagnose(plain))


@pytest.mark.parametrize("build", [lambda: spatial_four_bar(1e-3), lambda: spatial_four_bar(0.0), braced_frame])
def test_units_of_faulty_machines(build):
    model = build().finalize()
    plain, scaled = (sr.diagnose(in_other_units(model, *x)) for x in ((1.0, 1.0), (1000.0, 0.01)))
    assert verdict(scaled) == verdict(plain)
    if plain.misfit is not None:
        assert scaled.misfit.angle == pytest.approx(plain.misfit.angle, rel=1e-3)
        assert scaled.misfit.shift == pytest.approx(1000.0 * plain.misfit.shift, rel=0.1, abs=1e-3 * plain.misfit.angle)


@pytest.mark.parametrize("name", NAMES)
def test_order_of_bodies_and_constraints(name):
    model = sr.library.build(name).finalize()
    order = np.random.default_rng(3).permutation(len(model.bodies))
    other = replace(
        model, bodies=tuple(model.bodies[i] for i in order), closures=model.closures[::-1], groups=model.groups[::-1]
    )
    a, b = sr.diagnose(model), sr.diagnose(other)
    for d in (a, b):
        assert len(d.spare) == sum(f.nullity for f in d.families)
    assert verdict(a) == verdict(b)


@pytest.mark.parametrize("name", ["bennett", "bricard", "sarrus", "spherical_four_bar"])
@pytest.mark.parametrize("shift", [1, 2])
def test_choice_of_the_cut(name, shift):
    """Joints written in another order: another one is cut, and every joint keeps its verdict."""
    mech = sr.library.build(name)
    mech._parts["actuators"].clear()
    model = mech.finalize()
    other = replace(model, joints=model.joints[shift:] + model.joints[:shift])
    start = sr.compile(model).assemble()
    there = sr.compile(other)
    if {j.name for j in span(other).cuts} == {j.name for j in span(model).cuts}:
        other = replace(model, joints=model.joints[::-1])
        there = sr.compile(other)
    assert {j.name for j in span(other).cuts} != {j.name for j in span(model).cuts}
    assert of_joints(sr.diagnose(there)) == of_joints(sr.diagnose(sr.compile(model), start))


@pytest.mark.parametrize("cut", ["A", "B", "C"])
def test_cut_of_the_spatial_four_bar(cut):
    def build(c):
        mech = spatial_four_bar(cut=c)
        mech._parts["actuators"].clear()
        return mech

    assert of_joints(sr.diagnose(build(cut))) == of_joints(sr.diagnose(build("D")))


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "stewart", "parallelogram"])
def test_a_closure_written_twice(name):
    """Only that closure becomes indeterminate; its copy is named, and the sum of both is what one was."""
    model = sr.library.build(name).finalize()
    first = model.closures[0]
    twice = replace(model, closures=(*model.closures, replace(first, name="again")), groups=(*model.groups, "again"))
    a, b = sr.diagnose(model), sr.diagnose(twice)
    rows = sum(1 for row in sr.compile(model).layout.rows if row.group == first.name and row.name not in a.idle)
    assert (b.mobility, b.mobilities.finite, b.rank) == (a.mobility, a.mobilities.finite, a.rank)
    assert b.mobilities.dependent == a.mobilities.dependent + rows
    assert b.determinate[first.name] is False and b.determinate["again"] is False
    for group, known in a.determinate.items():
        assert b.determinate[group] == (known and group != first.name)
    assert any({first.name, "again"} <= set(x) for x in b.sums)
    for joint, x in a.joints.items():
        if joint != first.name:
            assert b.joints[joint] == x
    if not a.spare:
        labels = [row for row in a.reactions.certain if row.startswith(first.name + ".") and row not in a.idle]
        circuits = {frozenset(c) for f in b.families for c in f.circuits}
        assert circuits == {frozenset((row, row.replace(first.name, "again", 1))) for row in labels}
        both = b.reactions[first.name].force + b.reactions["again"].force
        np.testing.assert_allclose(both, a.reactions[first.name].force, atol=1e-9 * np.abs(both).max())
    assert (b.actuation.kind, b.actuation.driven) == (a.actuation.kind, a.actuation.driven)


@pytest.mark.slow
@settings(max_examples=8)
@given(seed=st.sampled_from(SEEDS), length=st.sampled_from([1e-2, 50.0]), mass=st.sampled_from([1e-3, 20.0]))
def test_random_machines_in_other_units(seed, length, mass):
    case = random_case(seed)
    if case.model.couplings or case.model.parameters:  # couplings mix radians and lengths
        return
    values = case.tree.unpack(case.q)
    found = []
    for scale in ((1.0, 1.0), (length, mass)):
        system = sr.compile(in_other_units(case.model, *scale))
        q = np.array([values[n] for n in system.layout.q_names])
        shifts = np.array([".position." in n for n in system.layout.q_names])
        for joint in case.model.joints:
            names = {"prismatic": [0], "cylindrical": [1], "planar": [0, 1]}.get(joint.kind, [])
            shifts |= np.isin(system.layout.q_names, [joint.position_names[i] for i in names])
        found.append(sr.diagnose(system, system.state(np.where(shifts, q * scale[0], q))))
    assert found[0].mobility == case.freedom and found[0].rank == case.rank
    assert verdict(found[1]) == verdict(found[0])


@pytest.mark.slow
@settings(max_examples=8)
@given(seed=st.sampled_from(SEEDS), shuffle=st.integers(0, 3))
def test_random_machines_in_another_order(seed, shuffle):
    in_another_order(seed, shuffle)


@pytest.mark.parametrize("seed", [1, 11])
def test_a_random_machine_in_another_order(seed):
    in_another_order(seed, 2)


def in_another_order(seed, shuffle):
    """Bodies and joints written in another order, which may cut other joints."""
    case = random_case(seed)
    rng = np.random.default_rng(shuffle)
    bodies, joints = (list(x) for x in (case.model.bodies, case.model.joints))
    rng.shuffle(bodies)
    rng.shuffle(joints)
    values = case.tree.unpack(case.q)
    one = sr.compile(case.model)
    a = sr.diagnose(one, one.state(case.q))
    other = sr.compile(replace(case.model, bodies=tuple(bodies), joints=tuple(joints)))
    if not set(other.layout.q_names) <= set(values):
        return  # a joint whose coordinate is not known at this configuration
    b = sr.diagnose(other, other.state([values[n] for n in other.layout.q_names]))
    assert a.mobility == case.freedom
    assert of_joints(a) == of_joints(b)
