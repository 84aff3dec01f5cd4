"""`sarrus map`: text, JSON, picture, and wrong arguments."""

import json

import numpy as np
import pytest

from sarrus.cli import main


def run(capsys, *words):
    code = main(["map", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_text_and_picture(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "map.png"
    words = ("four_bar", "--coordinates", "A", "--range", "A=-1:2.5", "--outputs", "rocker", "--plot", str(path))
    code, out, _ = run(capsys, *words)
    assert code == 0 and "four-bar: singularities over A from -1 to 2.5 rad" in out
    assert out.count("input and toggle at A") == 2 and path.stat().st_size > 10_000


def test_json(capsys):
    code, out, _ = run(capsys, "slider_crank", "--coordinates", "A", "--inputs", "A", "--json")
    data = json.loads(out)
    assert code == 0
    values = sorted(point["values"][0] for point in data["points"] if "constraint" in point["kinds"])
    assert values == pytest.approx([-np.pi / 2, np.pi / 2], abs=1e-8)


def test_two_coordinates_with_one_held(capsys):
    words = ("--coordinates", "platform.x,platform.z", "--range", "platform.x=0:0.1", "--range", "platform.z=0:0.1")
    code, out, _ = run(capsys, "planar_platform", *words, "--hold", "platform.angle=0.4", "--cells", "3")
    assert code == 0 and "held: platform.angle = 0.4" in out and "no singular positions" in out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("four_bar", "--coordinates", "A", "--range", "A"), "'A': expected --range NAME=LO:HI"),
        (("four_bar", "--coordinates", "A", "--range", "A=1"), "'A=1': expected --range NAME=LO:HI"),
        (("four_bar", "--coordinates", "A", "--range", "A=x:1"), "'A=x:1': 'x' is not a number"),
        (("four_bar", "--coordinates", "A", "--hold", "B"), "'B': expected --hold NAME=VALUE"),
        (("four_bar", "--coordinates", "A", "--cells", "1"), "--cells 1: give at least 2"),
        (("five_bar", "--coordinates", "A"), "hold 1 more"),
        (("nothing", "--coordinates", "A"), "unknown machine 'nothing'"),
    ],
)
def test_wrong_arguments(capsys, words, text):
    code, _, err = run(capsys, *words)
    assert code == 2 and text in err
