"""The report holds everything about a run in one file, and stays whole whatever the names are."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import sarrus as sr
from sarrus.simulation.status import Crossing, EventRecord, Stats, Status
from sarrus.simulation.trajectory import Segment, Trajectory
from sarrus.view import report
from sarrus.view.report import figure_text, write_report


def circling(**more):
    """A particle that runs along its circle as energy demands."""
    system = sr.compile(sr.library.build("particle_on_circle"))
    angle = np.linspace(0.2, 2.9, 21)
    speed = np.full(21, 3.0)
    q = np.column_stack([np.cos(angle), np.sin(angle)])
    v = speed[:, None] * np.column_stack([-np.sin(angle), np.cos(angle)])
    a = np.array([system.acceleration(system.state(*one)) for one in zip(q, v, strict=True)])
    everything = {
        "status": Status("finished", "", 0.9),
        "stats": Stats("dop853", 1e-8, 20, 1, 240, 20, 0, 0.01, 0.045, 0.002),
        "segments": (Segment(0, {"circle": True}, system.p),),
        "settings": {"method": "dop853", "rtol": 1e-8, "note": "<b>&"},
    }
    return Trajectory(system, (angle - 0.2) / 3.0, q, v, a, np.zeros((21, 0)), **(everything | more))


class Page(HTMLParser):
    """Texts of the elements by tag."""

    def __init__(self, text):
        super().__init__()
        self.open, self.found = [], {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.found.setdefault(tag, []).append("")

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data):
        if self.open:
            self.found[self.open[-1]][-1] += data


def page_of(traj, folder, **options):
    text = write_report(traj, folder / "report.html", **options).read_text(encoding="utf-8")
    return Page(text), text


def test_report_has_all_its_parts(tmp_path):
    traj = circling()
    crossing = Crossing(0.4, traj.q[0], traj.v[0], np.array([2e-9]), 0, 1, {"x": 0.8, "z": -0.6}, "kept to its branch")
    event = EventRecord("top", 0.55, traj.q[0], traj.v[0], -1, "drive off")
    page, text = page_of(replace(traj, crossings=(crossing,), events=(event,)), tmp_path)
    assert page.found["h1"] == ["particle on a circle"]
    assert page.found["h2"] == ["Motion", "Curves", "Audit", "Singular positions", "Events", "Settings"]
    assert "Finished at t = 0.9 s." in page.found["p"]
    assert any(p.startswith("dop853, rtol 1e-08: 20 steps (1 rejected)") for p in page.found["p"])
    cells = page.found["td"]
    for wanted in ("×1", "0.4", "0 instead of 1", "2e-09", "x +0.800, z -0.600", "kept to its branch"):
        assert wanted in cells, wanted
    for wanted in ("•1", "0.55", "top", "falling", "drive off", "rtol", "1e-08", "<b>&"):
        assert wanted in cells, wanted
    assert json.loads(page.found["script"][0])["frames"] > 1
    assert text.count("<svg") == 1
    assert "pre" in page.found or "Not available." in page.found["p"]


def test_audit_is_printed_as_text(tmp_path, monkeypatch):
    monkeypatch.setattr(Trajectory, "audit", lambda self: "loop error <1e-12 & falling", raising=False)
    page, _ = page_of(circling(), tmp_path)
    assert page.found["pre"] == ["loop error <1e-12 & falling"]


def test_nothing_happened_is_said(tmp_path):
    page, _ = page_of(circling(), tmp_path)
    assert {"No singular position was crossed.", "No events."} <= set(page.found["p"])


def test_a_run_that_failed_is_shown_as_such(tmp_path):
    _, text = page_of(circling(status=Status("diverged", "v grows at A <1>", 0.9)), tmp_path)
    assert re.search(r'<p class="bad">Stopped because the motion diverged .*A &lt;1&gt;', text)


def test_report_needs_no_network(tmp_path):
    _, text = page_of(circling(), tmp_path)
    assert not re.search(r"\b(https?|wss?|ftp):|@import", text)
    assert "default-src 'none'" in text


@pytest.mark.parametrize("title", ["</script><b>", "\"'`${x}\\ $a_1$", "<!-- -->"])
def test_no_name_breaks_the_report(tmp_path, title):
    page, _ = page_of(circling(), tmp_path, title=title)
    assert page.found["h1"] == [title]
    assert len(page.found["script"]) == 2
    assert "b" not in page.found
    assert json.loads(page.found["script"][0])["title"] == title


def test_figure_is_one_clean_element():
    text = figure_text(circling())
    assert text.startswith("<svg")
    assert text.rstrip().endswith("</svg>")
    assert "metadata" not in text
    assert text.count("<path") > 20


def test_wrong_ending_is_refused():
    with pytest.raises(sr.SarrusError, match=r"report: cannot write 'run\.pdf'; let the name end in \.html"):
        write_report(circling(), "run.pdf")


def test_without_the_method_the_audit_is_left_out(monkeypatch):
    class Bare:
        pass

    assert "Not available" in report._audit(Bare())
