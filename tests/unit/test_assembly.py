"""Assembly: what is given is held, the rest closes; branches, redundant rows, singular guesses, moving constraints."""

import numpy as np
import pytest

import sarrus as sr
from sarrus.dynamics.manifold import difference

GRASHOF = dict(L1=0.5, L2=1.2, L3=0.9, L4=1.1)  # 0.5 + 1.2 < 0.9 + 1.1: the crank turns all the way
EPS = np.finfo(float).eps


def compiled(name: str, **parameters) -> sr.System:
    return sr.compile(sr.library.build(name, **parameters))


def loop_error(system: sr.System, state: sr.State) -> float:
    """Largest residual in units of the machine's length (1 for angles)."""
    unit = np.array([system.layout.length if row.unit == "m" else 1.0 for row in system.layout.rows])
    return float(np.max(np.abs(system.terms(state).phi) / unit, initial=0.0))


def slip(system: sr.System, state: sr.State) -> float:
    x = system.terms(state)
    return float(np.max(np.abs(x.A @ state.v - x.a), initial=0.0))


def rocker_angle(a: float, bend: int = -1) -> float:
    """Closed form of coordinate C of the four-bar: the coupler and the rocker reach from the crank's end to D."""
    reach = GRASHOF["L4"] - GRASHOF["L1"] * np.exp(1j * a)
    cosine = (abs(reach) ** 2 - GRASHOF["L2"] ** 2 - GRASHOF["L3"] ** 2) / (2 * GRASHOF["L2"] * GRASHOF["L3"])
    return bend * float(np.arccos(cosine))


# --- every machine of the library ------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sr.library.names())
def test_fifty_disturbed_guesses_all_close(name, rng):
    system = compiled(name)
    start = system.assemble()
    scales = np.array(system.layout.scales)
    worst = loop_error(system, start)
    for _ in range(50):
        guess = system.state(system.retract(start.q, rng.uniform(-0.3, 0.3, system.layout.nv) * scales))
        state = system.assemble(near=guess)
        worst = max(worst, loop_error(system, state))
    assert worst <= 1e-12


@pytest.mark.parametrize("name", sr.library.names())
def test_the_all_zero_guess_closes(name):
    system = compiled(name)
    zero = np.zeros(system.layout.nq)
    for turn in system.layout.turns:
        zero[turn.q] = 1.0
    assert loop_error(system, system.assemble(near=system.state(zero))) <= 1e-12


@pytest.mark.parametrize("name", sr.library.names())
def test_a_closed_guess_stays_where_it_is(name):
    system = compiled(name)
    start = system.assemble()
    again = system.assemble(near=start)
    moved = np.abs(difference(system.layout, start.q, again.q)) / np.array(system.layout.scales)
    assert np.max(moved) <= 1e-11


# --- what is given is held -------------------------------------------------------------------------------------------
def test_partial_positions_are_held_exactly():
    system = compiled("planar_platform")
    start = system.assemble({"platform.x": 0.05, "platform.angle": 0.7})
    given = {"platform.x": 0.05, "platform.angle": 0.7, "hip2": start["hip2"] + 0.05}
    state = system.assemble(given, near=start)
    for name, value in given.items():
        assert state[name] == value
    assert loop_error(system, state) <= 1e-12
    assert abs(state["platform.z"] - start["platform.z"]) > 1e-3


def test_partial_velocities_are_held_exactly():
    system = compiled("planar_platform")
    given = {"platform.x": 0.3, "platform.z": -0.2}
    state = system.assemble({"platform.angle": 0.7}, velocities=given)
    for name, value in given.items():
        assert state[name + ".v"] == value
    assert slip(system, state) <= 1e-14
    assert state["platform.angle"] == 0.7


@pytest.mark.parametrize("name", ["two_arms", "planar_platform", "geared_chain", "stewart"])
def test_velocities_are_completed_with_the_least_kinetic_energy(name, rng):
    system = compiled(name)
    start = system.assemble()
    free = [n for n in system.layout.v_names if n not in ("q2", "q3")]  # (gears tie these to q1)
    given = {free[0]: 0.7, free[-1]: -0.4}
    state = system.assemble(near=start, velocities=given)
    x = system.terms(state)
    held = np.array([[float(n == name) for n in system.layout.v_names] for name in given])
    rows, right = np.vstack([x.A, held]), np.concatenate([x.a, list(given.values())])
    particular = np.linalg.lstsq(rows, right, rcond=1e-10)[0]
    _, sigma, Vt = np.linalg.svd(rows)
    Z = Vt[np.sum(sigma > 1e-9) :].T
    best = particular - Z @ np.linalg.solve(Z.T @ x.M @ Z, Z.T @ x.M @ particular)
    assert Z.shape[1] > 0
    np.testing.assert_allclose(state.v, best, atol=1e-11 * max(1.0, np.abs(best).max()))
    assert system.energy(state).kinetic == pytest.approx(best @ x.M @ best / 2, rel=1e-10)


def test_nothing_given_is_at_rest():
    system = compiled("five_bar")
    assert not np.any(system.assemble().v)


def test_names_with_suffix():
    system = compiled("five_bar")
    plain = system.assemble({"A": 2.0}, velocities={"E": 1.0})
    suffixed = system.assemble({"A.q": 2.0}, velocities={"E.v": 1.0})
    np.testing.assert_array_equal(plain.q, suffixed.q)
    np.testing.assert_array_equal(plain.v, suffixed.v)


# --- branches --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("steps", [16, 72])
@pytest.mark.parametrize("bend", [-1, 1])
def test_near_follows_a_branch_over_a_full_turn(steps, bend):
    system = compiled("four_bar", **GRASHOF, angle=0.5)
    state = first = system.assemble({"A": 0.5}, signs={"C": bend})
    before = state.q
    for k in range(1, steps + 1):
        state = system.assemble({"A": 0.5 + 2 * np.pi * k / steps}, near=state)
        assert state["C"] == pytest.approx(rocker_angle(state["A"], bend), abs=1e-10)
        assert np.max(np.abs(state.q - before)) < 5 * 2 * np.pi / steps
        before = state.q
    turn = state.q - first.q
    np.testing.assert_allclose(turn, [2 * np.pi, -2 * np.pi, 0], atol=1e-10)


def test_signs_pick_the_elbow():
    system = compiled("four_bar", **GRASHOF)
    for sign in (1, -1, 1.0, "+", "-"):
        bend = {"+": 1, "-": -1}.get(sign, sign)
        state = system.assemble({"A": 0.8}, signs={"C": sign})
        assert state["C"] == pytest.approx(rocker_angle(0.8, int(bend)), abs=1e-11)
        assert loop_error(system, state) <= 1e-12


def test_all_four_assemblies_of_a_five_bar():
    system = compiled("five_bar")
    seen = set()
    for b in (-1, 1):
        for d in (-1, 1):
            state = system.assemble(signs={"B": b, "D": d})
            assert np.sign(np.sin(state["B"])) == b and np.sign(np.sin(state["D"])) == d
            assert loop_error(system, state) <= 1e-12
            seen.add(tuple(np.round(state.q, 6)))
    assert len(seen) == 4


def test_the_coordinates_returned_have_the_signs_asked_for():
    system = compiled("five_bar")
    for b in (-1, 1):
        for d in (-1, 1):
            state = system.assemble(signs={"B": b, "D": d})
            assert (np.sign(state["B"]), np.sign(state["D"])) == (b, d)


def test_near_by_names_picks_the_nearer_elbow():
    system = compiled("four_bar", **GRASHOF)
    for bend in (1, -1):
        state = system.assemble({"A": 0.8}, near={"C": 0.9 * rocker_angle(0.8, bend)})
        # the mirror image of the coupler goes with it
        assert state["C"] == pytest.approx(rocker_angle(0.8, bend), abs=1e-11)


def test_of_two_assemblies_the_nearest_is_taken(rng):
    """From random guesses near one branch; the other one is half a radian or more away."""
    system = compiled("four_bar", **GRASHOF)
    branches = {bend: system.assemble({"A": 0.8}, signs={"C": bend}) for bend in (1, -1)}
    for state in branches.values():
        for _ in range(20):
            guess = system.state(state.q + rng.uniform(-0.2, 0.2, 3) * [0, 1, 1])
            np.testing.assert_allclose(system.assemble({"A": 0.8}, near=guess).q, state.q, atol=1e-10)


# --- redundant rows and singular guesses -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "driver", "expected"),
    [
        ("parallelogram", "A0", lambda a: {"A1": a, "A2": a, "B": -a}),
        ("sarrus", "A1", lambda a: {"A2": a, "B1": -2 * a, "B2": -2 * a, "C1": a}),
        ("bricard", "J0", lambda a: {}),
    ],
)
@pytest.mark.parametrize("angle", [0.2, 0.45, 0.9])
def test_redundant_machines(name, driver, expected, angle):
    system = compiled(name)
    state = system.assemble({driver: angle}, velocities={driver: 1.5})
    assert state[driver] == angle and state[driver + ".v"] == 1.5
    assert loop_error(system, state) <= 1e-12 and slip(system, state) <= 1e-11
    for other, value in expected(angle).items():
        assert state[other] == pytest.approx(value, abs=1e-11)
        assert state[other + ".v"] == pytest.approx(1.5 * value / angle, abs=1e-10)


def test_folded_flat_four_bar():
    """All four bars on one line: the rows along the line vanish."""
    system = compiled("four_bar", L1=1.0, L2=1.0, L3=1.0, L4=1.0)
    flat = {"A": 0.0, "B": 0.0, "C": np.pi}
    exactly = system.assemble(flat)
    assert loop_error(system, exactly) <= 1e-12 and [exactly[k] for k in flat] == list(flat.values())
    for angle in (0.3, -0.2, 1.0):
        state = system.assemble({"A": angle}, near=flat)
        assert state["A"] == angle and loop_error(system, state) <= 1e-12


def test_slider_crank_at_and_from_its_singular_position():
    system = compiled("slider_crank")
    at = system.assemble({"A": np.pi / 2})
    assert at["A"] == np.pi / 2 and loop_error(system, at) <= 1e-12
    assert at["B"] == pytest.approx(np.pi, abs=2e-6)  # a double root: the angle is known to the root of the residual
    for angle in (1.2, 2.0):
        state = system.assemble({"A": angle}, near={"A": np.pi / 2, "B": np.pi})
        assert state["A"] == angle and loop_error(system, state) <= 1e-12


def test_two_branches_meet_and_both_can_be_chosen():
    system = compiled("slider_crank")
    for b in (2 * np.pi - 2 * 1.4, np.pi):  # slider branch, folded branch
        assert system.assemble({"A": 1.4}, near={"B": b + 0.02})["B"] == pytest.approx(b, abs=1e-10)


# --- quaternions -----------------------------------------------------------------------------------------------------
def test_quaternions_are_held_and_normalised():
    system = compiled("rolling_disc")
    quat = np.array([2.0, 0.3, -0.2, 0.5])
    state = system.assemble({"disc.quat_wxyz": quat, "disc.position.x": 0.25})
    np.testing.assert_allclose(state["disc.quat_wxyz"], quat / np.linalg.norm(quat), rtol=4 * EPS)
    assert state["disc.position.x"] == 0.25 and loop_error(system, state) <= 1e-12
    tilt = system.frame(state, "disc")[1][2, 1]  # height of the axis' direction
    assert state["disc.position.z"] == pytest.approx(0.5 * np.sqrt(1 - tilt**2), abs=1e-12)


def test_velocities_of_a_rolling_disc():
    system = compiled("rolling_disc")
    spin = (0.0, 3.0, 0.0)
    state = system.assemble(velocities={"disc.omega": spin})
    np.testing.assert_array_equal(state["disc.omega"], spin)
    np.testing.assert_allclose(state["disc.velocity"], [1.5, 0, 0], atol=1e-12)  # spin about y times the radius


def test_a_row_that_is_only_rounding_does_not_contradict_a_velocity():
    disc = compiled("rolling_disc")
    state = disc.assemble(velocities={"disc.omega.y": 3.0})  # along one row all terms cancel or are rounding
    assert state["disc.omega.y"] == 3.0 and slip(disc, state) < 1e-14
    np.testing.assert_allclose(abs(state["disc.velocity.x"]), 3.0 * 0.5, rtol=1e-12)
    slider = compiled("slider_crank")  # the row vanishes where the crank points down
    state = slider.assemble({"A": -np.pi / 2, "B": 3 * np.pi}, velocities={"A": 1.0, "B": -2.0})
    assert slip(slider, state) < 1e-14
    broken = compiled("four_bar")
    with pytest.raises(sr.AssemblyError, match="no velocities satisfy constraint 'D'"):
        broken.assemble({"A": 1.0}, velocities={"A": 1.0, "B": 1.0, "C": 1.0})


def test_a_ball_joint_can_be_placed():
    system = compiled("stewart")
    state = system.assemble({"platform.position": (0.1, -0.05, 2.1), "platform.quat_wxyz": (0.99, 0.05, 0.1, 0.0)})
    assert loop_error(system, state) <= 1e-12
    np.testing.assert_array_equal(state["platform.position"], (0.1, -0.05, 2.1))
    R = sr.rotation_about((0.05, 0.1, 0), 2 * np.arctan2(np.hypot(0.05, 0.1), 0.99))
    for i in range(6):
        top = system.description.closures[i].b.at
        foot = system.description.joints[1 + 2 * i].at
        length = np.linalg.norm(np.array([0.1, -0.05, 2.1]) + R @ top - foot)
        assert abs(state[f"leg{i}"]) == pytest.approx(length, rel=1e-12)


# --- moving constraints and switched-off ones ------------------------------------------------------------------------
def test_a_prescribed_motion():
    mech = sr.library.build("four_bar", **GRASHOF)
    mech.prescribe("drive", "A", lambda t: 0.8 + 0.5 * t + 0.25 * t * t)
    system = sr.compile(mech)
    for t in (0.0, 0.4, 1.5):
        state = system.assemble(t=t)
        assert state.t == t
        assert state["A"] == pytest.approx(0.8 + 0.5 * t + 0.25 * t * t, abs=1e-12)
        assert state["A.v"] == pytest.approx(0.5 + 0.5 * t, rel=1e-12)
        assert state["C"] == pytest.approx(rocker_angle(state["A"]), abs=1e-11)
        assert slip(system, state) <= 1e-12
        assert system.acceleration(state)[0] == pytest.approx(0.5, rel=1e-11)


def test_constraints_can_be_left_out():
    system = compiled("four_bar", **GRASHOF)
    state = system.assemble({"A": 0.8, "B": 0.1, "C": 0.2}, {"A": 1.0, "B": 2.0, "C": 3.0}, active={"D": False})
    np.testing.assert_array_equal(state.q, [0.8, 0.1, 0.2])
    np.testing.assert_array_equal(state.v, [1, 2, 3])
    with pytest.raises(sr.AssemblyError, match="'D'"):
        system.assemble({"A": 0.8, "B": 0.1, "C": 0.2})


def test_a_coordinate_held_at_rest_by_a_constraint_does_not_stop_others_from_moving():
    """Its velocity is zero but for rounding, which must be judged by the speed of the machine."""
    mech = sr.Mechanism("two legs", planar=True)
    hip = mech.body("hip", 10.0, inertia=1.0)
    mech.planar_joint("hip", mech.ground, hip)
    mech.lock("upright", "hip.angle")
    for name in ("left", "right"):
        leg = mech.body(name, 5.0, com=(0, -0.5), inertia=0.1)
        mech.revolute(name, hip, leg)
    mech.close("foot", sr.plane_on(mech.ground, (0, -1), "z"), sr.point_on("left", (0, -1)))
    system = sr.compile(mech)
    state = system.assemble({"left": -0.27, "right": 0.27}, {"left": -0.4, "right": -1.1})
    terms = system.terms(state)
    np.testing.assert_allclose(terms.A @ state.v, 0, atol=1e-14)
    assert (state["left.v"], state["right.v"]) == (-0.4, -1.1)
