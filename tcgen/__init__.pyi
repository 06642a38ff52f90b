# Public names of tcgen: ``__init__.py`` derives ``__all__`` and its lazy imports from this list.
# ruff: noqa: I001  (isort would split lines of several names)
from . import chem as chem
from ._version import __version__ as __version__
from .algebra.derivatives.equations import derivative as derivative, jvp as jvp
from .algebra.spin.arrays import spin_blocks as spin_blocks, spin_orbital as spin_orbital
from .algebra.spin.integrate import spin_integrated as spin_integrated
from .blocks.api import blocked as blocked
from .blocks.arrays import BlockedArray as BlockedArray
from .blocks.program import BlockedProgram as BlockedProgram
from .blocks.program import BoundBlockedProgram as BoundBlockedProgram
from .compiler.api import compile as compile
from .compiler.derived import derive as derive
from .contraction.functions import contract as contract, einsum as einsum, tensordot as tensordot
from .contraction.report import EinsumReport as EinsumReport, einsum_report as einsum_report
from .distributed.distribute import distribute as distribute
from .distributed.run import DistributedProgram as DistributedProgram, RunReport as RunReport
from .distributed.stored import Stored as Stored, stored as stored
from .errors import (
    ArgumentError as ArgumentError,
    ArtifactError as ArtifactError,
    AxisError as AxisError,
    BuildError as BuildError,
    CacheWarning as CacheWarning,
    CheckError as CheckError,
    ContractionPathError as ContractionPathError,
    ConvergenceError as ConvergenceError,
    DtypeError as DtypeError,
    EinsumError as EinsumError,
    ExtentError as ExtentError,
    MemoryLimitError as MemoryLimitError,
    PathNameError as PathNameError,
    PlanError as PlanError,
    ReadOnlyError as ReadOnlyError,
    ShapeError as ShapeError,
    SpecError as SpecError,
    TcgenError as TcgenError,
    UnavailableError as UnavailableError,
    VerifyError as VerifyError,
)
from .frontend.importers.pdaggerq import from_pdaggerq as from_pdaggerq
from .frontend.importers.sympy_indexed import from_sympy as from_sympy
from .frontend.importers.wicked import from_wicked as from_wicked
from .frontend.spec.reader import read_spec as read_spec, read_spec_file as read_spec_file
from .frontend.spec.writer import spec_text as spec_text
from .grading import Grading as Grading
from .interp import evaluate_system as evaluate_system
from .ir.system import System as System
from .lazy_arrays.array import LazyArray as LazyArray, compute as compute, lazy as lazy
from .native.make import library as library
from .options import Planning as Planning
from .resources import spec_path as spec_path
from .runtime.bound import BoundProgram as BoundProgram
from .runtime.cpu.blas import get_threads as get_threads, set_threads as set_threads
from .runtime.symmetry import pack_pairs as pack_pairs
from .runtime.program import Program as Program, load as load
from .runtime.report import Report as Report
from .thresholds.time_model import Machine as Machine
