"""`sarrus.check`: counts, mobility, rank, redundant rows, notes and problems; and how a Check prints itself."""

import json

import numpy as np
import pytest

import sarrus as sr

# name: bodies, positions, velocities, rows, rank, mobility
COUNTS = {
    "pendulum": (1, 1, 1, 0, 0, 1),
    "four_bar": (3, 3, 3, 3, 2, 1),
    "bricard": (5, 5, 5, 5, 4, 1),
    "parallelogram": (4, 4, 4, 6, 3, 1),
    "sarrus": (5, 5, 5, 5, 4, 1),
    "spherical_four_bar": (3, 3, 3, 5, 2, 1),
    "stewart": (13, 25, 24, 18, 18, 6),
    "delta": (10, 22, 21, 18, 18, 3),
    "rolling_disc": (1, 7, 6, 3, 3, 3),
    "two_arms": (7, 9, 9, 12, 6, 3),
    "geared_chain": (6, 6, 6, 2, 2, 4),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name):
    result = sr.check(sr.library.build(name))
    found = (result.bodies, result.positions, result.velocities, result.rows, result.rank, result.mobility)
    assert found == COUNTS[name]
    assert result.problems == ()
    assert result.loop_error <= 1e-12 * sr.compile(sr.library.build(name)).layout.length
    assert len(result.singular_values) == min(result.rows, result.velocities)
    assert sum(s > result.tolerance for s in result.singular_values) == result.rank


def test_redundant_and_idle_rows_by_name():
    result = sr.check(sr.library.build("parallelogram"))
    assert set(result.idle) == {"C1.y", "C2.y"}
    assert set(result.redundant) == {"C1.x", "C1.y", "C1.z", "C2.x", "C2.y", "C2.z"}
    text = str(result)
    assert "redundant: 1 of these 4 rows can go: C1.x, C1.z, C2.x, C2.z" in text
    assert "always satisfied: C1.y, C2.y" in text


def test_a_sound_machine_has_nothing_redundant():
    result = sr.check(sr.library.build("stewart"))
    assert (result.redundant, result.idle, result.notes) == ((), (), ())
    assert "none rejected" in str(result) and "redundant" not in str(result)


def test_the_text_has_the_counts():
    text = str(sr.check(sr.library.build("four_bar")))
    assert text.startswith("four-bar\n")
    for part in (
        "bodies 3, positions 3, velocities 3, inputs 1 (A)",
        "constraints 1 (D)",
        "rows 3, independent 2, so mobility 3 - 2 = 1",
        "tolerance 1e-06",
        "always satisfied: D.y",
        "assembled, loop error",
    ):
        assert part in text


def test_it_takes_what_compile_takes_and_systems():
    mech = sr.library.build("four_bar")
    results = [sr.check(x) for x in (mech, mech.finalize(), sr.compile(mech))]
    assert results[0] == results[1] == results[2]


def test_mobility_zero_is_noted():
    mech = sr.library.build("four_bar")
    mech.lock("brake", "A", 1.0)
    result = sr.check(mech)
    assert (result.mobility, result.rank, result.problems) == (0, 3, ())
    assert any("mobility 0: a structure" in note for note in result.notes)
    assert "note: mobility 0" in str(result)


def test_redundant_actuation_is_noted():
    result = sr.check(sr.library.build("two_arms"))
    assert "6 inputs for mobility 3: redundantly actuated" in result.notes


def test_a_singular_start_is_noted():
    """All bars along one line: less rank there than anywhere else."""
    result = sr.check(sr.library.build("parallelogram", angle=0.0))
    assert (result.rank, result.mobility) == (3, 1)
    assert any("starting assembly is a singular configuration: 1 row(s)" in note for note in result.notes)


def test_bad_descriptions_are_reported_not_raised():
    mech = sr.Mechanism("wreck")
    mech.revolute("A", mech.ground, mech.body("ghost"), "w")
    mech.body("island", 1.0, inertia=np.eye(3))
    result = sr.check(mech)
    assert result.name == "wreck" and len(result.problems) >= 2
    assert any("'A'" in x and "'w'" in x for x in result.problems)
    assert any("'island'" in x for x in result.problems)
    assert str(result).count("problem:") == len(result.problems)
    assert "assembled" not in str(result)


def test_machines_that_cannot_be_assembled_are_reported():
    result = sr.check(sr.library.build("four_bar", L4=5.0))
    assert (result.bodies, result.velocities, result.rows) == (3, 3, 3)
    assert len(result.problems) == 1 and "constraint 'D' cannot be satisfied" in result.problems[0]
    assert "assembled" not in str(result)


def test_plain_data_for_json():
    result = sr.check(sr.library.build("parallelogram"))
    data = json.loads(json.dumps(result.to_dict()))
    assert data["mobility"] == 1 and data["rank"] == 3 and data["rows"] == 6
    assert sorted(data["redundant"]) == sorted(result.redundant)
    assert set(data) == {field for field in vars(result)}


def test_a_lagrangian_can_be_checked():
    import casadi as ca

    q, v = [ca.SX.sym(n) for n in "xz"], [ca.SX.sym(f"v{n}") for n in "xz"]
    bead = sr.Lagrangian(
        "bead on a hoop", q, v, kinetic=(v[0] ** 2 + v[1] ** 2) / 2, potential=9.81 * q[1],
        holonomic={"hoop": q[0] ** 2 + q[1] ** 2 - 1, "same hoop": 2 * (q[0] ** 2 + q[1] ** 2) - 2},
        initial={"x": 1.0},
    )  # fmt: skip
    result = sr.check(bead)
    assert (result.name, result.velocities, result.rows, result.rank, result.mobility) == ("bead on a hoop", 2, 2, 1, 1)
    assert set(result.redundant) == {"hoop", "same hoop"}
