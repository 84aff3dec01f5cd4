"""Reference motions in minimal coordinates: written from the machines' geometry, integrated by SciPy's DOP853.

Nothing here knows the package under test. A machine is given by its reduced inertia I(s), potential V(s) and
generalised force Q(t, s, w), as analytic functions of the minimal coordinates s; their derivatives are exact (complex
step), so that the only error is that of the integration (rtol 1e-13).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk, ellipkinc

G = 9.81
TINY = 1e-40  # complex step: no difference is taken, so it can be as small as numbers go
RTOL = 1e-13


@dataclass(frozen=True)
class Minimal:
    """½ wᵀ I(s) w - V(s), w = ds/dt, with further forces Q(t, s, w). Everything but Q takes complex s.

    Attributes:
        inertia: I(s), shape (n, n), or a number for one coordinate.
        potential: V(s) [J].
        force: Q(t, s, w), or None.
        configuration: s -> quantities of interest, such as all joint coordinates of the machine.
    """

    inertia: Callable[[Any], Any]
    potential: Callable[[Any], Any]
    force: Callable[[float, Any, Any], Any] | None = None
    configuration: Callable[[Any], Any] = field(default=lambda s: s)

    def acceleration(self, t: float, s: np.ndarray, w: np.ndarray) -> np.ndarray:
        """d²s/dt² of Lagrange's equations."""
        n = len(s)
        dI, dV = np.zeros((n, n, n)), np.zeros(n)
        for k in range(n):
            ahead = s + 1j * TINY * np.eye(n)[k]
            dI[k] = np.reshape(self.inertia(ahead), (n, n)).imag / TINY
            dV[k] = np.imag(np.squeeze(self.potential(ahead))) / TINY
        force = 0.0 if self.force is None else np.asarray(self.force(t, s, w), dtype=float)
        rate = np.einsum("kij,k,j->i", dI, w, w) - 0.5 * np.einsum("kij,i,j->k", dI, w, w)
        inertia = np.reshape(self.inertia(s.astype(complex)), (n, n)).real
        return np.linalg.solve(inertia, force - dV - rate)

    def energy(self, s: Any, w: Any) -> float:
        """Kinetic and potential energy [J]."""
        s, w = np.atleast_1d(np.asarray(s, dtype=float)), np.atleast_1d(w)
        inertia = np.reshape(self.inertia(s.astype(complex)), (len(s), len(s))).real
        return float(0.5 * w @ inertia @ w + np.real(np.squeeze(self.potential(s.astype(complex)))))

    def run(self, s: Any, w: Any, t_end: float, t_start: float = 0.0, rtol: float = RTOL) -> Motion:
        """Integrate from s, w."""
        s = np.atleast_1d(np.asarray(s, dtype=float))
        n = len(s)
        return integrate(
            lambda t, y: np.r_[y[n:], self.acceleration(t, y[:n], y[n:])],
            np.r_[s, np.atleast_1d(w)], t_end, t_start, rtol, self.configuration,
        )  # fmt: skip

    def speeds(self, s: Any, w: Any) -> np.ndarray:
        """Rates of the configuration."""
        s = np.atleast_1d(np.asarray(s, dtype=float))
        return np.imag(self.configuration(s + 1j * TINY * np.atleast_1d(w))) / TINY


@dataclass(frozen=True)
class Motion:
    """A motion that has been integrated; `y(t)` is the state of the reduced equations."""

    t: np.ndarray
    y: Callable[[Any], np.ndarray]
    configuration: Callable[[Any], Any]

    def s(self, t: Any) -> np.ndarray:
        """Minimal coordinates, one row for each time."""
        y = np.moveaxis(self.y(t), 0, -1)
        return y[..., : y.shape[-1] // 2]

    def w(self, t: Any) -> np.ndarray:
        """Their rates."""
        y = np.moveaxis(self.y(t), 0, -1)
        return y[..., y.shape[-1] // 2 :]

    def q(self, t: float) -> np.ndarray:
        """The configuration at one time."""
        return np.real(self.configuration(self.s(t)))

    def roots(self, function: Callable[[np.ndarray], float]) -> np.ndarray:
        """Times at which a function of the reduced state passes through zero."""
        return roots(lambda t: function(self.y(t)), self.t)


def integrate(
    rate: Callable[[float, np.ndarray], np.ndarray], y0: Any, t_end: float, t_start: float = 0.0, rtol: float = RTOL,
    configuration: Callable[[Any], Any] = lambda s: s, **options: Any,
) -> Motion:  # fmt: skip
    """DOP853 with dense output, steps short enough that the dense output (order 7) is as good as the steps."""
    found = solve_ivp(
        rate, (t_start, t_end), np.asarray(y0, dtype=float), method="DOP853", rtol=rtol, atol=1e-3 * rtol,
        dense_output=True, **options,
    )  # fmt: skip
    assert found.success, found.message
    return Motion(found.t, found.sol, configuration)


def roots(function: Callable[[float], float], grid: np.ndarray) -> np.ndarray:
    """Roots of a continuous function, at most one between neighbouring points of the grid."""
    from scipy.optimize import brentq

    values = np.array([function(t) for t in grid])
    at = np.flatnonzero(values[:-1] * values[1:] < 0)
    return np.array([brentq(function, grid[k], grid[k + 1], xtol=1e-15, rtol=1e-15) for k in at])


# --- closed forms ------------------------------------------------------------------------------------------
def pendulum(amplitude: float, rate: float, t: Any) -> tuple[np.ndarray, np.ndarray]:
    """θ'' = -rate² sin θ, at rest at `amplitude`: angle and speed by Jacobi's elliptic functions.

    sin(θ/2) = k sn(K - rate t | k²) = k cd(rate t | k²) with k = sin(amplitude/2).
    """
    k = np.sin(amplitude / 2)
    sn, cn, dn, _ = ellipj(rate * np.asarray(t, dtype=float), k * k)
    cd = cn / dn
    angle = 2 * np.arcsin(k * cd)
    slope = -k * rate * (1 - k * k) * sn / dn**2  # d/dt of k cd
    return angle, 2 * slope / np.sqrt(1 - (k * cd) ** 2)


def pendulum_period(amplitude: float, rate: float) -> float:
    """4 K(k²) / rate."""
    return 4 * float(ellipk(np.sin(amplitude / 2) ** 2)) / rate


def turning_pendulum(inertia: float, weight: float, s: float, speed: float, t: Any) -> np.ndarray:
    """½ I s'² + weight cos s = E with E > weight: the angle at t, by the amplitude function.

    s'² = (2/I)(E - weight cos s). With s = π - 2 φ: φ'² = Ω² (1 - k² sin²φ), Ω² = (E + weight)/(2 I),
    k² = 2 weight/(E + weight).
    """
    energy = 0.5 * inertia * speed**2 + weight * np.cos(s)
    k2, rate = 2 * weight / (energy + weight), np.sqrt((energy + weight) / (2 * inertia)) * -np.sign(speed)
    _, _, _, phi = ellipj(ellipkinc((np.pi - s) / 2, k2) + rate * np.asarray(t, dtype=float), k2)
    return np.pi - 2 * phi


# --- machines of one degree of freedom ---------------------------------------------------------------------
def slider_crank() -> Minimal:
    """Equal links and end masses 1 on the slider branch (sheet 12.1); configuration (q1, 2π - 2 q1)."""
    return Minimal(
        lambda s: 1 + 4 * np.sin(s) ** 2, lambda s: G * np.sin(s),
        configuration=lambda s: np.concatenate([s, 2 * np.pi - 2 * s]),
    )  # fmt: skip


def n_four_bar(n: int) -> Minimal:
    """N equal four-bars as parallelograms (A02): the uprights' angle from x towards z; height of the couplers = sin."""
    inertia, weight = (n + 1) / 3 + n, G * ((n + 1) / 2 + n)
    return Minimal(lambda s: inertia + 0 * s, lambda s: weight * np.sin(s))


def parallelogram(cranks: int = 3, spacing: float = 1.0, length: float = 1.0) -> Minimal:
    """Equal cranks under one coupler, all bars 1 kg per metre; the cranks' angle."""
    coupler = (cranks - 1) * spacing
    inertia = cranks * length**3 / 3 + coupler * length**2
    weight = G * (cranks * length**2 / 2 + coupler * length)
    return Minimal(lambda s: inertia + 0 * s, lambda s: weight * np.sin(s))


def curved_branch() -> Minimal:
    """A particle of 1 kg on y = x², one branch of (y - x²)(y + x) = 0, gravity along -y (sheet 2.6)."""
    return Minimal(
        lambda s: 1 + 4 * s**2, lambda s: G * s**2, configuration=lambda s: np.concatenate([s, s**2])
    )  # fmt: skip


def arm_on_line() -> Minimal:
    """2R arm with its tip on x = 0, elbow angle π - 2 q1 (sheet 12.7)."""
    return Minimal(
        lambda s: 3.25 + 5 * (0.25 * np.sin(s) ** 2 + 2.25 * np.cos(s) ** 2), lambda s: 10 * G * np.sin(s),
        configuration=lambda s: np.concatenate([s, np.pi - 2 * s]),
    )  # fmt: skip


def arm_on_circle() -> Minimal:
    """2R arm with its tip on the unit circle about the shoulder: the elbow stays at 2π/3."""
    bend = 2 * np.pi / 3
    return Minimal(
        lambda s: 3.25 + 5 * (1.25 + np.cos(bend)) + 0 * s,
        lambda s: 5 * G * (1.5 * np.sin(s) + 0.5 * np.sin(s + bend)),
        configuration=lambda s: np.concatenate([s, 0 * s + bend]),
    )  # fmt: skip


def arm_at_one(t_end: float) -> Motion:
    """2R arm with its tip on x = 1, from (1, 1/2) at rest (sheet 12.7).

    With absolute angles α, β the curve is cos α + cos β = 1, and w with α' = -w sin β, β' = w sin α passes every
    point of it, the stretched ones too. State (α, β, w); configuration (q1, q2) of the first two.
    """

    def along(y: np.ndarray) -> np.ndarray:
        return np.array([-np.sin(y[1]), np.sin(y[0])])

    def inertia(y: np.ndarray) -> Any:
        (a, b), cross = along(y), 2.5 * np.cos(y[0] - y[1])
        return (1 + 1.25 + 5) * a * a + 2 * cross * a * b + (1 + 1.25) * b * b

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        d = along(y)
        slope = float(np.imag(inertia(y[:2] + 1j * TINY * d))) / TINY  # dI along the curve, for w = 1
        weight = -G * (7.5 * np.cos(y[0]) * d[0] + 2.5 * np.cos(y[1]) * d[1])
        return np.r_[d * y[2], (weight - 0.5 * slope * y[2] ** 2) / inertia(y)]

    elbow = np.arccos((1.25 - 2) / 2)
    first = np.arctan2(0.5, 1.0) - np.arctan2(np.sin(elbow), 1 + np.cos(elbow))
    return integrate(
        rate, (first, first + elbow, 0.0), t_end, configuration=lambda y: np.array([y[0], y[1] - y[0]])
    )  # fmt: skip


def angle_of(x: Any, y: Any) -> Any:
    """Angle of (x, y) from x, analytic about its real value."""
    a = np.arctan2(np.real(y), np.real(x))
    return a + np.arctan((y * np.cos(a) - x * np.sin(a)) / (x * np.cos(a) + y * np.sin(a)))


def third_corner(p: Any, q: Any, a: float, b: float, side: float) -> np.ndarray:
    """The point at distance a from p and b from q, to the left of p -> q for side = +1."""
    dx, dy = q[0] - p[0], q[1] - p[1]
    square = dx * dx + dy * dy
    along = (square + a * a - b * b) / (2 * square)
    across = side * np.sqrt(a * a / square - along * along)
    return np.array([p[0] + along * dx - across * dy, p[1] + along * dy + across * dx])


def four_bar(l1: float, l2: float, l3: float, l4: float) -> Minimal:
    """Uniform bars of 1 kg, ground pivots (0, 0) and (l4, 0), coupler above; configuration (A, B, C), relative."""

    def corners(s: Any) -> tuple[Any, Any]:
        b = np.array([l1 * np.cos(s[0]), l1 * np.sin(s[0])])
        return b, third_corner(b, (l4, 0.0), l2, l3, 1.0)

    def angles(s: Any) -> tuple[Any, Any]:
        b, c = corners(s)
        return angle_of(c[0] - b[0], c[1] - b[1]), angle_of(l4 - c[0], -c[1])  # coupler; rocker from C to D

    def ratios(s: Any) -> tuple[Any, Any]:
        """Coupler and rocker speed for a unit crank speed: l1 u1' + l2 u2' + l3 u3' = 0."""
        beta, psi = angles(s)
        scale = np.sin(beta - psi)
        return -l1 * np.sin(s[0] - psi) / (l2 * scale), l1 * np.sin(s[0] - beta) / (l3 * scale)

    def inertia(s: Any) -> Any:
        (beta, _), (r2, r3) = angles(s), ratios(s)
        centre = l1**2 + l1 * l2 * r2 * np.cos(s[0] - beta) + (l2 * r2 / 2) ** 2
        return l1**2 / 3 + centre + (l2 * r2) ** 2 / 12 + (l3 * r3) ** 2 / 3

    def potential(s: Any) -> Any:
        b, c = corners(s)
        return G * (b[1] / 2 + (b[1] + c[1]) / 2 + c[1] / 2)

    def configuration(s: Any) -> np.ndarray:
        beta, psi = angles(s)
        return np.array([s[0], beta - s[0], psi - beta])

    return Minimal(inertia, potential, configuration=configuration)


def bricard(slender: bool = False) -> Minimal:
    """Rectangular Bricard (A04) by its first hinge angle θ; configuration: the centre P3.

    Threefold symmetry: hinges 0, 2, 4 turn by ±θ and hinges 1, 3 by ±ψ with sin ψ = sin θ / (1 + sin θ); the
    self-check closes the loop and compares P3 = (cos θ (1 - sin ψ), -cos ψ, -sin ψ).
    """
    centres = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], dtype=float)
    axes = np.eye(3)[[1, 2, 0, 1, 2]]
    thick, thin = (1 / 12, 0.0) if slender else ((1 + 0.01) / 12, 0.01 / 6)

    def poses(s: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        out, R, p = [], np.eye(3), np.zeros(3)
        for i, angle in enumerate(bricard_angles(s[0])):
            R = R @ _turn(axes[i], angle)
            out.append((R, p))
            p = p + R @ (centres[i + 1] - centres[i])
        return out

    def inertia(s: Any) -> Any:
        # speeds for ds = 1: hinge rates, then the chain rule along the bars
        slope = np.cos(s[0]) / (1 + np.sin(s[0])) ** 2
        psi_rate = slope / np.sqrt(1 - (np.sin(s[0]) / (1 + np.sin(s[0]))) ** 2)
        rates = np.array([1, -psi_rate, 1, -psi_rate, 1])
        total, spin, v = 0.0, np.zeros(3), np.zeros(3)
        for i, (R, _) in enumerate(poses(s)):
            spin = spin + R @ axes[i] * rates[i]
            bar = R @ (centres[i + 1] - centres[i])
            middle = v + np.cross(spin, bar / 2)
            along = spin @ bar
            total = total + middle @ middle + thick * (spin @ spin - along * along) + thin * along * along
            v = v + np.cross(spin, bar)
        return total

    def potential(s: Any) -> Any:
        return G * sum(p[1] + 0.5 * (R @ (centres[i + 1] - centres[i]))[1] for i, (R, p) in enumerate(poses(s)))

    def p3(s: Any) -> np.ndarray:
        return poses(s)[2][1]

    return Minimal(inertia, potential, configuration=p3)


def bricard_angles(theta: Any) -> list[Any]:
    """The five hinge angles of the open chain for the first one."""
    psi = np.arcsin(np.sin(theta) / (1 + np.sin(theta)))
    return [theta, -psi, theta, -psi, theta]


def _turn(axis: np.ndarray, angle: Any) -> np.ndarray:
    """Rotation about a coordinate axis."""
    K = np.cross(np.eye(3), axis)
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K)


def largest_difference(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray) -> float:
    """Largest |a - b| over max(1, |b|)."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return float(np.max(np.abs(a - b) / np.maximum(1.0, np.abs(b))))
