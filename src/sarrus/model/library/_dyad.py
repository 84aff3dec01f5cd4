"""Where two links in a row must point: the one piece of position analysis that several machines share."""

from __future__ import annotations

import numpy as np


def dyad(reach: complex, first: float, second: float, bend: int) -> tuple[float, float]:
    """Angles of two links, hinged in a row, whose end is at `reach`.

    Args:
        reach: from the hinge of the first link to the end of the second, as x + i z [m].
        first: length of the first link [m].
        second: length of the second link [m].
        bend: sign of the second angle; chooses one of the two solutions.

    Returns:
        Angle of the first link from x towards z, and of the second relative to the first [rad]. Out of reach
        they point straight at it: a guess that assembly will report.
    """
    cosine = (abs(reach) ** 2 - first**2 - second**2) / (2.0 * first * second)
    elbow = bend * np.arccos(np.clip(cosine, -1.0, 1.0))
    return float(np.angle(reach) - np.angle(first + second * np.exp(1j * elbow))), float(elbow)
