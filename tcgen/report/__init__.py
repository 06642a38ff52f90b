"""Reports of the cost of a plan: operations, memory, arrays, steps; JSON, text, tables, page."""

from .explain import explain_text
from .numbers import report_json
from .page import figures, report_html
from .pareto import pareto_points
from .tables import print_report

__all__ = ["explain_text", "figures", "pareto_points", "print_report", "report_html", "report_json"]
