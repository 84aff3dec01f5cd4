"""Formulations as records: what they say of themselves, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import sarrus as sr

from .machines import library

NAMES = {
    "projection", "projection-symmetric", "projection-scaled", "quasi-velocity", "multiplier", "null-space", "gauss",
    "generalised", "virtual-mass", "reduction", "baumgarte", "regularised", "index-1", "index-2", "ggl",
    "ggl-implicit", "index-3", "coordinate-split",
}  # fmt: skip


def test_all_formulations_of_the_papers_are_there():
    assert {x.name for x in sr.formulations()} == NAMES
    assert {x.name: x.index for x in sr.formulations() if x.index} == {
        "index-1": 1, "index-2": 2, "ggl": 2, "ggl-implicit": 2, "index-3": 3, "coordinate-split": 1,
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_says_what_it_is(name):
    form = sr.formulation(name)
    text = str(form)
    assert text.startswith(f"{name}: {form.problem}\n")
    assert form.equation in text and f"(sheet {form.sheet})" in text and form.sizes in text
    for key in form.choices:
        assert f"  {key} = " in text
    assert form.problem == ("ODE" if not form.index else f"DAE of index {form.index}")


def test_options_are_kept_and_the_formulation_itself_is_not_changed():
    form = sr.formulation("virtual-mass", mu=3.0)
    assert form.options["mu"] == 3.0
    assert form.with_options(mu=4.0).options["mu"] == 4.0
    assert form.options["mu"] == 3.0
    assert sr.formulation("virtual-mass").options["mu"] == "auto"
    assert "W = given" in str(form.with_options(W=[1.0, 2.0]))


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("virtual-mass", {"mu": -1.0}, "formulation 'virtual-mass', mu=-1.0: expected 'auto' or a positive number"),
        ("virtual-mass", {"mu": "best"}, "expected 'auto' or a positive number"),
        ("virtual-mass", {"gamma": 1.0}, "formulation 'virtual-mass' has no option 'gamma'; it has: mu, W"),
        ("multiplier", {"mu": 1.0}, "formulation 'multiplier' has no option 'mu'; it has: none"),
        ("projection-scaled", {"gamma": 0.0}, "expected 'auto' or a number other than zero"),
        ("projection", {"W": [1.0, -1.0]}, "expected None, positive weights, or a symmetric positive definite matrix"),
        ("projection", {"W": np.array([[1.0, 2.0], [2.0, 1.0]])}, "a symmetric positive definite matrix"),
        ("quasi-velocity", {"factor": "lu"}, "expected one of cholesky, root, innovation"),
        ("null-space", {"basis": 3}, "expected one of coordinates, orthonormal"),
        ("baumgarte", {"alpha": -1.0}, "expected a number that is not negative"),
        ("regularised", {"h": 0.0}, "expected 'auto' or a positive number of seconds"),
    ],
)
def test_wrong_options_are_refused_with_what_is_right(name, options, text):
    with pytest.raises(sr.SarrusError) as caught:
        sr.formulation(name, **options)
    assert text in str(caught.value)


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(sr.UnknownNameError, match=r"unknown formulation 'projektion'\. Did you mean 'projection'"):
        sr.formulation("projektion")
    system = library("four_bar")
    with pytest.raises(sr.SarrusError, match=r"expected a name or sr\.formulation"):
        system.acceleration(system.assemble(), formulation=7)
    with pytest.raises(sr.SarrusError, match="metric W: expected 3 weights or an 3 x 3 matrix, got shape"):
        system.acceleration(system.assemble(), formulation=sr.formulation("projection", W=[1.0, 2.0]))


def test_matrices_are_listed_and_unknown_ones_refused():
    system = library("four_bar")
    found = system.matrices(system.assemble())
    assert {"P", "S", "R", "Q", "Mc", "Mp", "Mpp", "Mb", "Cb", "H", "Theta", "Phibar", "Lam", "Gr", "Go"} <= set(
        found.names()
    )
    assert len(str(found).splitlines()) == len(found.names())
    for name in found.names():
        assert np.isfinite(found[name]).all(), name
        assert found.about(name) and found.about(name) in str(found)
    with pytest.raises(sr.UnknownNameError, match="unknown matrix 'Mx'"):
        found["Mx"]
    for options, text in (
        ({"mu": 0.0}, "mu=0.0: expected 'auto' or a positive number"),
        ({"gamma": 0}, "gamma=0: expected 'auto' or a number other than zero"),
        ({"factor": "svd"}, "factor='svd': expected one of cholesky, root, innovation"),
    ):
        with pytest.raises(sr.StateError) as caught:
            system.matrices(system.assemble(), **options)
        assert text in str(caught.value)
