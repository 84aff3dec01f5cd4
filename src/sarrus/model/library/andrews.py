"""Andrews' squeezing mechanism."""

from __future__ import annotations

from sarrus.model.features import point_on
from sarrus.model.mechanism import Mechanism


def andrews(torque: float = 0.033) -> Mechanism:
    """Seven bodies, three loops, driven by a constant torque (IFToMM A03; Test Set for IVP Solvers, Bari).

    Seven coordinates, six rows, mobility 1; horizontal (no gravity). The x-z plane here is the x-y plane of
    the test set. Joints, with the coordinates of the test set: "beta" (crank K1), "Theta" (K2 on K1), "gamma"
    (K3), "delta" (K5), "Phi" (K4 on K5), "epsilon" (K7), "Omega" (K6 on K7). Closures: "E3", "E4", "E6", the
    end of K2 on K3, K4, K6 (equations g1 … g6 in this order, with the multipliers of the test set). Spring:
    "spring". Torque on the crank: "drive". Frame: "F", the crank's end.

    Args:
        torque: on the crank [N m].
    """
    mech = Mechanism("Andrews' squeezer", gravity=(0, 0, 0), planar=True)
    k1 = mech.body("K1", 0.04325, com=(0.00092, 0), inertia=2.194e-6)
    k2 = mech.body("K2", 0.00365, com=(-0.0115, 0), inertia=4.41e-7)
    k3 = mech.body("K3", 0.02373, com=(0.01043, -0.01874), inertia=5.255e-6)
    k4 = mech.body("K4", 0.00706, com=(0, 0.01421 - 0.02), inertia=5.667e-7)
    k5 = mech.body("K5", 0.0705, com=(0.02308, 0.00916), inertia=1.169e-5)
    k6 = mech.body("K6", 0.00706, com=(0.02 - 0.01421, 0), inertia=5.667e-7)
    k7 = mech.body("K7", 0.05498, com=(0.00449, -0.01228), inertia=1.912e-5)

    a, b, c = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)  # on the ground
    mech.revolute("beta", mech.ground, k1, initial=-0.06171389001427645)
    mech.revolute("Theta", k1, k2, at=(0.007, 0), initial=0.0)
    mech.revolute("gamma", mech.ground, k3, at=b, initial=0.4552798191630704)
    mech.revolute("delta", mech.ground, k5, at=a, initial=0.4873649795438426)
    mech.revolute("Phi", k5, k4, at=(0.04, 0), initial=0.2226683901658859)
    mech.revolute("epsilon", mech.ground, k7, at=a, initial=1.230547444549821)
    mech.revolute("Omega", k7, k6, at=(0, -0.04), initial=-0.2226683901658859)

    end = point_on(k2, (-0.028, 0))
    mech.close("E3", end, point_on(k3, (0, -0.035)))
    mech.close("E4", end, point_on(k4, (0, -0.02)))
    mech.close("E6", end, point_on(k6, (0.02, 0)))
    mech.spring("spring", point_on(k3, (0.02, -0.018)), point_on(mech.ground, c), stiffness=4530.0, length=0.07785)
    mech.torque("drive", k1, (0, -torque, 0))  # about -y: from x towards z
    mech.frame("F", point_on(k1, (0.007, 0)))
    return mech
