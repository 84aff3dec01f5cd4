"""How runs end that cannot be finished: the status says when, where, why and what to do; nothing computed is lost."""

import logging
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import casadi as ca
import numpy as np
import pytest
from driving import G, ball, carts, library, pushed_arm, runaway

import sarrus as sr
from sarrus.errors import SarrusError, StateError
from sarrus.simulation.status import CODES
from sarrus.simulation.trajectory import Trajectory


def usable(traj, tmp_path, limit=1e-6):
    """What was computed can be looked at, saved, read again and drawn."""
    assert np.all(np.isfinite(traj.q)) and np.all(np.isfinite(traj.v)) and np.all(np.isfinite(traj.a))
    assert np.all(np.diff(traj.t) >= 0) and traj.status.t == traj.t[-1]
    audit = traj.audit()
    assert audit.ok(limit), audit
    for name in ("kept.nc", "kept.csv"):
        traj.save(tmp_path / name)
        again = Trajectory.load(tmp_path / name, traj.system)
        assert str(again.status) == str(traj.status)
        np.testing.assert_array_equal(again.q, traj.q)
    traj.plot(tmp_path / "kept.png")
    assert (tmp_path / "kept.png").stat().st_size > 10_000
    return audit


def says(traj, code, *parts):
    """The status has a code and a text with these parts."""
    assert traj.status.code == code and not traj.status.ok, traj.status
    text = str(traj.status)
    for part in parts:
        assert re.search(part, text), f"{part!r} is not in {text!r}"
    assert f"at t = {traj.t[-1]:.9g} s" in text


# --- Ctrl-C ----------------------------------------------------------------------------------------------------------
def interrupt_after(seconds):
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    return timer


@pytest.mark.parametrize("law", [None, np.sin, lambda t: float(np.sin(t))], ids=["none", "C", "python"])
def test_ctrl_c_returns_what_was_computed(law, tmp_path):
    system = library("pendulum")
    before, start = signal.getsignal(signal.SIGINT), system.assemble({"A": 0.0})
    sr.simulate(system, start, 0.1, inputs=law)  # so that nothing is being compiled when the key is pressed
    timer = interrupt_after(0.3)
    traj = sr.simulate(system, start, 1e9, inputs=law, output=100, rtol=1e-6)
    timer.join()
    says(traj, "interrupted", "at A = ", "What was computed is kept", r"`simulate\(system, trajectory, t_end=...\)`")
    assert signal.getsignal(signal.SIGINT) is before
    assert traj.t[-1] > 1.0
    on = sr.simulate(system, traj, traj.t[-1] + 1.0, inputs=law, output=100, rtol=1e-6)
    assert on.status.ok and on.t[-1] == traj.t[-1] + 1.0


def test_ctrl_c_does_not_wait_for_a_slow_function(tmp_path):
    calls = []

    def law(t):
        calls.append(t)
        if len(calls) == 20:
            signal.raise_signal(signal.SIGINT)
        return 1.0 if t < 1e9 else 0.0

    traj = sr.simulate(carts(), carts().assemble({}), 10.0, inputs={"x": law}, method="rk4", dt=0.01)
    says(traj, "interrupted")
    assert len(calls) <= 21  # none after it but that for the last row
    np.testing.assert_allclose(traj["x"], traj.t**2 / 4, rtol=1e-12, atol=1e-15)
    usable(traj, tmp_path, 1e-9)


def test_ctrl_c_twice_breaks_into_a_function_that_hangs():
    def law(t):
        if t > 0.5:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            time.sleep(60)
        return 1.0

    traj = sr.simulate(carts(), carts().assemble({}), 10.0, inputs={"x": law}, method="rk4", dt=0.01)
    says(traj, "interrupted")
    np.testing.assert_allclose(traj.t[-1], 0.5, atol=0.011)  # one step


def test_ctrl_c_in_an_action():
    def action(t, x):
        signal.raise_signal(signal.SIGINT)

    traj = sr.simulate(
        carts(), carts().assemble({}), 10.0, inputs={"x": 1.0}, events=sr.Event("e", lambda t: t - 0.7, action=action)
    )
    says(traj, "interrupted")
    assert traj.t[-1] >= 0.7


def test_ctrl_c_as_a_person_presses_it(tmp_path):
    """A real signal from outside, to a program of its own."""
    program = textwrap.dedent(f"""
        import sarrus as sr
        system = sr.compile(sr.library.build("four_bar"))
        start = system.assemble({{"A": 1.0}}, velocities={{"A": 1.0}})
        sr.simulate(system, start, 0.1)
        print("ready", flush=True)
        traj = sr.simulate(system, start, 1e8, output=1000, save={str(tmp_path / "run.csv")!r})
        print(traj.status.code, len(traj), traj.audit().loop.relative < 1e-12, flush=True)
    """)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as p:
        assert p.stdout.readline() == "ready\n"
        time.sleep(0.7)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=60)
    assert p.returncode == 0, err
    code, rows, good = out.split()
    assert code == "interrupted" and int(rows) > 1 and good == "True"
    assert "Interrupted at t = " in err  # the log
    saved = Trajectory.load(tmp_path / "run.csv", library("four_bar"))
    assert len(saved) == int(rows) and saved.status.code == "interrupted"


def test_a_thread_leaves_the_keyboard_alone():
    before, found = signal.getsignal(signal.SIGINT), []
    thread = threading.Thread(
        target=lambda: found.append(sr.simulate(carts(), carts().assemble({}), 1.0, inputs={"x": float}))
    )
    thread.start()
    thread.join()
    assert found[0].status.ok and signal.getsignal(signal.SIGINT) is before


def test_a_program_that_ignores_ctrl_c_goes_on_ignoring_it():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        timer = interrupt_after(0.05)
        traj = sr.simulate(carts(), carts().assemble({}), 0.2, inputs={"x": lambda t: time.sleep(5e-3) or 1.0})
        timer.join()
        assert traj.status.ok and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


# --- values that are not finite --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "law",
    [
        lambda t: np.sqrt(0.5 - t) ** 2 / (0.5 - t),
        lambda t: 1.0 if t < 0.5 else float("nan"),
        lambda t: 1.0 if t < 0.5 else -float("inf"),
    ],
    ids=["compiled", "nan", "inf"],
)
@pytest.mark.parametrize("method", ["dop853", "radau", "rk4"])
def test_an_input_that_is_not_finite(law, method, tmp_path):
    options = {"dt": 0.01} if method == "rk4" else {}
    with np.errstate(all="ignore"):
        traj = sr.simulate(carts(), carts().assemble({}), 2.0, inputs={"x": law}, method=method, **options)
    says(
        traj, "not finite", "input 'x' is -?(nan|inf) shortly after at x = ", "Check inputs, user loads and parameters"
    )
    np.testing.assert_allclose(traj.t[-1], 0.5, atol=0.011 if method == "rk4" else 1e-6)
    np.testing.assert_allclose(traj["x"], traj.t**2 / 4, rtol=1e-10, atol=1e-15)
    usable(traj, tmp_path)


def test_not_finite_from_the_start(tmp_path):
    traj = sr.simulate(carts(), carts().assemble({}), 1.0, inputs={"y": lambda t: float("nan")})
    says(traj, "not finite", "at t = 0 s: input 'y' is nan")
    assert len(traj) == 1
    usable(traj, tmp_path)


def test_a_load_of_the_machine_that_is_not_finite(tmp_path):
    x, v = ca.SX.sym("x"), ca.SX.sym("vx")
    system = sr.compile(
        sr.Lagrangian("cliff", coordinates=[x], velocities=[v], kinetic=v * v / 2, forces=ca.sqrt(1 - x))
    )
    with np.errstate(all="ignore"):
        traj = sr.simulate(system, system.state([0.0], [1.0]), 5.0)
    says(traj, "not finite", "at x = 1|at x = 0.99", "the root of a negative number")
    assert 0.999 < traj["x"][-1] <= 1.0
    usable(traj, tmp_path)


# --- motions that cannot go on ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("power, t_end", [(1, 50.0), (2, 10.0)])
def test_divergence(power, t_end, tmp_path):
    system = runaway(power)
    traj = sr.simulate(system, system.state([0.0], [1.0]), t_end)
    says(traj, "diverged", r"the speed of x reached \S+e\+\d+ at x = ", "a wrong sign, is the usual cause")
    assert traj.stats.steps < 5000  # it does not creep
    if power == 1:
        assert np.abs(traj.v[-1, 0]) > 1e20
        np.testing.assert_allclose(traj["x.v"], np.exp(20 * traj.t), rtol=1e-5)
        usable(traj, tmp_path)
    else:
        np.testing.assert_allclose(traj.t[-1], 1.0, rtol=1e-6)
        near = traj.t < 0.999
        np.testing.assert_allclose(traj["x.v"][near], 1 / (1 - traj.t[near]), rtol=1e-4)
        assert np.isfinite(traj.audit().energy.relative)


def test_a_fixed_step_that_is_too_long_diverges():
    mech = sr.Mechanism("stiff")
    mech.prismatic("x", mech.ground, mech.body("b", 1.0), "x")
    mech.joint_spring("s", "x", stiffness=1e6)
    system = sr.compile(mech)
    traj = sr.simulate(system, system.assemble({"x": 1.0}), 10.0, method="rk4", dt=0.01)
    says(traj, "diverged", "a fixed step `dt` that is too long")


def test_a_force_that_jumps_back_and_forth_leaves_no_step():
    """Dry friction without smoothing: the speed chatters about zero."""
    traj = sr.simulate(
        carts(), carts().state([0.0, 0.0], [1.0, 0.0]), 2.0, rtol=1e-10, max_steps=4000,
        inputs={"x": lambda t, x: -4.0 if x["x.v"] > 0 else 4.0},
    )  # fmt: skip
    assert traj.status.code in ("step too small", "too many steps"), traj.status
    assert "method='radau'" in str(traj.status)
    np.testing.assert_allclose(traj.t[-1], 0.5, atol=0.02)
    moving = traj.t < 0.499
    np.testing.assert_allclose(traj["x"][moving], (traj.t - traj.t**2)[moving], rtol=0, atol=1e-9)


def test_a_tolerance_out_of_reach(tmp_path):
    system = library("four_bar")
    start = system.assemble({"A": 1.0}, velocities={"A": 1.0})
    for name in ("rtol", "loop_error"):
        with pytest.raises(StateError, match=f"{name}: expected 1e-15 or more, got 1e-16; numbers have 16 digits"):
            sr.simulate(system, start, 1.0, **{name: 1e-16})
    closest = sr.simulate(system, start, 1.0, loop_error=1e-15)  # loops close to the last digits of the coordinates
    assert closest.status.ok and closest.audit().loop.relative < 1e-14
    finest = sr.simulate(system, start, 1.0, rtol=1e-15, atol=1e-22)  # rounding is no reason to stop
    assert finest.status.ok and finest.stats.steps < 1000
    jumping = {"x": lambda t, x: -4.0 if x["x.v"] > 0 else 4.0}
    traj = sr.simulate(
        carts(), carts().state([0.0, 0.0], [1.0, 0.0]), 2.0, rtol=1e-14, inputs=jumping, method="dopri5",
        max_steps=5000,
    )  # fmt: skip
    assert traj.status.code in ("tolerance unreachable", "too many steps"), traj.status
    assert "Ask for a larger rtol" in str(traj.status) or "ask for a larger rtol" in str(traj.status)


def test_a_moving_constraint_that_leaves_its_reach(tmp_path):
    system = pushed_arm()
    traj = sr.simulate(system, system.assemble(), 2.0)
    says(traj, "assembly lost", "constraint '(C|push)' cannot be satisfied by the next step", "moving constraints stay")
    np.testing.assert_allclose(traj.t[-1], 0.5, atol=1e-5)  # 2 m are reached then
    early = traj.t < 0.49
    np.testing.assert_allclose(traj["S"][early], 1.5 + traj.t[early], rtol=0, atol=1e-11)
    np.testing.assert_allclose(traj["A"][early], np.arccos((1.5 + traj.t[early]) / 2), rtol=0, atol=1e-7)
    slow = sr.simulate(system, system.assemble(), 2.0, method="rk4", dt=1e-3)
    says(slow, "assembly lost", "constraint '(C|push)'")
    usable(slow, tmp_path, {"loop": 1e-12, "motion": 1e-10})


def test_too_many_steps(tmp_path):
    system = library("four_bar")
    traj = sr.simulate(system, system.assemble({"A": 1.0}, velocities={"A": 1.0}), 100.0, max_steps=12)
    says(traj, "too many steps", "12 steps, the last .* s long, at A = ", "Raise `max_steps`")
    assert traj.stats.steps == 12 and len(traj) == 13
    usable(traj, tmp_path)
    on = sr.simulate(system, traj, traj.t[-1] + 0.5)
    assert on.status.ok and on.audit().ok()
    sparse = sr.simulate(system, system.assemble({"A": 1.0}, velocities={"A": 1.0}), 100.0, max_steps=12, output=50)
    np.testing.assert_array_equal(sparse.t, [0.0, traj.t[-1]])  # the last state is kept in any case
    np.testing.assert_array_equal(sparse.a[-1], traj.a[-1])


def test_the_last_row_has_its_own_inputs(tmp_path):
    """Not those of a trial beyond it."""
    for law in (lambda t, x: 3 * t + x["x"], lambda t, x: float(3 * t + x["x"])):
        traj = sr.simulate(carts(), carts().assemble({}), 100.0, inputs={"x": law}, max_steps=7, output=50)
        np.testing.assert_allclose(traj["x.u"], 3 * traj.t + traj["x"], rtol=1e-13)
        assert traj.audit().ok({"motion": 1e-12})


# --- files -----------------------------------------------------------------------------------------------------------
def short_run(save):
    system = library("four_bar")
    return sr.simulate(system, system.assemble({"A": 1.0}, velocities={"A": 1.0}), 0.3, save=save)


@pytest.mark.parametrize("ending", ["nc", "csv"])
def test_a_run_is_saved_however_it_ends(ending, tmp_path):
    path = tmp_path / f"run.{ending}"
    traj = short_run(path)
    np.testing.assert_array_equal(Trajectory.load(path, traj.system).q, traj.q)
    system = library("four_bar")
    start = system.assemble({"A": 1.0}, velocities={"A": 1.0})
    failed = sr.simulate(system, start, 10.0, max_steps=3, save=path)
    assert Trajectory.load(path, system).status == failed.status


@pytest.mark.parametrize("ending", ["nc", "csv"])
def test_a_full_disk_loses_the_file_but_not_the_run(ending, tmp_path, caplog):
    """The file is written under another name first; here this name leads to a device that is always full."""
    (tmp_path / f".run.{ending}.{os.getpid()}.part").symlink_to("/dev/full")
    with caplog.at_level(logging.ERROR, logger="sarrus"):
        traj = short_run(tmp_path / f"run.{ending}")
    assert traj.status.ok and traj.t[-1] == 0.3
    assert "four-bar: not saved: cannot write" in caplog.text and "save it elsewhere" in caplog.text
    assert not (tmp_path / f"run.{ending}").exists()
    traj.save(tmp_path / f"elsewhere.{ending}")
    assert len(Trajectory.load(tmp_path / f"elsewhere.{ending}", traj.system)) == len(traj)


@pytest.mark.parametrize("error", [MemoryError("too much"), KeyboardInterrupt(), TypeError("what is this")])
def test_no_error_while_saving_loses_the_run(error, tmp_path, caplog, monkeypatch):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(np, "savetxt", fail)
    assert short_run(tmp_path / "run.csv").t[-1] == 0.3
    assert f"four-bar: not saved: {str(error) or 'KeyboardInterrupt'}" in caplog.text
    assert list(tmp_path.iterdir()) == []


def test_a_limit_on_file_sizes_loses_the_file_but_not_the_run(tmp_path):
    """A real refusal by the operating system in the middle of writing, in a program of its own."""
    program = textwrap.dedent(f"""
        import resource
        import sarrus as sr
        system = sr.compile(sr.library.build("four_bar"))
        start = system.assemble({{"A": 1.0}}, velocities={{"A": 1.0}})
        sr.simulate(system, start, 0.1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        for ending in ("csv", "nc"):
            traj = sr.simulate(system, start, 5.0, max_step=0.01, save={str(tmp_path)!r} + "/run." + ending)
            print(traj.status.code, len(traj) > 100, traj.audit().ok())
    """)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert result.stdout.splitlines() == ["finished True True"] * 2, result.stderr
    assert result.stderr.count("four-bar: not saved: cannot write") == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name, text",
    [
        ("run.xls", "unknown ending '.xls'; expected '.nc'"),
        ("run", "unknown ending ''; expected '.nc'"),
        ("nowhere/run.nc", "cannot write .*: expected a folder that exists and may be written to"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_run(name, text, tmp_path):
    with pytest.raises(SarrusError, match=text):
        short_run(tmp_path / name)


@pytest.mark.parametrize("ending", ["nc", "csv"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other"])
def test_a_damaged_file_is_refused(ending, damage, tmp_path):
    path = tmp_path / f"run.{ending}"
    traj = short_run(path)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        path.write_bytes(content[: len(content) * 2 // 3])
    elif damage == "flipped":
        if ending == "csv":  # a digit that matters: the seventeenth may stand for the same number
            place = content.rindex(b".") + 1
        else:
            place = max(k for k, byte in enumerate(content) if byte) - 40
        content[place] ^= 1
        path.write_bytes(content)
    else:
        path.write_bytes(b"" if damage == "empty" else b"hello, world\n")
    with pytest.raises(SarrusError, match=r"cannot read .* save the motion again, or take a copy of the file"):
        Trajectory.load(path, traj.system)


# --- in general ------------------------------------------------------------------------------------------------------
def test_every_ending_says_what_to_do():
    from sarrus.simulation.status import Status

    for code in CODES:
        text = str(Status(code, "somewhere", 1.5))
        assert "at t = 1.5 s: somewhere." in text
        assert code == "finished" or len(text.split("somewhere. ")[1]) > 30


def test_a_failure_in_the_middle_of_a_chain_keeps_all_before_it(tmp_path):
    """Run, continue, bounce, then fail: one record from the very start."""
    floor = sr.Event("floor", lambda t, x: x["z"], -1, action=lambda t, x: sr.Change(velocities={"z": -x["z.v"]}))
    part = sr.simulate(ball(), ball().state([1.0]), 0.3, active={"floor": False}, rtol=1e-11)

    def guard(t, x):
        if t > 1.6:
            raise RuntimeError("sensor lost")
        return 1.0

    traj = sr.simulate(ball(), part, 5.0, events=[floor, sr.Event("sensor", guard)], rtol=1e-11)
    says(traj, "callback failed", "guard of event 'sensor' .* raised RuntimeError: sensor lost")
    assert traj.t[0] == 0.0 and 1.3 < traj.t[-1] <= 1.6
    np.testing.assert_allclose([e.t for e in traj.events], np.sqrt(2 / G) * np.array([1, 3]), rtol=0, atol=1e-10)
    usable(traj, tmp_path, 1e-9)
