"""Searches by CP-SAT: deterministic, one worker, interruptible."""

from __future__ import annotations

from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING

from ...errors import VerifyError

# Loading it takes a quarter of a second, which plans from the cache do without.
if TYPE_CHECKING:
    from ortools.sat.python import cp_model


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a search: its status, and the solver with values and bounds."""

    solver: cp_model.CpSolver
    status: cp_model.CpSolverStatus

    @property
    def optimal(self) -> bool:
        """True if the solution is proven optimal."""
        return self._name == "OPTIMAL"

    @property
    def found(self) -> bool:
        """True if there is a solution."""
        return self._name in ("OPTIMAL", "FEASIBLE")

    @property
    def infeasible(self) -> bool:
        """True if it is proven that no solution exists."""
        return self._name == "INFEASIBLE"

    @property
    def unknown(self) -> bool:
        """True if the search ended without a solution or a proof."""
        return self._name == "UNKNOWN"

    @property
    def spent(self) -> float:
        """Deterministic seconds of the search."""
        return float(self.solver.response_proto.deterministic_time)

    def refusal(self, model: str) -> VerifyError:
        """The error for a model that CP-SAT does not accept."""
        return VerifyError(f"CP-SAT refuses the {model} model ({self._name})")

    @property
    def _name(self) -> str:
        return str(self.solver.status_name(self.status))


def solve(model: cp_model.CpModel, seconds: float, *, bound_only: bool = False) -> Answer:
    """The same answer every time: one worker, and deterministic seconds (negative: zero).

    ``bound_only`` leaves out relaxing and probing, which cost most if few arrays can be contracted.
    """
    from ortools.sat.python import cp_model  # noqa: PLC0415

    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = 1
    parameters.random_seed = 0
    parameters.max_deterministic_time = max(0.0, seconds)
    # With its own handler, CP-SAT would keep Ctrl-C from Python for ever.
    parameters.catch_sigint_signal = False
    # or-tools #5293: this presolve step may overflow and certify a wrong optimum.
    if hasattr(parameters, "presolve_inclusion_work_limit"):
        parameters.presolve_inclusion_work_limit = 0
    if bound_only:
        parameters.linearization_level = 0
        parameters.cp_model_probing_level = 0
    return Answer(solver, interruptible_solve(solver, model))


def interruptible_solve(
    solver: cp_model.CpSolver, model: cp_model.CpModel
) -> cp_model.CpSolverStatus:
    """Solve on another thread, so that Ctrl-C reaches this one and stops the search."""
    status: Future[cp_model.CpSolverStatus] = Future()

    def search() -> None:
        # An error is raised again when the result is read.
        try:
            status.set_result(solver.solve(model))
        except Exception as error:
            status.set_exception(error)

    try:
        Thread(target=search, daemon=True).start()
        # A signal need not wake this thread.
        while not status.done():
            wait((status,), timeout=0.1)
        return status.result()
    except KeyboardInterrupt:
        while not status.done():
            solver.stop_search()
            wait((status,), timeout=0.05)
        raise
