"""Reports of the cost of a plan: operations, memory, arrays, steps; JSON, text, tables, page.

``numbers`` holds the report as plain data, with ``peak`` (a lower bound of the memory) and
``pareto`` (time against memory). It is shown by ``explain`` as text, by ``tables`` in a terminal
and by ``page`` as HTML, which has ``counts`` for other extents and three figures: ``nest``,
``fusion_graph`` and ``timeline``. ``mathml`` typesets equations and ``svg`` draws
figures.
"""

from .explain import explain_text
from .numbers import report_json
from .page import figures, report_html
from .tables import print_report

__all__ = ["explain_text", "figures", "print_report", "report_html", "report_json"]
