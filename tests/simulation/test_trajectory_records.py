"""Status, costs, crossings and events print what a person needs: when, where, why and what to do."""

import numpy as np
import pytest

import sarrus as sr
from sarrus.simulation.status import CODES, Crossing, EventRecord, Stats, Status, where


@pytest.mark.parametrize("code", CODES)
def test_status_says_when_where_and_what_to_do(code):
    status = Status(code, "at A = 1.5 the row of 'slider' vanished", 2.5)
    text = str(status)
    assert "t = 2.5 s" in text
    assert "the row of 'slider' vanished." in text
    assert "\n" not in text
    assert status.ok == (code in ("finished", "event", "crossing"))
    if code != "finished":
        assert len(text.split("vanished. ")[1]) > 40  # the cure


def test_status_without_text_is_a_sentence():
    assert str(Status("finished", "", 10.0)) == "Finished at t = 10 s."


def test_unknown_code_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'broken': expected one of finished, .*assembly lost"):
        Status("broken", "", 0.0)


def test_stats_leave_out_what_does_not_apply():
    fixed = str(Stats("rk4", steps=10, evaluations=40, smallest_step=0.1, mean_step=0.1, seconds=0.01))
    assert "rtol" not in fixed
    assert "singular" not in fixed
    assert "10 steps (0 rejected), 40 evaluations" in fixed
    assert "dop853, rtol 1e-08: 3 steps (1 rejected, 2 through singular windows)" in str(
        Stats("dop853", 1e-8, 3, 1, 50, 4, 2, 0.1, 0.2, 1.0)
    )


def test_crossing_names_the_branch_by_its_largest_entries():
    direction = {"A": 0.4, "B": -0.9, "C": 0.0, "D": 0.01, "E": 0.02}
    text = str(Crossing(1.25, np.ones(5), np.ones(5), np.array([1.0, 3e-9]), 1, 2, direction, "passed"))
    assert text.startswith("t = 1.25 s: rank 1 instead of 2, smallest singular value 3e-09; left along A +0.400, ")
    assert "B -0.900" in text
    assert "C " not in text
    assert text.endswith("passed")


def test_event_says_which_way_and_what_was_done():
    assert str(EventRecord("stop", 0.5, np.ones(1), np.ones(1), -1, "D off")) == "t = 0.5 s: stop (falling): D off"
    assert str(EventRecord("stop", 0.5, np.ones(1), np.ones(1), 1)) == "t = 0.5 s: stop (rising)"


def test_where_lists_a_few_coordinates_and_counts_the_rest():
    system = sr.compile(sr.library.build("four_bar"))
    q = np.array([0.1, 0.25, -3.0])
    assert where(system.layout, q) == "A = 0.1, B = 0.25, C = -3"
    assert where(system.layout, q, 2) == "A = 0.1, B = 0.25 and 1 more"
