/* The $phase phase of the host program in one call. */
void tcgen_phase_$phase(void *const *tc_buffers, const int64_t *tc_extents,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas$numbers)
{
$body
}
