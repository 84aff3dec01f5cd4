"""Pictures of maps: what is drawn is what was found."""

import numpy as np
import pytest

import sarrus as sr

from .singular_machines import ROCKERS, four_bar, library

matplotlib = pytest.importorskip("matplotlib")


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_one_coordinate(tmp_path):
    found = sr.singularity_map(four_bar(ROCKERS), "A", outputs=["rocker"])
    figure = found.plot(tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 10_000
    top, bottom = figure.axes
    marks = np.array([line.get_xydata()[0] for line in top.lines if line.get_marker() != "None"])
    drawn = sorted(x for x, _ in marks)
    assert drawn == pytest.approx(sorted(point.values[0] for point in found.points), abs=1e-9)
    legend = texts(top)
    assert "branch 0" in legend and any("toggle" in name for name in legend)
    assert texts(bottom) == ["constraint", "output", "input"] and bottom.get_xlabel() == "A [rad]"
    for kind_line in bottom.lines:
        level = kind_line.get_ydata()
        assert np.nanmin(level) >= 0.0
    # no line runs across the picture where an angle goes round
    for line in top.lines:
        if len(line.get_xdata()) > 2:
            jumps = np.abs(np.diff(line.get_ydata()))
            assert np.nanmax(jumps) < np.pi


def test_two_coordinates(tmp_path):
    around = {"A": (2.6, 3.6), "E": (-0.5, 0.5)}
    found = sr.singularity_map(library("five_bar"), ["A", "E"], around, cells=8)
    figure = found.plot(tmp_path / "map.svg")
    (ax,) = figure.axes
    assert ax.get_xlim() == around["A"] and ax.get_ylim() == around["E"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("A [rad]", "E [rad]")
    names = " ".join(texts(ax))
    assert "input singularity" in names and "constraint singularity" in names and "2 assemblies" in names
    drawn = [line.get_xydata() for line in ax.lines if len(line.get_xydata()) > 2]
    ours = [curve.values for curve in found.curves if not curve.still]
    assert len(drawn) >= len(ours) > 0
    for values in ours:
        assert any(np.allclose(values, rows[: len(values)]) for rows in drawn if len(rows) >= len(values))
    assert "output" in (tmp_path / "map.svg").read_text() or "five-bar" in (tmp_path / "map.svg").read_text()


def test_full_turns_are_cut_at_the_ends():
    from sarrus.view.map_picture import _turns, _unbroken

    rows = np.array([[3.0, 0.0], [-3.1, 0.1], [-2.9, 0.2]])
    cut = _unbroken(rows, (2 * np.pi, np.inf))
    assert np.isnan(cut).any(axis=1).sum() == 1
    assert cut[1] == pytest.approx([-3.1 + 2 * np.pi, 0.1]) and cut[3] == pytest.approx([3.0 - 2 * np.pi, 0.0])
    assert [_turns(k) for k in (-2, -1, 0, 1, 2, 3, 4)] == ["−π", "−π/2", "0", "π/2", "π", "3π/2", "2π"]


def test_wrong_ending_is_explained(tmp_path):
    found = sr.singularity_map(four_bar(ROCKERS), "A", {"A": (0.2, 0.4)})
    with pytest.raises(sr.SarrusError, match=r"let the name end in \.png, \.svg, \.pdf"):
        found.plot(tmp_path / "map.gif")
