"""Settings of CP-SAT: deterministic, one worker, interruptible."""

from __future__ import annotations

from concurrent.futures import Future, wait
from threading import Thread

from ortools.sat.python import cp_model


def search_solver(seconds: float) -> cp_model.CpSolver:
    """A solver that gives the same answer every time: one worker, and deterministic seconds."""
    from ortools.sat.python import cp_model  # noqa: PLC0415

    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = 1
    parameters.random_seed = 0
    parameters.max_deterministic_time = seconds
    parameters.catch_sigint_signal = False  # else Python never gets Ctrl-C again
    # or-tools #5293: this presolve step may overflow and certify a wrong optimum.
    if hasattr(parameters, "presolve_inclusion_work_limit"):
        parameters.presolve_inclusion_work_limit = 0
    return solver


def interruptible_solve(
    solver: cp_model.CpSolver, model: cp_model.CpModel
) -> cp_model.CpSolverStatus:
    """Solve on another thread, so that Ctrl-C reaches this one and stops the search."""
    status: Future[cp_model.CpSolverStatus] = Future()

    def search() -> None:
        try:
            status.set_result(solver.solve(model))
        except Exception as error:  # raised where the result is awaited
            status.set_exception(error)

    try:
        Thread(target=search, daemon=True).start()
        while not status.done():
            wait((status,), timeout=0.1)  # a signal need not wake this thread
        return status.result()
    except KeyboardInterrupt:
        while not status.done():
            solver.stop_search()
            wait((status,), timeout=0.05)
        raise
