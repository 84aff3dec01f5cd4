"""A trajectory and its audit as plain data for JSON: what is not a finite number becomes null."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sarrus.dynamics.state import State
    from sarrus.simulation.audit import Audit
    from sarrus.simulation.trajectory import Trajectory


def of_trajectory(traj: Trajectory) -> dict[str, Any]:
    """How a run ended, what it cost, what happened, and where the machine is at its ends."""
    x = traj.system.layout
    crossings = [
        {
            "t": c.t,
            "positions": _named(x.q_names, c.q),
            "velocities": _named(x.v_names, c.v),
            "singular_values": c.singular_values,
            "rank": c.rank,
            "rank_before": c.rank_before,
            "direction": c.direction,
            "text": c.text,
        }
        for c in traj.crossings
    ]
    return plain(
        {
            "machine": traj.system.name,
            "rows": len(traj),
            "settings": traj.settings,
            "status": asdict(traj.status) | {"ok": traj.status.ok, "message": str(traj.status)},
            "stats": asdict(traj.stats),
            "crossings": crossings,
            "start": of_state(traj.state(0)),
            "final": of_state(traj.final),
        }
    )


def of_state(state: State) -> dict[str, Any]:
    """Time, positions and velocities by name."""
    x = state.layout
    return {"t": state.t, "positions": _named(x.q_names, state.q), "velocities": _named(x.v_names, state.v)}


def of_audit(audit: Audit) -> dict[str, Any]:
    """All numbers of an audit; of the ranks only the smallest, the largest and the changes."""
    data = {name: value for name, value in asdict(audit).items() if name not in ("rank", "by_group")}
    return plain(data | {"by_group": dict(audit.by_group), "rank": [int(audit.rank.min()), int(audit.rank.max())]})


def _named(names: tuple[str, ...], values: np.ndarray) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))


def plain(value: Any) -> Any:
    """Dictionaries, lists, texts and finite numbers, whatever they were before."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and not np.isfinite(value) else value
