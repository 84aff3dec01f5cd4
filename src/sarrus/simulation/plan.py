"""Formulation and method, matched by the problem that the one makes and the other takes, before the first step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sarrus.dynamics.formulations import chosen, formulations
from sarrus.dynamics.formulations.record import Formulation
from sarrus.dynamics.rubbing import unknown
from sarrus.dynamics.system import System
from sarrus.errors import StateError
from sarrus.kernel.motion import METHODS, Motion
from sarrus.simulation.settings import Settings

if TYPE_CHECKING:
    from sarrus.kernel.dae import Dae

# method -> differential indices of the problems it takes; 0 is an ODE
ACCEPTS: Mapping[str, tuple[int, ...]] = {
    "dop853": (0,),
    "dopri5": (0,),
    "radau": (0, 1, 2, 3),
    "rk4": (0,),
    "euler": (0,),
    "variational": (),
    "ida": (1, 2, 3),
    "generalized-alpha": (3,),
}
# what a method that takes no ODE gets if nobody names a formulation
_USUAL = {"ida": "ggl", "generalized-alpha": "index-3"}
_LIKE = {"generalized-alpha": "rk4"}  # whose fixed steps are treated alike by everything around them


@dataclass(frozen=True, eq=False)
class Plan:
    """How a run computes accelerations.

    Attributes:
        form: the formulation, or None for the default one.
        drift: how drift is corrected.
        baumgarte: gains of Baumgarte's correction [1/s].
    """

    form: Formulation | None
    drift: str
    baumgarte: tuple[float, float]

    @property
    def reduced(self) -> bool:
        """Whether steps carry reduced quasi-velocities."""
        return self.form is not None and self.form.name == "quasi-velocity"

    @property
    def implicit(self) -> bool:
        """Whether the equations are those of a differential-algebraic form, so that steps are too."""
        return self.form is not None and self.form.index > 0

    def suits(self, system: System, settings: Settings) -> None:
        """Refuse forces of the machine that the formulation does not know, and settings that do not go with it."""
        if self.form is None or self.form.name == "baumgarte":
            return
        if system.layout.rubbing:
            cure = "use the default formulation, with 'dop853', or 'radau' where things stick"
            raise unknown(f"formulation {self.form.name!r}", system.layout.rubbing, cure)
        if not self.implicit:
            return
        if settings.crossing == "stop" and settings.drift == "free":
            raise StateError(
                "crossing='stop' with drift='free': a differential-algebraic form that is left to itself does not look "
                "for singular positions; use drift='project', or a formulation that makes an ODE"
            )
        for what, there in (
            ("crossing='release'", settings.crossing == "release"),
            ("drift='baumgarte'", settings.drift == "baumgarte"),
        ):
            if there:
                raise StateError(
                    f"{what}: not with a differential-algebraic form, whose solver satisfies all constraints at once; "
                    "leave it out, or take a formulation that makes an ODE"
                )

    def enter(self, motion: Motion, system: System, settings: Settings) -> Dae | None:
        """Put the formulation's right-hand side, or its steps, in place of the default ones; what makes the steps."""
        motion.raw.method = METHODS.index(_LIKE.get(settings.method, settings.method))
        self.suits(system, settings)
        if self.form is None or self.form.name == "baumgarte":
            return None
        if self.implicit:
            from sarrus.simulation.dae.forms import bound

            dae = bound(system, self.form.name, motion)
            dae.step_with("radau" if settings.method == "radau" else "alpha")
            return dae
        from sarrus.dynamics.formulations.compiled import choice, quasi_velocities, right_hand_side

        motion.tail(choice(system, self.form))
        motion.call("state", right_hand_side(system))
        if self.reduced:
            motion.carry(*quasi_velocities(system, self.form))
        return None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for the record."""
        if self.form is None:
            return {}
        options = {k: np.asarray(v).tolist() for k, v in self.form.options.items() if v is not None}
        return {"formulation": self.form.name, "formulation options": options}


def make_plan(
    formulation: str | Formulation | None, method: str, drift: str, baumgarte: tuple[float, float], dt: float | None
) -> Plan:
    """A plan, or an error that says what fits instead.

    Args:
        formulation: name or formulation, or None for the default.
        method: integrator.
        drift: as asked for.
        baumgarte: gains as asked for.
        dt: length of fixed steps [s], if they are fixed.
    """
    if method not in tuple(ACCEPTS):
        return Plan(None, drift, baumgarte)  # which the settings refuse
    formulation = _USUAL.get(method) if formulation is None else formulation
    if formulation is None:
        return Plan(None, drift, baumgarte)
    form = chosen(formulation)
    if not fits(form, method):
        raise StateError(_mismatch(form, method))
    if form.name == "quasi-velocity" and drift == "baumgarte":
        raise StateError(
            "formulation 'quasi-velocity' has velocities that keep the constraints by themselves, so there is nothing "
            "for drift='baumgarte' to damp; expected drift='project' or 'free'"
        )
    if not form.stabilised:
        return Plan(form, drift, baumgarte)
    if drift != "project":
        raise StateError(f"formulation {form.name!r} corrects drift by itself; leave out drift={drift!r}")
    if form.name == "baumgarte":
        return Plan(form, "baumgarte", (float(form.options["alpha"]), float(form.options["beta"])))
    if form.options["h"] == "auto" and dt is not None and dt > 0:
        form = form.with_options(h=dt if method == "rk4" else 2 * dt)  # Euler's steps must be shorter than h
    return Plan(form, "free", baumgarte)


def fits(form: Formulation, method: str) -> bool:
    """Whether a method takes the problem that a formulation makes."""
    if form.name == "regularised":  # errors are damped within a time that is the step's own (sheet 10)
        return method in ("rk4", "euler")
    if form.name == "quasi-velocity":  # a step carries v_r about a basis of its own; radau's equations are those of v
        return method in ("dop853", "dopri5", "rk4", "euler")
    return form.index in ACCEPTS[method]


def _mismatch(form: Formulation, method: str) -> str:
    fitting = [repr(name) for name in ACCEPTS if fits(form, name)]
    others = [x.name for x in formulations() if fits(x, method)]
    return (
        f"formulation {form.name!r} makes {'a' if form.index else 'an'} {form.problem}, which method {method!r} does "
        f"not take.\n  methods that do: {', '.join(fitting) or 'none'}\n"
        f"  formulations that {method!r} takes: {', '.join(others) or 'only the default one'}"
    )
