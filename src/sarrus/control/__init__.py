"""Control of constrained machines: torque resolution, controllers that run as compiled code, linear tools."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sarrus.control.controller import Controller as Controller
    from sarrus.control.linear import Law as Law
    from sarrus.control.linear import LinearQuadratic as LinearQuadratic
    from sarrus.control.linear import uncontrollable as uncontrollable
    from sarrus.control.linear import unobservable as unobservable
    from sarrus.control.motion import HybridMotionForce as HybridMotionForce
    from sarrus.control.motion import ProjectedInverseDynamics as ProjectedInverseDynamics
    from sarrus.control.quasi import DependentCoordinates as DependentCoordinates
    from sarrus.control.quasi import QuasiVelocityRegulation as QuasiVelocityRegulation
    from sarrus.control.quasi import QuasiVelocityTracking as QuasiVelocityTracking
    from sarrus.control.reach import Controllability as Controllability
    from sarrus.control.reach import controllability as controllability
    from sarrus.control.references import MinimumJerk as MinimumJerk
    from sarrus.control.references import Polynomial as Polynomial
    from sarrus.control.references import Samples as Samples
    from sarrus.control.references import along_manifold as along_manifold
    from sarrus.control.taskspace import Posture as Posture
    from sarrus.control.taskspace import TaskSpace as TaskSpace
    from sarrus.simulation.loop import Loop as Loop

# names whose modules need CasADi or a compiler: imported when first used
_LAZY = {
    "Controller": "sarrus.control.controller",
    "Controllability": "sarrus.control.reach",
    "DependentCoordinates": "sarrus.control.quasi",
    "HybridMotionForce": "sarrus.control.motion",
    "Law": "sarrus.control.linear",
    "LinearQuadratic": "sarrus.control.linear",
    "Loop": "sarrus.simulation.loop",
    "MinimumJerk": "sarrus.control.references",
    "Polynomial": "sarrus.control.references",
    "Posture": "sarrus.control.taskspace",
    "ProjectedInverseDynamics": "sarrus.control.motion",
    "QuasiVelocityRegulation": "sarrus.control.quasi",
    "QuasiVelocityTracking": "sarrus.control.quasi",
    "Samples": "sarrus.control.references",
    "TaskSpace": "sarrus.control.taskspace",
    "along_manifold": "sarrus.control.references",
    "controllability": "sarrus.control.reach",
    "uncontrollable": "sarrus.control.linear",
    "unobservable": "sarrus.control.linear",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'sarrus.control' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


__all__ = [name for name in __dir__() if not name.startswith("_") and name not in ("Any", "TYPE_CHECKING")]
