"""What a plan costs: operations, memory, arrays, steps, kernels; as JSON, text and tables."""

from .contents import report_json
from .explain import explain_text
from .tables import print_report

__all__ = ["explain_text", "print_report", "report_json"]
