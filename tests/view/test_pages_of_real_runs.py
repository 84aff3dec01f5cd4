"""The pages that the command line writes, from real runs, in a real browser: they show a machine that moves."""

import re

import numpy as np
import pytest
from browser import changed, picture, requests

import sarrus as sr
from sarrus.demo import demo

STAGE = (slice(60, 600), slice(0, 640))  # of the animation alone
CURVES = (slice(60, 600), slice(660, 1000))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return demo(tmp_path_factory.mktemp("demo")).files["animate"]


def test_the_demonstration_moves(page, tmp_path):
    """At three times the picture differs, at the same time it does not; one period apart the machine is the same."""
    crossings = [0.578208821, 1.82212024, 3.06603166]  # upright, hanging, upright again
    up, down, again, same = (picture(tmp_path, page, t) for t in (*crossings, crossings[0]))
    assert changed(up, same) == 0
    assert changed(up[STAGE], down[STAGE]) > 0.004  # both links folded onto each other: a single bar
    assert changed(up[CURVES], down[CURVES]) > 1e-3  # the cursor
    assert changed(up[STAGE], again[STAGE]) < 0.1 * changed(up[STAGE], down[STAGE])
    coloured = np.ptp(up[STAGE], axis=-1) > 40
    above, below = (np.argwhere(np.ptp(image[STAGE], axis=-1) > 40)[:, 0].mean() for image in (up, down))
    assert coloured.mean() > 0.001
    assert above < below  # rows of pixels count downwards


def test_the_demonstration_asks_the_network_for_nothing(page, tmp_path):
    asked, dom = requests(tmp_path, page)
    assert not asked
    assert float(re.search(r'data-time="([\d.]+)"', dom)[1]) > 0


def test_the_report_moves_and_asks_the_network_for_nothing(tmp_path):
    system = sr.compile(sr.library.build("delta"))
    traj = sr.simulate(system, system.assemble(), 0.5)
    traj.report(tmp_path / "report.html")
    early, late = (picture(tmp_path, tmp_path / "report.html", t) for t in (0.05, 0.25))
    assert changed(early, late) > 0.004
    asked, dom = requests(tmp_path, tmp_path / "report.html")
    assert not asked and "<h2>Audit</h2>" in dom
