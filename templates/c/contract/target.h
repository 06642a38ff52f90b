#ifndef TC_TARGET_H
#define TC_TARGET_H
/* The table of targets, printed by tcgen/emit/c/targets.py, a column for each. */
#define TC_VENDOR_INTEL 1
#define TC_VENDOR_AMD 2
#ifdef TC_TARGET
#elif defined(__AVX512F__) && TC_CPU_VENDOR == TC_VENDOR_INTEL
#define TC_TARGET 0  /* Intel, AVX-512; measured on: a Xeon with AVX-512 and AMX (family 6, model 207), virtual machine */
#elif defined(__AVX512F__) && TC_CPU_VENDOR == TC_VENDOR_AMD && TC_CPU_FAMILY == 25 && (TC_CPU_MODEL/16 == 1 || (TC_CPU_MODEL >= 96 && TC_CPU_MODEL < 176))
#define TC_TARGET 1  /* Zen 4; measured on: an EPYC of Zen 4, virtual machine */
#elif defined(__AVX512F__)
#define TC_TARGET 2  /* generic, AVX-512; measured on: an EPYC of Zen 5, virtual machine */
#elif defined(__AVX__) && TC_CPU_VENDOR == TC_VENDOR_INTEL
#define TC_TARGET 3  /* Intel, AVX; measured on: a Xeon with AVX-512 and AMX (family 6, model 207), virtual machine, without AVX-512 */
#elif defined(__AVX__) && TC_CPU_VENDOR == TC_VENDOR_AMD && TC_CPU_FAMILY == 25 && (TC_CPU_MODEL/16 == 1 || (TC_CPU_MODEL >= 96 && TC_CPU_MODEL < 176))
#define TC_TARGET 4  /* Zen 4, AVX; measured on: an EPYC of Zen 4, virtual machine, without AVX-512 */
#elif defined(__AVX__)
#define TC_TARGET 5  /* generic, AVX; measured on: an EPYC of Zen 5, virtual machine, without AVX-512 */
#elif defined(__aarch64__)
#define TC_TARGET 6  /* AArch64; measured on: nothing; tests run under QEMU */
#else
#define TC_TARGET 7  /* generic; measured on: nothing */
#endif
#define TC_PICK(...) TC_PICK_ROW(TC_TARGET, __VA_ARGS__)
#define TC_PICK_ROW(row, ...) TC_PICK_COLUMN(row, __VA_ARGS__)
#define TC_PICK_COLUMN(row, ...) TC_PICK_##row(__VA_ARGS__)
#define TC_PICK_0(t0, t1, t2, t3, t4, t5, t6, t7) t0
#define TC_PICK_1(t0, t1, t2, t3, t4, t5, t6, t7) t1
#define TC_PICK_2(t0, t1, t2, t3, t4, t5, t6, t7) t2
#define TC_PICK_3(t0, t1, t2, t3, t4, t5, t6, t7) t3
#define TC_PICK_4(t0, t1, t2, t3, t4, t5, t6, t7) t4
#define TC_PICK_5(t0, t1, t2, t3, t4, t5, t6, t7) t5
#define TC_PICK_6(t0, t1, t2, t3, t4, t5, t6, t7) t6
#define TC_PICK_7(t0, t1, t2, t3, t4, t5, t6, t7) t7
#define TC_VECTOR_BYTES TC_PICK(64, 64, 64, 32, 32, 32, 16, 16)  /* bytes of a vector */
#define TC_MR_VECTORS TC_PICK(3, 3, 3, 2, 2, 2, 3, 3)  /* MR, the m of a register tile, in vectors */
#define TC_NR TC_PICK(8, 8, 8, 6, 6, 6, 8, 4)  /* NR, the columns of a register tile */
#define TC_UNROLL_PRODUCTS TC_PICK(2, 2, 2, 4, 4, 4, 4, 4)  /* k that the micro-kernel unrolls */
#define TC_UNROLL_PREFETCHING TC_PICK(2, 2, 2, 1, 1, 1, 1, 1)  /* the same where it prefetches a line at each k */
#define TC_PREFETCH_LEVEL TC_PICK(2, 2, 3, 2, 2, 3, 3, 3)  /* level to which operands in place are prefetched: 3 first, 2 second */
#define TC_PREFETCH_C_LEVEL TC_PICK(3, 2, 3, 3, 2, 3, 3, 3)  /* the same for lines of C that are written in part; 3 is for writing */
#define TC_PREFETCH_GEMV_LEVEL TC_PICK(3, 2, 3, 3, 2, 3, 3, 3)  /* the same for the matrix of a matrix-vector product */
#define TC_STREAMS TC_PICK(6, 1, 1, 6, 1, 1, 1, 1)  /* pages whose lines alternate in a prefetch, to use more memory channels */
#define TC_STAGE_PAGES TC_PICK(24, 1048576, 1048576, 24, 1048576, 1048576, 1048576, 1048576)  /* most pages of A in place that one part of the sum over k visits */
#define TC_STAGE_A_BYTES TC_PICK(196608, 393216, 393216, 196608, 393216, 393216, 393216, 393216)  /* bytes of a staging buffer where A is read in place */
#define TC_STAGE_LINES TC_PICK(2, 3, 3, 2, 3, 3, 3, 3)  /* cache lines of a row of C in that buffer; one less beside a long k */
#endif
