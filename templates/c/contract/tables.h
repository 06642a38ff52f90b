#ifndef TC_TABLES_H
#define TC_TABLES_H

#include "ukernel.h"

/* Micro-kernels come from libraries of their own; whoever loads these fills in the tables. */
tc_ukernels TC_NAME(tc_packed), TC_NAME(tc_left), TC_NAME(tc_right);

#endif
