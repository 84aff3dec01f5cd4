"""Pinocchio as a contestant: constraintDynamics and lcaba.

Run from a C++ loop compiled against the headers of the installed wheel where that is possible (no Python
between two evaluations), else from Python with the cost of an empty call measured.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin

import sarrus as sr
from bench.machines import Samples, relative_error
from bench.peers.contestant import Contestant, build_helper, pointer
from bench.peers.convert import Chain, Pose, to_chain
from bench.peers.convert import value as number
from bench.peers.pinocchio_states import to_pinocchio
from bench.timing import CLOCK

VERSION = pin.__version__
BOUND = 1e-6
WANTED = 1e-9  # settings that reach this are preferred
METHODS = ("constraintDynamics", "lcaba")
MU = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)
ITERATIONS = (1, 2, 3, 4, 6, 10, 20, 50)
ACCURACY = 1e-12  # of the proximal iteration, absolute and relative; it stops there or after `ITERATIONS`

# Without -march=native: its wide vectors cost Pinocchio 10 to 30 % on matrices of this size (measured with
# GCC 12 on a processor with AVX-512); so compiled the loop is as fast as the wheel's own library.
FLAGS = (
    "-std=c++17", "-O3", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-gnu-unique",
    "-w", "-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS", "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
)  # fmt: skip


class CppLoop:
    """The machine in the compiled C++ loop."""

    route = "C++"
    trivial = None

    def __init__(self, library: ctypes.CDLL, chain: Chain, method: str, rows: tuple[np.ndarray, ...]):
        """Hand over the machine as text and the states as arrays."""
        self._library, self._rows = library, rows
        code = METHODS.index(method)
        self._handle = library.machine_create(to_text(chain).encode(), code, len(rows[0]), *map(pointer, rows))

    def set(self, mu: float, iterations: int) -> None:
        """Choose the proximal settings."""
        self._library.machine_settings(self._handle, ACCURACY, mu, iterations)

    def accelerations(self) -> np.ndarray:
        """Joint accelerations of all states in Pinocchio's coordinates."""
        out = np.zeros_like(self._rows[1])
        self._library.machine_accelerations(self._handle, pointer(out))
        return out

    def run(self, count: int) -> int:
        """Evaluate `count` times."""
        self._library.machine_run(self._handle, count)
        return count


class PythonLoop:
    """The machine called from Python, one state after another."""

    route = "Python"

    def __init__(self, chain: Chain, method: str, rows: tuple[np.ndarray, ...]):
        """Build the model."""
        self._rows = list(zip(*(list(x) for x in rows), strict=True))
        self._call = getattr(pin, method)
        self._arguments = _prepared(*to_model(chain), method)
        self._nothing = _prepared(pin.Model(), [], "constraintDynamics")
        self.set(1e-8, 1)

    def set(self, mu: float, iterations: int) -> None:
        """Choose the proximal settings."""
        self._settings = pin.ProximalSettings(ACCURACY, ACCURACY, mu, iterations)

    def accelerations(self) -> np.ndarray:
        """Joint accelerations of all states in Pinocchio's coordinates."""
        model, data, *loops = self._arguments
        return np.array([self._call(model, data, *row, *loops, self._settings).copy() for row in self._rows])

    def run(self, count: int) -> int:
        """Evaluate about `count` times."""
        model, data, *loops = self._arguments
        call, settings = self._call, self._settings
        times = max(1, count // len(self._rows))
        for _ in range(times):
            for q, v, tau in self._rows:
                call(model, data, q, v, tau, *loops, settings)
        return times * len(self._rows)

    def trivial(self, count: int) -> int:
        """The same call for a model in which nothing moves."""
        model, data, *loops = self._nothing
        settings, none = self._settings, np.zeros(0)
        for _ in range(count):
            pin.constraintDynamics(model, data, none, none, none, *loops, settings)
        return count


def contestants(system: sr.System, samples: Samples, expected: np.ndarray, compiled: bool) -> tuple[list, list[str]]:
    """constraintDynamics and lcaba in their fastest accurate settings, and remarks.

    Args:
        system: the machine.
        samples: states and forces.
        expected: accelerations to agree with.
        compiled: use the C++ loop if it can be built.
    """
    chain, remarks = to_chain(system.description), []
    rows, back = to_pinocchio(system, chain, samples)
    library = None
    if compiled:
        try:
            library = _library()
        except RuntimeError as error:
            remarks.append(f"Pinocchio runs from Python: {error}")
    out = []
    for method in METHODS:
        if not hasattr(pin, method) or (method == "lcaba" and not hasattr(pin, "computeJointMinimalOrdering")):
            remarks.append(f"this Pinocchio has no {method} in Python")
            continue
        loop = CppLoop(library, chain, method, rows) if library else PythonLoop(chain, method, rows)
        settings = _tune(loop, back, expected)

        def accelerations(loop=loop) -> np.ndarray:
            return back(loop.accelerations())

        settings |= {"accuracy": ACCURACY, "loop": loop.route}
        if library:
            settings["flags"] = " ".join(FLAGS[:3])
        out.append(Contestant(f"Pinocchio {method}", loop.run, accelerations, BOUND, settings, loop.trivial))
    return out, remarks


def _tune(loop: CppLoop | PythonLoop, back: Callable, expected: np.ndarray) -> dict[str, float]:
    """The fastest settings among the accurate ones (the most accurate, where none is); leaves the loop set to them."""
    tried = []
    for mu in MU:
        for iterations in ITERATIONS:
            loop.set(mu, iterations)
            with np.errstate(all="ignore"):
                error = relative_error(back(loop.accelerations()), expected)
            tried.append((error, mu, iterations))
            if error <= WANTED:
                break
    bound = next((b for b in (WANTED, BOUND) if any(e <= b for e, _, _ in tried)), min(tried)[0])
    best = None
    for _, mu, iterations in (x for x in tried if x[0] <= bound):
        loop.set(mu, iterations)
        seconds = []
        for _ in range(5):
            start = CLOCK()
            done = loop.run(128)
            seconds.append((CLOCK() - start) / done)
        if best is None or min(seconds) < best[0]:
            best = (min(seconds), mu, iterations)
    assert best is not None
    loop.set(*best[1:])
    return {"mu": best[1], "iterations": best[2]}


def to_text(chain: Chain) -> str:
    """The chain in the words that pinocchio_loop.cpp reads."""
    words: list = [*chain.gravity, len(chain.links)]
    for link in chain.links:
        words += [link.kind, link.parent, *_numbers(link.place)]
    words.append(len(chain.bodies))
    for joint, body, place in chain.bodies:
        words += [joint, float(number(body.mass)), *number(body.com), *number(body.inertia).ravel(), *_numbers(place)]
    words.append(len(chain.loops))
    for a, at_a, b, at_b in chain.loops:
        words += [a, *_numbers(at_a), b, *_numbers(at_b)]
    return " ".join(w if isinstance(w, str) else repr(int(w) if isinstance(w, int) else float(w)) for w in words)


def _numbers(place: Pose) -> list[float]:
    return [*place[0].ravel(), *place[1]]


def to_model(chain: Chain) -> tuple[pin.Model, list[pin.RigidConstraintModel]]:
    """The chain as a Pinocchio model with its loops."""
    kinds = {
        "RZ": pin.JointModelRZ, "PZ": pin.JointModelPZ, "planar": pin.JointModelPlanar,
        "spherical": pin.JointModelSpherical, "free": pin.JointModelFreeFlyer,
    }  # fmt: skip
    model = pin.Model()
    model.gravity.linear = chain.gravity
    for k, link in enumerate(chain.links):
        model.addJoint(link.parent, kinds[link.kind](), pin.SE3(*link.place), f"joint{k}")
    for joint, body, place in chain.bodies:
        inertia = pin.Inertia(float(number(body.mass)), number(body.com), number(body.inertia))
        model.appendBodyToJoint(joint, inertia, pin.SE3(*place))
    loops = [
        pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, a, pin.SE3(*at_a), b, pin.SE3(*at_b), pin.LOCAL)
        for a, at_a, b, at_b in chain.loops
    ]
    return model, loops


def _prepared(model: pin.Model, loops: list, method: str) -> tuple:
    data = model.createData()
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for loop in loops:
        models.append(loop)
        datas.append(loop.createData())
    if method == "lcaba":
        pin.computeJointMinimalOrdering(model, data, models)
    else:
        pin.initConstraintDynamics(model, data, models, datas)
    return model, data, models, datas


@functools.cache
def _library() -> ctypes.CDLL:
    """The compiled loop; needs g++ or clang++, the wheel's headers, and Eigen (CasADi's wheel carries it)."""
    compiler = next((path for name in ("g++", "clang++", "c++") if (path := shutil.which(name))), None)
    headers = next((p / "include" for p in Path(pin.__file__).parents if (p / "include" / "pinocchio").is_dir()), None)
    eigen = [p for p in (headers and headers / "eigen3", Path("/usr/include/eigen3")) if p]
    for package in ("casadi", "eigenpy"):
        spec = importlib.util.find_spec(package)
        if spec and spec.origin:
            eigen.append(Path(spec.origin).parent / "include" / "eigen3")
    eigen = [p for p in eigen if (p / "Eigen" / "Core").exists()]
    if compiler is None or headers is None or not eigen:
        raise RuntimeError("no C++ compiler" if compiler is None else "headers of Pinocchio or Eigen not found")
    library = build_helper("pinocchio_loop.cpp", (compiler, *FLAGS, f"-I{headers}", f"-I{eigen[0]}"))
    p = ctypes.c_void_p
    library.machine_create.restype = p
    library.machine_create.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int, p, p, p]
    library.machine_settings.argtypes = [p, ctypes.c_double, ctypes.c_double, ctypes.c_int]
    library.machine_accelerations.argtypes = [p, p]
    library.machine_run.argtypes = [p, ctypes.c_long]
    library.machine_run.restype = ctypes.c_double
    return library
