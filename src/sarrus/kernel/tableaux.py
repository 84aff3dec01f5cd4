"""Coefficients of the Runge-Kutta methods, which check themselves, and their printed form in C.

Explicit methods: Dormand & Prince of order 5(4) (J. Comput. Appl. Math. 6, 1980) and of order 8 with error estimates of
order 5 and 3 and a dense output of order 7 (Hairer, Norsett & Wanner, Solving ODEs I, II.5, II.6 and their DOP853),
and the classical method of order 4. Radau IIA: derived here from its nodes (Solving ODEs II, IV.5, IV.8).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Tableau:
    """An explicit method: stage i is at c[i] and uses the stages before it with a[i]; b gives the step.

    Attributes:
        name: for messages.
        order: of the step.
        a: lower triangle, shape (stages, stages); may go on with stages for the dense output.
        b: weights, as many as the step has stages.
    """

    name: str
    order: int
    a: np.ndarray
    b: np.ndarray

    def __post_init__(self) -> None:
        """Refuse coefficients that miss the order they claim: a typing error shows here, not in a result."""
        if np.any(np.triu(self.a) != 0):
            raise ValueError(f"{self.name}: stages may only use earlier ones")
        worst = max(abs(x) for x in self.order_residuals(self.order))
        if worst > 1e-14:
            raise ValueError(f"{self.name}: the conditions of order {self.order} are missed by {worst:.2g}")

    @cached_property
    def c(self) -> np.ndarray:
        """Times of the stages: the row sums."""
        return self.a.sum(axis=1)

    def order_residuals(self, order: int, weights: np.ndarray | None = None) -> list[float]:
        """What the conditions of all rooted trees with up to `order` nodes are missed by.

        A tree with subtrees t1 ... tk has the stage vector (a phi(t1)) * ... * (a phi(tk)), its condition is
        weights . phi = 1 / density, the density being the number of nodes times the densities of the subtrees.
        """
        b = self.b if weights is None else weights
        a = self.a[: len(b), : len(b)]
        by_size: dict[int, list[tuple[np.ndarray, float]]] = {0: []}
        for nodes in range(1, order + 1):
            by_size[nodes] = [
                (np.prod([a @ phi for phi, _ in trees], axis=0) * np.ones(len(b)), nodes * _product(trees))
                for trees in _forests(by_size, nodes - 1)
            ]
        return [float(b @ phi - 1 / density) for n in range(1, order + 1) for phi, density in by_size[n]]


def _product(trees: tuple[tuple[np.ndarray, float], ...]) -> float:
    return float(np.prod([density for _, density in trees]))


def _forests(by_size: dict, nodes: int, largest: int | None = None, first: int = 0):
    """All multisets of trees with `nodes` nodes together, the largest tree first."""
    if nodes == 0:
        yield ()
        return
    for size in range(min(nodes, largest or nodes), 0, -1):
        start = first if size == largest else 0
        for index in range(start, len(by_size[size])):
            for others in _forests(by_size, nodes - size, size, index):
                yield (by_size[size][index], *others)


def _triangle(rows: tuple[tuple[float, ...], ...]) -> np.ndarray:
    a = np.zeros((len(rows) + 1, len(rows) + 1))
    for i, row in enumerate(rows, 1):
        a[i, : len(row)] = row
    return a


RK4 = Tableau("rk4", 4, _triangle(((1 / 2,), (0, 1 / 2), (0, 0, 1))), np.array([1, 2, 2, 1]) / 6)

# its last row is b: the slope at the end is the seventh stage
DOPRI5 = Tableau(
    "dopri5",
    5,
    _triangle((
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    )),
    np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]),
)  # fmt: skip
# step minus the embedded one of order 4, which also uses the slope at the end
DOPRI5_E = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])

# stage 12 is the end of the step (its row is b), 13 to 15 serve the dense output
_DOP853_A = (
    (0.05260015195876773,),
    (0.0197250569845379, 0.0591751709536137),
    (0.02958758547680685, 0, 0.08876275643042054),
    (0.2413651341592667, 0, -0.8845494793282861, 0.924834003261792),
    (0.037037037037037035, 0, 0, 0.17082860872947386, 0.12546768756682242),
    (0.037109375, 0, 0, 0.17025221101954405, 0.06021653898045596, -0.017578125),
    (0.03709200011850479, 0, 0, 0.17038392571223998, 0.10726203044637328, -0.015319437748624402,
     0.008273789163814023),
    (0.6241109587160757, 0, 0, -3.3608926294469414, -0.868219346841726, 27.59209969944671, 20.154067550477894,
     -43.48988418106996),
    (0.47766253643826434, 0, 0, -2.4881146199716677, -0.590290826836843, 21.230051448181193, 15.279233632882423,
     -33.28821096898486, -0.020331201708508627),
    (-0.9371424300859873, 0, 0, 5.186372428844064, 1.0914373489967295, -8.149787010746927, -18.52006565999696,
     22.739487099350505, 2.4936055526796523, -3.0467644718982196),
    (2.273310147516538, 0, 0, -10.53449546673725, -2.0008720582248625, -17.9589318631188, 27.94888452941996,
     -2.8589982771350235, -8.87285693353063, 12.360567175794303, 0.6433927460157636),
    (0.054293734116568765, 0, 0, 0, 0, 4.450312892752409, 1.8915178993145003, -5.801203960010585,
     0.3111643669578199, -0.1521609496625161, 0.20136540080403034, 0.04471061572777259),
    (0.056167502283047954, 0, 0, 0, 0, 0, 0.25350021021662483, -0.2462390374708025, -0.12419142326381637,
     0.15329179827876568, 0.00820105229563469, 0.007567897660545699, -0.008298),
    (0.03183464816350214, 0, 0, 0, 0, 0.028300909672366776, 0.053541988307438566, -0.05492374857139099, 0, 0,
     -0.00010834732869724932, 0.0003825710908356584, -0.00034046500868740456, 0.1413124436746325),
    (-0.42889630158379194, 0, 0, 0, 0, -4.697621415361164, 7.683421196062599, 4.06898981839711, 0.3567271874552811,
     0, 0, 0, -0.0013990241651590145, 2.9475147891527724, -9.15095847217987),
)  # fmt: skip
DOP853 = Tableau("dop853", 8, _triangle(_DOP853_A)[:12, :12], np.array(_DOP853_A[11]))
DOP853_E3, DOP853_E5 = np.array((
    (-0.18980075407240762, 0, 0, 0, 0, 4.450312892752409, 1.8915178993145003, -5.801203960010585,
     -0.4226823213237919, -0.1521609496625161, 0.20136540080403034, 0.02265179219836082),
    (0.01312004499419488, 0, 0, 0, 0, -1.2251564463762044, -0.4957589496572502, 1.6643771824549864,
     -0.35032884874997366, 0.3341791187130175, 0.08192320648511571, -0.022355307863886294),
))  # fmt: skip
DOP853_D = np.array((
    (-8.428938276109013, 0, 0, 0, 0, 0.5667149535193777, -3.0689499459498917, 2.38466765651207, 2.117034582445028,
     -0.871391583777973, 2.2404374302607883, 0.6315787787694688, -0.08899033645133331, 18.148505520854727,
     -9.194632392478356, -4.436036387594894),
    (10.427508642579134, 0, 0, 0, 0, 242.28349177525817, 165.20045171727028, -374.5467547226902,
     -22.113666853125306, 7.733432668472264, -30.674084731089398, -9.332130526430229, 15.697238121770845,
     -31.139403219565178, -9.35292435884448, 35.81684148639408),
    (19.985053242002433, 0, 0, 0, 0, -387.0373087493518, -189.17813819516758, 527.8081592054236, -11.57390253995963,
     6.8812326946963, -1.0006050966910838, 0.7777137798053443, -2.778205752353508, -60.19669523126412,
     84.32040550667716, 11.99229113618279),
    (-25.69393346270375, 0, 0, 0, 0, -154.18974869023643, -231.5293791760455, 357.6391179106141, 93.40532418362432,
     -37.45832313645163, 104.0996495089623, 29.8402934266605, -43.53345659001114, 96.32455395918828,
     -39.17726167561544, -149.72683625798564),
))  # fmt: skip


@dataclass(frozen=True, eq=False)
class Radau:
    """Radau IIA with three stages: order 5, stiffly accurate.

    Attributes:
        c: nodes, the last one 1.
        a: collocation matrix.
        t, ti: real transformation that brings a⁻¹ to its blocks, and its inverse.
        real, pair: eigenvalues of a⁻¹: a real one, and one of the complex pair.
        e: weights of the stages in the error estimate of order 3, over the step, added to the slope at the start.
    """

    c: np.ndarray
    a: np.ndarray
    t: np.ndarray
    ti: np.ndarray
    real: float
    pair: complex
    e: np.ndarray


def radau() -> Radau:
    """Derive the coefficients from the nodes and check them."""
    c = np.array([(4 - np.sqrt(6)) / 10, (4 + np.sqrt(6)) / 10, 1.0])
    powers = np.arange(3)
    a = (c[:, None] ** (powers + 1) / (powers + 1)) @ np.linalg.inv(c[:, None] ** powers)
    for k in range(1, 6):  # the quadrature of order 5 and the collocation conditions
        assert abs(a[2] @ c ** (k - 1) - 1 / k) < 1e-14, k
    pairs: Any = np.linalg.eig(np.linalg.inv(a))
    values, vectors = pairs
    one, two = int(np.argmin(np.abs(values.imag))), int(np.argmax(values.imag))
    t = np.column_stack([vectors[:, one].real, vectors[:, two].real, vectors[:, two].imag])
    p, q = values[two].real, values[two].imag
    ti = np.linalg.inv(t)
    blocks = np.array([[values[one].real, 0, 0], [0, p, q], [0, -q, p]])
    assert np.abs(ti @ np.linalg.inv(a) @ t - blocks).max() < 1e-12
    root = np.sqrt(6)
    return Radau(
        c, a, t, ti, float(values[one].real), complex(p, -q), np.array([-13 - 7 * root, -13 + 7 * root, -1]) / 3
    )


def tables() -> str:
    """All coefficients as C."""
    full, r = _triangle(_DOP853_A), radau()
    parts = [
        _array("sr_rk4_a", RK4.a), _array("sr_rk4_b", RK4.b), _array("sr_rk4_c", RK4.c),
        _array("sr_dopri5_a", DOPRI5.a), _array("sr_dopri5_c", DOPRI5.c),
        _array("sr_dopri5_e", DOPRI5_E),
        _array("sr_dop853_a", full), _array("sr_dop853_b", DOP853.b), _array("sr_dop853_c", full.sum(axis=1)),
        _array("sr_dop853_e3", DOP853_E3), _array("sr_dop853_e5", DOP853_E5), _array("sr_dop853_d", DOP853_D),
        _array("sr_radau_c", r.c), _array("sr_radau_t", r.t), _array("sr_radau_ti", r.ti),
        _array("sr_radau_last", np.linalg.inv(r.a)[2]),  # slope at the end of a step, over the step
        f"#define SR_RADAU_REAL {r.real!r}",
        f"#define SR_RADAU_RE {r.pair.real!r}", f"#define SR_RADAU_IM {r.pair.imag!r}",
        *(f"#define SR_RADAU_E{k + 1} ({x!r})" for k, x in enumerate(r.e.tolist())),
    ]  # fmt: skip
    return "\n".join(parts)


def _array(name: str, values: np.ndarray) -> str:
    sizes = "".join(f"[{n}]" for n in values.shape)
    text = str(values.tolist()).replace("[", "{").replace("]", "}")
    return f"SR_TABLE real {name}{sizes} = {text};"
