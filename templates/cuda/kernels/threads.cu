/* Kernels without tiles: their heads, and the loops of blocks and threads. */
//: function
extern "C" __global__ void __launch_bounds__($bounds)
$name(
    $arguments
{
    $body
}
//: loop_of_threads
for (tc_int tc_n = ${first}(tc_int)blockIdx.x*$threads + threadIdx.x; tc_n < $points; tc_n += (tc_int)gridDim.x*$threads) {
    $body
}
//: loop_of_block
for (tc_int tc_n = threadIdx.x; tc_n < $points; tc_n += $threads) {
    $body
}
//: loop_of_blocks
for (tc_int tc_point = blockIdx.x; tc_point < $points; tc_point += gridDim.x) {
    $body
}
//: lanes
tc_int tc_done = 0;
if ($aligned) {
    $groups
    tc_done = $count*$lanes;
}
$rest
//: group_of_lanes
$loads
#pragma unroll
for (tc_int tc_lane = 0; tc_lane < $lanes; ++tc_lane) {
    $element
}
reinterpret_cast<$group *>($target)[tc_n] = $own;
//: own_memory
const tc_int tc_own_bytes = $bytes;
char *tc_own = tc_in_shared ? tc_dynamic : tc_scratch + ${behind}blockIdx.x*tc_own_bytes;
$buffers
//: staged
char *const tc_staged = tc_dynamic$own;
//: copy
$kind *const $name = ($kind *)(tc_scratch + blockIdx.x*tc_copied_bytes + $first);
$zeros
//: sum_of_copies
for (tc_int tc_element = blockIdx.x; tc_element < $elements; tc_element += gridDim.x) {
    $kind tc_sum = $zero;
    for (tc_int tc_n = threadIdx.x; tc_n < gridDim.x; tc_n += $threads)
        tc_sum += ((const $type *)(tc_scratch + tc_n*tc_copied_bytes + $first))[tc_element];
    tc_sum = tc_block_sum(tc_sum);
    if (threadIdx.x == 0) $name[tc_element] += tc_sum;
    __syncthreads();
}
//: dynamic
extern __shared__ __align__(16) char tc_dynamic[];
//: sum_of_block
{
    $kind tc_sum = $start;
    $loop
    $reduce
    $store
}
//: sum
$element
$kind tc_sum = $start;
$walk
$reduce
$store
//: split
const tc_int tc_elements = $points;
const tc_int tc_split = blockIdx.x/tc_elements;
const tc_int tc_element = blockIdx.x%tc_elements;
//: walk_points
for (tc_int tc_n = $first; tc_n < $points; tc_n += $step) {
    $body
}
//: walk_rows
const tc_int tc_groups = tc_tiles($count, $at_once);
for (tc_int tc_n = $first; tc_n < $rows; tc_n += $step) {
    $others
    const tc_int tc_group = tc_n%tc_groups*$at_once;
    for (tc_int tc_x = threadIdx.x%$warp; tc_x < $lanes; tc_x += $warp) {
        $values
        $body
    }
}
//: walk_parts
for (int tc_n = threadIdx.x; tc_n < $splits; tc_n += $threads) {
    $add
}
//: points_at_once
bool tc_inside[$at_once];
$arrays
#pragma unroll
for (int tc_at = 0; tc_at < $at_once; ++tc_at) {
    $declare
    tc_inside[tc_at] = $inside;
    $loads
}
#pragma unroll
for (int tc_at = 0; tc_at < $at_once; ++tc_at) {
    $declare_again
    if (tc_inside[tc_at]) $add
}
//: transpose
__shared__ $kind tc_tile[$side][$pitch];
const int tc_x = threadIdx.x%$side, tc_y = threadIdx.x/$side;
tc_int tc_block = blockIdx.x;
const tc_int tc_columns = $columns;
const tc_int tc_column = tc_block%tc_tiles(tc_columns, $side)*$side;
tc_block /= tc_tiles(tc_columns, $side);
const tc_int tc_rows = $rows;
const tc_int tc_row = tc_block%tc_tiles(tc_rows, $side)*$side;
tc_block /= tc_tiles(tc_rows, $side);
$batch
for (int tc_n = tc_y; tc_n < $side; tc_n += $rows_at_once) {
    const tc_int $row = ${first_row}tc_row + tc_x;
    const tc_int $column = ${first_column}tc_column + tc_n;
    if (tc_row + tc_x < tc_rows && tc_column + tc_n < tc_columns) {
        tc_tile[tc_n][tc_x] = $loaded;
    }
}
__syncthreads();
for (int tc_n = tc_y; tc_n < $side; tc_n += $rows_at_once) {
    const tc_int $row = ${first_row}tc_row + tc_n;
    const tc_int $column = ${first_column}tc_column + tc_x;
    if (tc_row + tc_n < tc_rows && tc_column + tc_x < tc_columns) {
        $store
    }
}
