"""Reports of the cost of a plan: operations, memory, arrays, steps; JSON, text, tables, page.

``numbers`` makes the report as plain data. ``explain`` prints it as text, with the fusion graph by
``fusions``, ``tables`` in a terminal, and ``page`` as HTML, which ``counts`` evaluates at other
extents. The page has three figures:
``nest``, ``fusion_graph`` and ``charts``. ``mathml`` typesets equations, ``svg`` draws, and
``units`` formats bytes and seconds.
"""

from .explain import explain_text
from .numbers import report_json
from .page import figures, report_html
from .tables import print_report

__all__ = ["explain_text", "figures", "print_report", "report_html", "report_json"]
