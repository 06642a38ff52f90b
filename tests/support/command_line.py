"""The command line as tests call it, and the specs that they give it."""

from __future__ import annotations

from click.testing import CliRunner, Result

import tcgen
from tcgen.cli.commands import main

MP2 = tcgen.spec_path("mp2_closed_shell")
LADDER = tcgen.spec_path("df_ladder")
FIGURE_1 = tcgen.spec_path("allam_figure1")


def invoke(*args: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False)
