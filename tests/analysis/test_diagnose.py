"""Verdicts of `sr.diagnose` on machines whose answers are known."""

import json
from dataclasses import replace

import numpy as np
import pytest

import sarrus as sr
from sarrus.errors import StateError

from .machines import FRAME, bars_in_line, braced_frame, spatial_four_bar

# name: mobility, rank, rows that can go (planar machines: in their plane), Grübler's count
KNOWN = {
    "four_bar": (1, 2, 0, 1),
    "parallelogram": (1, 3, 1, 0),
    "bricard": (1, 4, 1, 0),
    "bennett": (1, 2, 3, -2),
    "sarrus": (1, 4, 1, 0),
    "spherical_four_bar": (1, 2, 3, -2),
    "stewart": (6, 18, 0, 6),
    "delta": (3, 18, 0, 3),
    "five_bar": (2, 2, 0, 2),
    "slider_crank": (1, 1, 0, 1),
    "two_arms": (3, 6, 0, 3),
    "rolling_disc": (3, 3, 0, 3),
    "geared_chain": (4, 2, 0, 4),
}


@pytest.mark.parametrize("name", KNOWN)
def test_counts(name):
    d = sr.diagnose(sr.library.build(name))
    mobility, rank, spare, grubler = KNOWN[name]
    assert (d.mobility, d.rank, len(d.spare), d.mobilities.grubler) == (mobility, rank, spare, grubler)
    assert d.mobilities.finite == mobility and not d.mobilities.singular
    assert d.mobility == d.mobilities.grubler + spare
    assert d.assembled and d.ok and d.misfit is None
    assert all(d.determinate.values()) == (spare == 0) == all(x.unique for x in d.joints.values())
    assert (d.figures.index is None) == bool(set(d.redundant) - set(d.idle))
    assert len(d.singular_values) == min(d.rows, d.velocities)


def test_four_bar_of_spatial_hinges():
    """Three rows too many, by name; all four joints carry forces that nobody can know."""
    d = sr.diagnose(spatial_four_bar())
    assert (d.mobility, d.rows, d.rank, d.mobilities.grubler) == (1, 5, 2, -2)
    assert set(d.redundant) == set(d.spare) == {"D.y", "D.tilt-1", "D.tilt-2"}
    assert [f.circuits for f in d.families] == [((row,),) for row in ("D.y", "D.tilt-1", "D.tilt-2")]
    assert d.loops == (("A", "B", "C", "D"),) * 3
    assert d.determinate == {"D": False}
    for verdict in d.joints.values():  # in the plane everything is certain, out of it nothing
        assert verdict.force == (True, False, True)
        assert verdict.moment == (False, True, False)
    (found,) = d.find("redundant-constraints")
    assert (
        found.text == "`D.y`, `D.tilt-1` and `D.tilt-2` repeat what `A`, `B` and `C` already enforce in the same loop."
    )
    assert "make `D` a point on a line (`line_on` with `point_on`) along y" in found.advice
    assert "make `C` a point on a line" in found.advice and "`A`" not in found.advice  # A has the motor
    assert "1 = 3 velocities - rank 2 (Grübler's count: -2)" in str(d)


def test_parallelogram():
    d = sr.diagnose(sr.library.build("parallelogram"))
    (family,) = d.families
    assert family.rows == ("C1.x", "C1.z", "C2.x", "C2.z") and family.nullity == 1
    assert family.circuits == (family.rows,)
    assert d.sums == (("C1", "C2"),)
    assert not any(x.unique for x in d.joints.values())
    (found,) = d.find("redundant-constraints")
    assert "1 of these 4 rows can go. Any one of them follows from the others." in found.text
    assert "make `C2` a point on a plane" in found.advice


def test_parallelogram_with_four_cranks():
    d = sr.diagnose(sr.library.build("parallelogram", cranks=4))
    (family,) = d.families
    assert family.nullity == 2 and len(family.rows) == 6 and family.complete
    # the pins carry forces along the cranks, two of them and that of the first crank in balance
    pairs = {frozenset(row.split(".")[0] for row in circuit) for circuit in family.circuits}
    assert pairs == {frozenset(x) for x in (("C1", "C2"), ("C1", "C3"), ("C2", "C3"))}
    assert all(len(circuit) == 4 for circuit in family.circuits)


def test_bennett_in_words():
    d = sr.diagnose(sr.library.build("bennett"))
    (family,) = d.families
    assert family.nullity == 3 and len(family.circuits) == 10  # any three of five rows
    assert "Any 2 of them imply the others." in d.find("redundant-constraints")[0].text


# --- nearly redundant ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("tilt", [1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize(("joint", "both_sides"), [("D", True), ("D", False), ("A", True), ("B", True), ("C", True)])
def test_tilted_axis(tilt, joint, both_sides):
    d = sr.diagnose(spatial_four_bar(tilt, joint, both_sides))
    assert d.misfit is not None and not d.misfit.posture
    assert d.misfit.angle == pytest.approx(tilt, rel=0.05)
    (blame,) = (x for x in d.misfit.blamed if x.joint == joint)
    assert blame.angle == pytest.approx(tilt, rel=0.05)
    assert blame.shift < 0.2 * tilt * 2.2
    assert set(d.misfit.rows) <= {"D.y", "D.tilt-1", "D.tilt-2"}
    (found,) = d.find("nearly-redundant-rows")
    assert "turned by" in found.text and d.misfit.joint in found.names
    assert d.mobility == 0
    assert d.assembled == (joint in ("A",) or (joint == "D" and both_sides)) or joint in ("B", "C")


def test_tilted_axis_in_words():
    d = sr.diagnose(spatial_four_bar(1e-3))
    (found,) = d.find("nearly-redundant-rows")
    assert "they would depend on the other rows if `D` were turned by 1 mrad" in found.text
    assert "Put `D` in line" in found.advice
    assert "nearly redundant" in str(d)


def test_a_bar_of_wrong_length():
    """A parallelogram whose third crank is longer by 2 mm locks; its pin is off by that."""
    model = sr.library.build("parallelogram").finalize()

    def longer(c):
        return replace(c, b=replace(c.b, at=np.array([1.002, 0, 0]))) if c.name == "C2" else c

    d = sr.diagnose(replace(model, closures=tuple(map(longer, model.closures))))
    shifts = {x.joint: x.shift for x in d.misfit.blamed}
    assert shifts["C2"] == pytest.approx(2e-3, rel=0.05)
    assert shifts["C1"] == pytest.approx(1e-3, rel=0.05)  # three pins in line again, to first order
    assert "`C1` were moved by 0.99" in d.find("nearly-redundant-rows")[0].text


def test_exact_machines_are_not_called_misaligned():
    for name in ("bricard", "bennett", "sarrus", "andrews", "two_arms", "geared_chain", "n_four_bar"):
        assert sr.diagnose(sr.library.build(name)).misfit is None, name


def test_near_a_singular_position_is_not_a_misalignment():
    system = sr.compile(sr.library.build("slider_crank"))
    angle = np.pi / 2 - 1e-3
    d = sr.diagnose(system, system.state([angle, 2 * np.pi - 2 * angle]))
    assert d.rank == 1 and not d.find("nearly-redundant-rows")


# --- singular, shaky, still ------------------------------------------------------------------------------------------
def test_slider_crank_where_branches_meet():
    system = sr.compile(sr.library.build("slider_crank"))
    d = sr.diagnose(system, system.state([np.pi / 2, np.pi]))
    m = d.mobilities
    assert (m.instant, m.finite, m.singular, m.rank_near) == (2, 1, True, 1)
    (found,) = d.find("singular-positions")
    assert "1 constraint row(s) fewer" in found.text and "Mobility 2 here, 1 along each way on." in found.text
    assert not d.find("redundant-constraints")
    bad = sr.diagnose(system, system.state([np.pi / 2, np.pi], [1.0, 0.3]))  # neither branch: v' Φ_qq v ≠ 0
    (found,) = bad.find("rows-that-contradict-each-other")
    assert "With these velocities `slider.height` cannot stay satisfied" in found.text
    # d²/dt² of sin A + sin(A + B) at constant velocities 1 and 0.3, at A = π/2, B = π
    assert "690 mm per second squared" in found.text and abs(1.3**2 - 1.0 - 0.69) < 1e-12
    good = sr.diagnose(system, system.state([np.pi / 2, np.pi], [1.0, -2.0]))
    assert good.ok


def test_flat_parallelogram_is_singular():
    d = sr.diagnose(sr.library.build("parallelogram", angle=0.0))
    assert (d.mobility, d.mobilities.finite, d.mobilities.singular) == (2, 1, True)


def test_truss():
    d = sr.diagnose(braced_frame())
    assert (d.mobility, d.rows, d.rank, d.velocities) == (0, 5, 4, 4)
    assert d.mobilities.finite == 0
    (family,) = d.families
    bars = tuple(f"{name}.length" for name in FRAME)
    assert family.rows == bars and family.circuits == (bars,) and family.groups == tuple(FRAME)
    assert not any(d.determinate.values()) and set(d.determinate) == set(FRAME)
    assert d.sums == (tuple(FRAME),)
    assert "statically indeterminate to degree 1" in d.find("mobility-0")[0].text
    loose = sr.diagnose(braced_frame(without=("down",)))
    assert (loose.mobility, loose.rank) == (0, 4) and all(loose.determinate.values())
    assert "a structure, statically determinate" in loose.find("mobility-0")[0].text


def test_bars_in_line_are_shaky():
    d = sr.diagnose(bars_in_line())
    m = d.mobilities
    assert (m.instant, m.finite, m.singular, m.definite) == (1, 0, False, True)
    assert "lead nowhere" in d.find("mobility-that-is-only-infinitesimal")[0].text
    firm = sr.diagnose(bars_in_line(offset=0.1))
    assert (firm.mobilities.instant, firm.mobilities.finite) == (0, 0)


# --- put together wrongly --------------------------------------------------------------------------------------------
def test_an_open_loop():
    system = sr.compile(sr.library.build("four_bar"))
    closed = system.assemble({"A": 0.5})
    q = closed.q + np.array([0.0, 0.0, 0.2])
    d = sr.diagnose(system, system.state(q))
    assert not d.assembled and not d.ok and d.reactions is None
    (found,) = d.find("an-open-loop")
    gap = np.abs(system.terms(system.state(q)).phi)
    assert d.loop_error == pytest.approx(gap.max())
    assert "This state is not assembled: `D." in found.text and "open." in found.text
    assert "`system.assemble(near=state)` closes it" in found.advice
    assert d.problems == (found.text,)


def test_a_machine_that_cannot_be_assembled():
    d = sr.diagnose(sr.library.build("four_bar", L4=5.0))
    assert not d.ok and not d.assembled
    assert "constraint 'D' cannot be satisfied" in d.problems[0]
    assert not d.find("nearly-redundant-rows")  # it is another machine, not a misaligned one


def test_bad_descriptions():
    mech = sr.Mechanism("wreck")
    mech.revolute("A", mech.ground, mech.body("ghost"), "w")
    d = sr.diagnose(mech)
    assert not d.ok and any("'A'" in x for x in d.problems)
    assert "wreck" in str(d) and json.loads(json.dumps(d.to_dict()))["ok"] is False


def test_rods_that_contradict_each_other():
    mech = sr.Mechanism("pendulum on two strings", planar=True)
    bob = mech.body("bob", 1.0, inertia=0.1)
    mech.planar_joint("bob", mech.ground, bob, initial=(0.0, -1.0, 0.0))
    mech.distance("red", sr.point_on(mech.ground), sr.point_on(bob), 1.0)
    mech.distance("blue", sr.point_on(mech.ground), sr.point_on(bob), 1.01)
    d = sr.diagnose(mech)
    assert not d.ok
    (found,) = d.find("rows-that-contradict-each-other")
    assert "`red.length` and `blue.length` cannot be satisfied together" in found.text and "10 mm" in found.text
    assert set(found.names) == {"red", "blue"}


def test_motions_that_contradict_each_other():
    mech = sr.library.build("four_bar")
    mech.prescribe("slow", "A", lambda t: 1.0 + 0.2 * t)
    mech.prescribe("fast", "A", lambda t: 1.0 + 0.5 * t)
    system = sr.compile(mech)
    state = system.state(system.assemble(active={"fast": False}).q)
    (found,) = sr.diagnose(system, state).find("rows-that-contradict-each-other")
    assert "The motions prescribed by `slow` and `fast` contradict each other by 0.3 per second" in found.text
    agree = sr.diagnose(system, state, active={"fast": False})
    assert not agree.find("rows-that-contradict-each-other") and "fast" not in agree.determinate


def test_velocities_that_do_not_fit():
    system = sr.compile(sr.library.build("four_bar"))
    q = system.assemble().q
    d = sr.diagnose(system, system.state(q, [1.0, 0.0, 0.0]))
    assert d.assembled and not d.ok
    assert "`D.z`" in d.find("velocities-that-do-not-fit")[0].text
    assert sr.diagnose(system, system.assemble(velocities={"A": 1.0})).ok


def test_axes_the_wrong_way_round():
    system = sr.compile(spatial_four_bar())
    start = system.assemble()
    mech = sr.Mechanism("hinge", gravity=(0, 0, 0))
    body = mech.body("flap", 1.0, inertia=np.diag([1.0, 1.1, 1.2]))
    mech.spherical("ball", mech.ground, body)
    mech.close("hinge", sr.cylindrical_on(mech.ground, (0, 0, 0), "z"), sr.cylindrical_on(body, (0, 0, 0), "z"))
    flap = sr.compile(mech)
    d = sr.diagnose(flap, flap.state([0.0, 1.0, 0.0, 0.0]))  # half a turn about x
    assert "`hinge` have their axes parallel but pointing opposite ways" in d.problems[0]
    assert sr.diagnose(system, start).ok


# --- the record ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["parallelogram", "stewart", "rolling_disc", "slider_crank"])
def test_as_json(name):
    d = sr.diagnose(sr.library.build(name))
    data = json.loads(json.dumps(d.to_dict()))
    assert data["mobility"] == d.mobility and data["rank"] == d.rank
    assert data["redundant"] == list(d.redundant) and data["determinate"] == dict(d.determinate)
    assert data["actuation"]["kind"] == d.actuation.kind
    assert set(data["reactions"]["joints"]) == set(d.joints)
    assert len(data["findings"]) == len(d.findings) and all(
        f["page"].startswith("diagnosing.html#") for f in data["findings"]
    )


def test_prints(capsys):
    from rich.console import Console

    d = sr.diagnose(spatial_four_bar())
    Console(width=120).print(d)
    shown = capsys.readouterr().out
    for part in ("Grübler's count", "make `D` a point on a line", "diagnosing.html#redundant-constraints"):
        assert part in shown
    page = d.to_html()
    assert page.startswith("<!DOCTYPE html>") and "<code>D.tilt-1</code>" in page and "http" not in page
    assert "Joint reactions" in page and page.count("<tr>") > 10
    assert d._repr_html_() in page
    assert max(map(len, str(d).splitlines())) < 160


def test_a_lagrangian():
    import casadi as ca

    q, v = [ca.SX.sym(n) for n in "xz"], [ca.SX.sym(f"v{n}") for n in "xz"]
    bead = sr.Lagrangian(
        "bead on a hoop", q, v, kinetic=(v[0] ** 2 + v[1] ** 2) / 2, potential=9.81 * q[1],
        holonomic={"hoop": q[0] ** 2 + q[1] ** 2 - 1, "same hoop": 2 * (q[0] ** 2 + q[1] ** 2) - 2},
        initial={"x": 1.0},
    )  # fmt: skip
    d = sr.diagnose(bead)
    assert (d.mobility, d.rank, d.joints) == (1, 1, {})
    assert d.sums == (("hoop", "same hoop"),) and d.determinate == {"hoop": False, "same hoop": False}
    assert d.families[0].circuits == (("hoop", "same hoop"),)


def test_one_state_at_a_time():
    system = sr.compile(sr.library.build("four_bar"))
    with pytest.raises(StateError, match=r"diagnose: give one state \(state.row\(i\)"):
        sr.diagnose(system, system.state(np.zeros((2, 3))))


def test_groups_switched_off():
    system = sr.compile(sr.library.build("parallelogram"))
    d = sr.diagnose(system, system.assemble(), active={"C2": False})
    assert (d.mobility, d.spare, d.determinate) == (2, (), {"C1": True})
    assert "C2" not in d.joints and all(x.unique for x in d.joints.values())
