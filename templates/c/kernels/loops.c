/* Kernels in C: the function, host loops and launches, sums of threads, products, transpositions. */
//: function
void $name(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const volatile int *const tc_stop = tc_blas[TC_STOP];
    $declare
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_stop;

    $body
}
//: host_loop
for (int64_t $name = 0; $name < $stop; $step) {
    if (*(const volatile int *)tc_blas[TC_STOP]) return;
    $body
}
//: launch
$kernel(tc_buffers, tc_extents, $values,
    tc_strides, tc_threads, tc_blas);
//: first_part
if ($first == 0) {
    $launch
}
//: cleared
if ($last < INT64_MAX) {
    $zeros
}
//: nest
$head {
    $body
}
//: pieces
for (int64_t tc_piece = $low; tc_piece < $high; tc_piece += $piece) {
    if (*tc_stop) continue;
    $body
}
//: totals
{
    $declare
    $loops
    $store
}
//: totals_of_threads
$declare
for (int tc_n = 0; tc_n < tc_threads; ++tc_n) { $clear }
#pragma omp parallel num_threads(tc_threads)
{
    $starts
    $loops
    $ends
}
for (int tc_n = 0; tc_n < tc_threads; ++tc_n) { $add }
//: sum_of_threads
{
    $kind tc_parts[tc_threads*(64/(int)sizeof($kind))];
    for (int tc_n = 0; tc_n < tc_threads; ++tc_n) tc_parts[tc_n*(64/(int)sizeof($kind))] = $start;
    $pragma
    {
        $sum
        tc_parts[omp_get_thread_num()*(64/(int)sizeof($kind))] = tc_sum;
    }
    $kind tc_sum = $start;
    for (int tc_n = 0; tc_n < tc_threads; ++tc_n) $add
    $store
}
//: complex_sum
double tc_re = 0.0, tc_im = 0.0;
$loops
const double complex tc_sum = CMPLX(tc_re, tc_im);
//: complex_term
const double complex tc_term = $value;
tc_re += creal(tc_term);
tc_im += cimag(tc_term);
//: block_of_sums
$kind tc_sums[$points] = {0};
$loops
$stores
//: stored_sum
const $kind tc_sum = $sum;
$store
//: wide_blocks
{
    const int64_t tc_wide = tc_min($side, tc_max($line, ($length/tc_threads + $over)/$line*$line));
    $loops
}
//: gemm
tc_gemm_$letter(tc_blas, $threads, $flip_left, $flip_right,
    $m, $n, $k,
    $coefficient, $left, $left_stride, $right, $right_stride,
    $accumulate, $out, $out_stride);
$count
//: contraction
{
    const tc_group tc_m = $m;
    const tc_group tc_n = $n;
    const tc_group tc_k = $k;
    const tc_group tc_b = $b;
    const tc_group tc_c = $c;
    $call
    $count
}
//: call
((tc_contraction *)tc_blas[$function])(
    $threads, $flags, &tc_m, &tc_n, &tc_k, &tc_b, &tc_c,
    $coefficient, $left, $right,
    $accumulate, $out, $memory, $bytes,
    tc_stop);
//: staged_call
if (!((tc_contraction *)tc_blas[$staged])(
    $threads, $flags, &tc_m, &tc_n, &tc_k, &tc_b, &tc_c,
    $coefficient, $left, $right,
    $accumulate, $out, $memory, $bytes,
    tc_stop))
    ((tc_contraction *)tc_blas[$function])(
        $threads, $flags, &tc_m, &tc_n, &tc_k, &tc_b, &tc_c,
        $coefficient, $left, $right,
        $accumulate, $out, $memory, $bytes,
        tc_stop);
//: transposition
$count
tc_transpose_$letter($rows, $columns,
    $coefficient, $source, $source_stride,
    $target, $target_stride, $accumulate);
//: transposition_by_tile
$kind tc_tile[$side*$side];
tc_transpose_$letter($rows, $columns,
    $coefficient, $source, $source_stride,
    tc_tile, $side, 0);
$outer {
    #pragma omp simd
    $inner {
        $store
    }
}
//: either
if ($condition) {
    $then
} else {
    $otherwise
}
//: sorted
tc_positions $order = TC_POSITIONS($places);
$sort
$positions
