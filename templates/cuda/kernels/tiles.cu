/* Kernels of tiles: parts of their bodies, in the order in which they stand. */
//: body
extern __shared__ __align__(16) char tc_dynamic[];
$operand_tables
$tile
$sums
$store_place
$terms
$end
//: operand_tables
__shared__ __align__(16) tc_int tc_left_rows[$tile_m], tc_right_columns[$tile_n];
__shared__ __align__(16) long long tc_left_ks[$table], tc_right_ks[$table];
//: target_tables
__shared__ tc_int tc_out_row[$tile_m], tc_out_column[$tile_n];
//: sums
$kind tc_sum[$each_m][$each_n];
#pragma unroll
for (int tc_r = 0; tc_r < $each_m; ++tc_r) {
    #pragma unroll
    for (int tc_c = 0; tc_c < $each_n; ++tc_c) tc_sum[tc_r][tc_c] = $zero;
}
//: product_of_block
for (tc_int tc_tile = 0; tc_tile < $tiles; ++tc_tile) {
    $tile
    $sums
    $term
    $end
    __syncthreads(); /* before the tables of the next tile */
}
//: tile
$target_tables
$value_tables
$own_place
$points
tc_int tc_block = $number, tc_row, tc_column;
tc_tile_of_block(tc_block%($rows*$columns), $rows, $columns, tc_row, tc_column);
tc_block /= $rows*$columns;
$firsts
$batch
$tables
//: place_of_thread
const int tc_y = threadIdx.x/$threads_n, tc_x = threadIdx.x%$threads_n;
//: place_of_lane
const int tc_lane = threadIdx.x%32, tc_warp = threadIdx.x/32;
const int tc_top = tc_warp/$warps_n*$warp_m, tc_side = tc_warp%$warps_n*$warp_n;
const int tc_y = tc_top + tc_lane/4, tc_x = tc_side + tc_lane%4*2;
//: points_of_strip
const tc_int ${strip}_points = $points;
const tc_int ${strip}_tiles = tc_tiles(${strip}_points, $tile);
//: first_of_strip
const tc_int ${strip}_first = tc_$side%${strip}_tiles*$tile;
tc_$side /= ${strip}_tiles;
//: first_of_last_strip
const tc_int ${strip}_first = tc_$side*$tile;
//: batch
const tc_int tc_batch = tc_block%($points);
tc_block /= $divisor;
$values
//: table
#pragma unroll 1
for (int tc_n = threadIdx.x; tc_n < $length; tc_n += $threads) {
    $places
    $entries
}
//: store_place
$numbers
__shared__ tc_int tc_place[$count];
if (threadIdx.x == 0) {
    $places
}
//: term
$again
const $left_kind *const tc_left_start = $left_start;
const $right_kind *const tc_right_start = $right_start;
$left_kind *const tc_left = ($left_kind *)$staged;
$right_kind *const tc_right = ($right_kind *)($staged + $left_bytes);
$tables
const auto tc_offsets = [&](
    tc_int tc_k, tc_int &tc_left_offset, tc_int &tc_right_offset) {
    $values
    tc_left_offset = $left_offset;
    tc_right_offset = $right_offset;
};
const tc_int tc_depth = $depth, tc_last = $last;
$steps
const auto tc_scale = [](const $left_kind tc_a) { return $scale; };
if (tc_steps > 0$aligned) {
    $wide
} else if (tc_steps > 0) {
    $narrow
} else {
    __syncthreads();
}
//: all_steps
const tc_int tc_first = 0, tc_steps = tc_tiles(tc_depth, $tile_k);
//: steps_of_split
const tc_int tc_each = tc_tiles(tc_tiles(tc_depth, $tile_k), $splits);
const tc_int tc_first = tc_block*tc_each;
const tc_int tc_steps = tc_min(tc_each, tc_tiles(tc_depth, $tile_k) - tc_first);
//: loop
typedef $index tc_index;
$operands
tc_pipeline<$threads, $tile_k, $stages, tc_left_tile, tc_right_tile, tc_index, decltype(tc_offsets)> tc_pipe(
    tc_left_tile(tc_left_start, tc_left, tc_left_rows, (tc_index *)tc_left_ks),
    tc_right_tile(tc_right_start, tc_right, tc_right_columns, (tc_index *)tc_right_ks),
    (tc_index *)tc_left_ks, (tc_index *)tc_right_ks, tc_offsets, tc_depth, tc_last, tc_first, tc_steps);
$multiply
//: operand
typedef tc_operand<$kind, tc_index, $threads, $length, $tile_k, $width, $along_k, $pitch, $run, $segment, $block, $conjugated, $own> tc_${side}_tile;
//: by_warps
tc_multiply_by_warps<$tile_k, $each_m, $each_n>(tc_sum, tc_pipe, tc_top, tc_side, tc_scale);
//: by_threads
tc_multiply_by_threads<$tile_k, $threads_m, $threads_n, 1>(tc_sum, tc_pipe, tc_y, tc_x, tc_scale);
//: write_sums
$kind *const tc_parts = ($kind *)tc_scratch + (tc_int)blockIdx.x*$whole;
#pragma unroll
for (int tc_r = 0; tc_r < $each_m; ++tc_r) {
    #pragma unroll
    for (int tc_c = 0; tc_c < $each_n; tc_c += 1) tc_parts[$place] = tc_sum[tc_r][tc_c];
}
//: write_pairs
$kind *const tc_parts = ($kind *)tc_scratch + (tc_int)blockIdx.x*$whole;
#pragma unroll
for (int tc_r = 0; tc_r < $each_m; ++tc_r) {
    #pragma unroll
    for (int tc_c = 0; tc_c < $each_n; tc_c += 2) tc_write_pair(&tc_parts[$place], tc_sum[tc_r][tc_c], tc_sum[tc_r][tc_c + 1]);
}
//: elements
$unrolled
for (int tc_r = 0; tc_r < $each_m; ++tc_r) {
    const tc_int tc_i = tc_out_row[$row];
    $row_values
    $unrolled
    for (int tc_c = 0; tc_c < $each_n; ++tc_c) {
        const tc_int tc_j = tc_out_column[$column];
        $element
    }
}
//: elements_at_once
#pragma unroll
for (int tc_r = 0; tc_r < $each_m; ++tc_r) {
    const tc_int tc_i = tc_out_row[$row];
    $row_values
    #pragma unroll
    for (int tc_columns = 0; tc_columns < $each_n; tc_columns += $at_once) {
        $arrays
        #pragma unroll
        for (int tc_c = tc_columns; tc_c < tc_columns + $at_once; ++tc_c) {
            const tc_int tc_j = tc_out_column[$column];
            if (tc_i >= 0 && tc_j >= 0) {
                $column_values
                $loads
            }
        }
        #pragma unroll
        for (int tc_c = tc_columns; tc_c < tc_columns + $at_once; ++tc_c) {
            const tc_int tc_j = tc_out_column[$column];
            $element
        }
    }
}
//: pairs
if ($aligned) {
    #pragma unroll
    for (int tc_rows = 0; tc_rows < $each_m; tc_rows += $at_once) {
        $loads
        #pragma unroll
        for (int tc_r = tc_rows; tc_r < tc_rows + $at_once; ++tc_r) {
            const tc_int tc_i = tc_out_row[$row];
            #pragma unroll
            for (int tc_c = 0; tc_c < $each_n; tc_c += 2) {
                const tc_int tc_j = tc_out_column[$column];
                if (tc_i >= 0 && tc_j >= 0) $store($place, $first, $second);
            }
        }
    }
} else {
    $elements
}
//: load_pairs
$kind tc_held[$at_once][$each_n];
#pragma unroll
for (int tc_r = tc_rows; tc_r < tc_rows + $at_once; ++tc_r) {
    const tc_int tc_i = tc_out_row[$row];
    #pragma unroll
    for (int tc_c = 0; tc_c < $each_n; tc_c += 2) {
        const tc_int tc_j = tc_out_column[$column];
        if (tc_i >= 0 && tc_j >= 0) tc_load_pair($place, tc_held[tc_r - tc_rows][tc_c], tc_held[tc_r - tc_rows][tc_c + 1]);
    }
}
//: value
if (tc_i >= 0 && tc_j >= 0) {
    $column_values
    $kind tc_value = $value;
    $epilogue
}
//: total
tc_total$number = tc_block_sum(tc_total$number);
if (threadIdx.x == 0) *($kind *)(tc_scratch + ($number*(tc_int)gridDim.x + blockIdx.x)*$bytes) = tc_total$number;
//: sum_of_parts
$kind tc_sum = $zero;
for (tc_int tc_n = 0; tc_n < $splits; ++tc_n) {
    tc_sum += ((const $kind *)tc_scratch)[(tc_n*(tc_int)gridDim.x + blockIdx.x)*$whole + $place];
}
$element
//: total_of_parts
{
    $kind tc_sum = $zero;
    for (tc_int tc_n = threadIdx.x; tc_n < tc_blocks; tc_n += $threads)
        tc_sum += *(const $kind *)(tc_scratch + ($number*tc_blocks + tc_n)*$bytes);
    tc_sum = tc_block_sum(tc_sum);
    if (threadIdx.x == 0) $store
}
