"""The closed-loop benchmark: a run that does not follow its reference does not count."""

import dataclasses
import json

import pytest

from bench import closed_loop


def test_all_cases_follow_their_references(tmp_path, capsys):
    out = tmp_path / "loop.json"
    assert closed_loop.main(["--quick", "--json", str(out)]) == 0
    rows = json.loads(out.read_text())["runs"]
    assert [(x["machine"], x["method"]) for x in rows] == [
        (name, method) for name in ("four_bar", "stewart") for method in ("dop853", "rk4")
    ]
    for x in rows:
        assert 0 < x["error"] <= x["bound"] and x["loop_error"] < 1e-12
        assert x["steps"] == pytest.approx(200, abs=20)  # one for each tick, but for the first
        assert x["real_time"] == pytest.approx(0.2 / x["cpu_s"])
    assert "four_bar" in capsys.readouterr().out


def test_a_machine_that_is_led_beyond_its_reach_fails_the_benchmark(monkeypatch):
    case = closed_loop.CASES[0]
    far = dataclasses.replace(case, reference=(lambda t, home: home + 50 * t,))
    monkeypatch.setattr(closed_loop, "CASES", (far,))
    assert closed_loop.main(["--quick"]) == 1
