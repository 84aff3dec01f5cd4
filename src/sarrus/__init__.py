"""Sarrus: model, diagnose, simulate and control machines whose parts are tied together."""

from typing import TYPE_CHECKING, Any

from sarrus.errors import AssemblyError as AssemblyError
from sarrus.errors import CompilerError as CompilerError
from sarrus.errors import ModelError as ModelError
from sarrus.errors import SarrusError as SarrusError
from sarrus.errors import StateError as StateError
from sarrus.errors import UnknownNameError as UnknownNameError
from sarrus.model import library as library
from sarrus.model.expression import parameter as parameter
from sarrus.model.features import curve_on as curve_on
from sarrus.model.features import cylindrical_on as cylindrical_on
from sarrus.model.features import line_on as line_on
from sarrus.model.features import planar_on as planar_on
from sarrus.model.features import plane_on as plane_on
from sarrus.model.features import point_on as point_on
from sarrus.model.features import prismatic_on as prismatic_on
from sarrus.model.features import revolute_on as revolute_on
from sarrus.model.features import spherical_on as spherical_on
from sarrus.model.features import surface_on as surface_on
from sarrus.model.features import universal_on as universal_on
from sarrus.model.features import weld_on as weld_on
from sarrus.model.geometry import rotation_about as rotation_about
from sarrus.model.inertia import box as box
from sarrus.model.inertia import cylinder as cylinder
from sarrus.model.inertia import parallel_axis as parallel_axis
from sarrus.model.inertia import point_mass as point_mass
from sarrus.model.inertia import rod as rod
from sarrus.model.inertia import sphere as sphere
from sarrus.model.lagrangian import Lagrangian as Lagrangian
from sarrus.model.mechanism import Mechanism as Mechanism

if TYPE_CHECKING:
    from sarrus import control as control
    from sarrus.analysis.branches import AssemblyModes as AssemblyModes
    from sarrus.analysis.branches import assembly_modes as assembly_modes
    from sarrus.analysis.check import Check as Check
    from sarrus.analysis.check import check as check
    from sarrus.analysis.compare import Comparison as Comparison
    from sarrus.analysis.compare import compare as compare
    from sarrus.analysis.diagnose import diagnose as diagnose
    from sarrus.analysis.diagnosis import Diagnosis as Diagnosis
    from sarrus.analysis.map_record import SingularityMap as SingularityMap
    from sarrus.analysis.maps import singularity_map as singularity_map
    from sarrus.analysis.reactions import Reactions as Reactions
    from sarrus.analysis.reactions import reactions as reactions
    from sarrus.analysis.singularities import Singularity as Singularity
    from sarrus.analysis.singularities import classify as classify
    from sarrus.analysis.tracking import SingularityTrack as SingularityTrack
    from sarrus.analysis.tracking import track_singularities as track_singularities
    from sarrus.analysis.workspace import Reach as Reach
    from sarrus.analysis.workspace import reach as reach
    from sarrus.control.inverse import InverseDynamics as InverseDynamics
    from sarrus.control.inverse import gravity_compensation as gravity_compensation
    from sarrus.control.inverse import inverse_dynamics as inverse_dynamics
    from sarrus.dynamics.compile import compile as compile
    from sarrus.dynamics.formulations import formulation as formulation
    from sarrus.dynamics.formulations import formulations as formulations
    from sarrus.dynamics.formulations.matrices import Matrices as Matrices
    from sarrus.dynamics.formulations.record import Formulation as Formulation
    from sarrus.dynamics.state import State as State
    from sarrus.dynamics.system import System as System
    from sarrus.simulation.audit import AuditError as AuditError
    from sarrus.simulation.driver import Simulation as Simulation
    from sarrus.simulation.driver import simulate as simulate
    from sarrus.simulation.events import Change as Change
    from sarrus.simulation.events import Event as Event
    from sarrus.simulation.inputs import Series as Series
    from sarrus.simulation.trajectory import Trajectory as Trajectory

__version__ = "0.1.0"

# names whose modules need CasADi or a compiler: imported when first used
_LAZY = {
    "AssemblyModes": "sarrus.analysis.branches",
    "assembly_modes": "sarrus.analysis.branches",
    "Check": "sarrus.analysis.check",
    "check": "sarrus.analysis.check",
    "Comparison": "sarrus.analysis.compare",
    "compare": "sarrus.analysis.compare",
    "State": "sarrus.dynamics.state",
    "System": "sarrus.dynamics.system",
    "compile": "sarrus.dynamics.compile",
    "Formulation": "sarrus.dynamics.formulations.record",
    "formulation": "sarrus.dynamics.formulations",
    "formulations": "sarrus.dynamics.formulations",
    "Matrices": "sarrus.dynamics.formulations.matrices",
    "Diagnosis": "sarrus.analysis.diagnosis",
    "diagnose": "sarrus.analysis.diagnose",
    "Reactions": "sarrus.analysis.reactions",
    "reactions": "sarrus.analysis.reactions",
    "SingularityMap": "sarrus.analysis.map_record",
    "singularity_map": "sarrus.analysis.maps",
    "Singularity": "sarrus.analysis.singularities",
    "classify": "sarrus.analysis.singularities",
    "SingularityTrack": "sarrus.analysis.tracking",
    "track_singularities": "sarrus.analysis.tracking",
    "Reach": "sarrus.analysis.workspace",
    "reach": "sarrus.analysis.workspace",
    "control": "sarrus.control",
    "InverseDynamics": "sarrus.control.inverse",
    "gravity_compensation": "sarrus.control.inverse",
    "inverse_dynamics": "sarrus.control.inverse",
    "AuditError": "sarrus.simulation.audit",
    "Change": "sarrus.simulation.events",
    "Event": "sarrus.simulation.events",
    "Series": "sarrus.simulation.inputs",
    "Trajectory": "sarrus.simulation.trajectory",
    "Simulation": "sarrus.simulation.driver",
    "simulate": "sarrus.simulation.driver",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'sarrus' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(_LAZY[name])
    value = module if _LAZY[name] == f"sarrus.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


__all__ = [name for name in __dir__() if not name.startswith("_") and name not in ("Any", "TYPE_CHECKING")]
