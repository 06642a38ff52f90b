int tcgen_threads(void) { return omp_get_max_threads(); }
