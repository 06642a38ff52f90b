"""Shipped specs on which passes are tested one by one: each kind of program once or twice.

Planning all of them for every objective would take hours. The others are compared with PySCF and
ebcc in ``tests/chem``.
"""

SPEC_SAMPLE = (
    "a3a",
    "allam_figure1",
    "cc2_df",
    "ccd_spin_orbital",
    "ccsd_closed_shell",
    "ccsd_spin_orbital",
    "df_ladder",
    "drpa",
    "mp2_closed_shell",
    "mp2_df",
    "mp2_spin_orbital",
    "sosmp2_laplace_df",
    "t_closed_shell",
    "t_spin_orbital",
    "uccsd_energy_t1",
)
