// What the emulator supplies to the code of kernels, and how Python calls a kernel.
#pragma once

using size_t = decltype(sizeof 0);

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

// ---- what the emulator supplies ----------------------------------------------------------------

namespace emulated {

__attribute__((const)) dim3 thread_index();  // const: a thread's index never changes under it
__attribute__((const)) dim3 block_index();
__attribute__((const)) dim3 block_extent();
__attribute__((const)) dim3 grid_extent();
extern char dynamic_shared[];

// read_only: through the cache of constant data, which nobody may write during the launch.
enum class Access { read, read_only, write, atomic, copy_source, copy_target };
enum class Vote { none, any, all, count };
int block_barrier(const char* name, Vote vote, int predicate, int line);
enum class Lane { index, up, down, exclusive };
void shuffle(Lane how, unsigned mask, void* value, size_t bytes, int lane, int width, int line);
unsigned ballot(const char* name, unsigned mask, int predicate, int line);
void warp_barrier(unsigned mask, int line);
unsigned live_lanes();
void cp_async(void* shared, const void* global, unsigned bytes);
void cp_async_commit();
void cp_async_wait(unsigned pending_groups);
void mma(int m, int k, double* d, const double* a, const double* b, int line);
void fence();
[[noreturn]] void trap(int line);

// ---- how Python calls a kernel -----------------------------------------------------------------

struct Parameter {
    int bytes;    // of the parameter itself
    int pointer;  // 0 a value, 1 pointer to const, 2 pointer
    int element;  // bytes of a value, or of what the pointer points to; 0 for void
    char kind;    // of it: 'f' floating, 'i' signed, 'u' unsigned, 's' a structure, 'v' void
};

struct Signature {
    void (*call)(void** arguments);
    int max_threads;  // of __launch_bounds__, 0: none
    int count;
    const Parameter* parameters;
};

template <class T> struct Kind { static constexpr char value = 's'; };
#define TCGEN_KIND(kind_, ...) \
    template <> struct Kind<__VA_ARGS__> { static constexpr char value = kind_; };
TCGEN_KIND('f', float) TCGEN_KIND('f', double)
TCGEN_KIND('i', signed char) TCGEN_KIND('i', short) TCGEN_KIND('i', int)
TCGEN_KIND('i', long) TCGEN_KIND('i', long long)
TCGEN_KIND('u', bool) TCGEN_KIND('u', unsigned char) TCGEN_KIND('u', unsigned short)
TCGEN_KIND('u', unsigned) TCGEN_KIND('u', unsigned long) TCGEN_KIND('u', unsigned long long)
TCGEN_KIND('v', void) TCGEN_KIND('v', char)
#undef TCGEN_KIND

template <class T> struct Bytes { static constexpr int value = sizeof(T); };
template <> struct Bytes<void> { static constexpr int value = 0; };
template <class T> struct Describe {
    static constexpr Parameter value = {sizeof(T), 0, sizeof(T), Kind<T>::value};
};
template <class T> struct Describe<T*> {
    static constexpr Parameter value = {sizeof(T*), 2, Bytes<T>::value, Kind<T>::value};
};
template <class T> struct Describe<const T*> {
    static constexpr Parameter value = {sizeof(T*), 1, Bytes<T>::value, Kind<T>::value};
};

template <int... I> struct Numbers {};
template <int N, int... I> struct UpTo : UpTo<N - 1, N - 1, I...> {};
template <int... I> struct UpTo<0, I...> { using type = Numbers<I...>; };

template <class... A> struct Arguments {
    static constexpr int count = sizeof...(A);
    static constexpr Parameter parameters[sizeof...(A) + 1] = {Describe<A>::value..., {}};
    template <int... I>
    __attribute__((no_sanitize("thread"))) static void call(void (*kernel)(A...), void** a,
                                                            Numbers<I...>) {
        kernel(*static_cast<A*>(a[I])...);
    }
};
template <class... A> constexpr Arguments<A...> arguments_of(void (*)(A...)) { return {}; }

}  // namespace emulated
