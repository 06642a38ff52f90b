/* Flops that this code executes, by step of the program. */
int64_t tc_counted[$steps];
#define TC_COUNT(step, flops) ((void)__atomic_fetch_add(&tc_counted[step], (int64_t)(flops), __ATOMIC_RELAXED))
