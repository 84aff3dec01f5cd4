"""The Runge-Kutta tables: they refuse wrong coefficients, and agree with SciPy's and with the theory of collocation."""

import numpy as np
import pytest
from scipy.integrate import DOP853, RK45

from sarrus.kernel import tableaux
from sarrus.kernel.tableaux import DOPRI5, RK4, Tableau


@pytest.mark.parametrize("table", [RK4, DOPRI5, tableaux.DOP853], ids=lambda t: t.name)
def test_order_is_neither_less_nor_more_than_claimed(table):
    assert max(map(abs, table.order_residuals(table.order))) < 1e-14
    assert max(map(abs, table.order_residuals(table.order + 1))) > 1e-6


@pytest.mark.parametrize(("nodes", "count"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 17), (8, 200)])
def test_number_of_conditions(nodes, count):
    """Rooted trees with up to n nodes: 1, 2, 4, 8, 17 ... 200 (Butcher)."""
    assert len(RK4.order_residuals(nodes)) == count


@pytest.mark.parametrize("table", [RK4, DOPRI5, tableaux.DOP853], ids=lambda t: t.name)
@pytest.mark.parametrize("size", [1e-3, 1e-8])
def test_a_wrong_digit_is_refused(table, size):
    a, b = table.a.copy(), table.b.copy()
    a[2, 1] += size
    with pytest.raises(ValueError, match=f"{table.name}: the conditions of order {table.order} are missed by"):
        Tableau(table.name, table.order, a, b)
    b[0] += size
    with pytest.raises(ValueError, match="are missed by"):
        Tableau(table.name, table.order, table.a, b)
    a[0, 1] = 1.0
    with pytest.raises(ValueError, match="stages may only use earlier ones"):
        Tableau(table.name, table.order, a, table.b)


def test_dormand_prince_5_is_that_of_scipy():
    np.testing.assert_allclose(DOPRI5.a[:6, :5], RK45.A, rtol=1e-15)
    np.testing.assert_allclose(DOPRI5.b, RK45.B, rtol=1e-15)
    np.testing.assert_allclose(DOPRI5.a[6, :6], RK45.B, rtol=1e-15)
    np.testing.assert_allclose(np.abs(tableaux.DOPRI5_E), np.abs(RK45.E), rtol=1e-14)


def test_dormand_prince_8_is_that_of_scipy():
    table = tableaux.DOP853
    np.testing.assert_allclose(table.a, DOP853.A, rtol=1e-14)
    np.testing.assert_allclose(table.b, DOP853.B, rtol=1e-14)
    np.testing.assert_allclose(tableaux.DOP853_E3, DOP853.E3[:12], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(tableaux.DOP853_E5, DOP853.E5[:12], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(tableaux.DOP853_D, DOP853.D, rtol=1e-14)
    np.testing.assert_allclose(tableaux._triangle(tableaux._DOP853_A)[13:], DOP853.A_EXTRA, rtol=1e-14, atol=0)


def test_error_estimates_vanish_for_motions_they_resolve():
    """The embedded methods have order 4 (of 5), and 5 and 3 (of 8): their difference kills polynomials up to there."""
    full = np.append(DOPRI5.c[:6], 1.0)
    for k in range(4):
        assert abs(tableaux.DOPRI5_E @ full**k) < 1e-15
    assert abs(tableaux.DOPRI5_E @ full**4) > 1e-5
    c = tableaux.DOP853.c
    for weights, order in ((tableaux.DOP853_E3, 3), (tableaux.DOP853_E5, 5)):
        for k in range(order):
            assert abs(weights @ c**k) < 1e-14
        assert abs(weights @ c**order) > 1e-6


def test_radau_collocates_and_damps():
    """Order 5 = 2 s - 1, stiffly accurate, and R(z) = the (2, 3) Padé approximation of e^z, zero at infinity."""
    r = tableaux.radau()
    table_b = r.a[2]
    for k in range(5):
        assert abs(table_b @ r.c**k - 1 / (k + 1)) < 1e-15
    assert abs(table_b @ r.c**5 - 1 / 6) > 1e-4
    for z in (-0.3, -5.0, 2j):
        found = 1 + z * table_b @ np.linalg.solve(np.eye(3) - z * r.a, np.ones(3))
        pade = (1 + 2 * z / 5 + z**2 / 20) / (1 - 3 * z / 5 + 3 * z**2 / 20 - z**3 / 60)
        assert abs(found - pade) < 1e-14
    np.testing.assert_allclose(sorted(np.linalg.eigvals(np.linalg.inv(r.a)), key=lambda x: x.imag)[1], r.real)
    # printed eigenvalue of Hairer & Wanner, IV.8: gamma = 1 / 3.6378342527444957
    assert abs(r.real - 3.6378342527444957) < 1e-13
