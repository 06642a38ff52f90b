// What the compiler's instrumentation and the device functions of device.h call.
//
// -fsanitize=thread calls __tsan_readN/__tsan_writeN for loads and stores; the undefined-behaviour
// checks call __ubsan_handle_*. Their own runtimes are not linked: these are the only definitions.
#include "runtime.h"

#include <algorithm>
#include <cstring>

using emulated::Access;
using emulated::access;
using emulated::fail;

#define HOOK extern "C" __attribute__((noinline))

#define TCGEN_HOOKS(bytes)                                                                        \
    HOOK void __tsan_read##bytes(void* p) { access(p, bytes, Access::read, TCGEN_CALLER); }       \
    HOOK void __tsan_write##bytes(void* p) { access(p, bytes, Access::write, TCGEN_CALLER); }     \
    HOOK void __tsan_unaligned_read##bytes(void* p) {                                             \
        access(p, bytes, Access::read, TCGEN_CALLER);                                             \
    }                                                                                             \
    HOOK void __tsan_unaligned_write##bytes(void* p) {                                            \
        access(p, bytes, Access::write, TCGEN_CALLER);                                            \
    }
TCGEN_HOOKS(1)
TCGEN_HOOKS(2)
TCGEN_HOOKS(4)
TCGEN_HOOKS(8)
TCGEN_HOOKS(16)
HOOK void __tsan_read_range(void* p, size_t bytes) { access(p, bytes, Access::read, TCGEN_CALLER); }
HOOK void __tsan_write_range(void* p, size_t bytes) { access(p, bytes, Access::write, TCGEN_CALLER); }
// g++ guards static arrays of classes with several constructors, though nothing is constructed.
HOOK unsigned char __tsan_atomic8_load(const volatile unsigned char* guard, int) { return *guard; }
HOOK void __tsan_init() {}
HOOK void __tsan_func_entry(void*) {}
HOOK void __tsan_func_exit() {}

// ---- undefined behaviour: each handler gets the place in the source first ------------------------

struct Source {
    const char* file;
    uint32_t line, column;
};
struct TypeName {
    uint16_t kind, info;
    char name[1];
};
struct Array {
    Source source;
    const TypeName *array, *index;
};
struct Mismatch {
    Source source;
    const TypeName* type;
    unsigned char log_alignment, check;
};

HOOK void __ubsan_handle_out_of_bounds(Array* data, uintptr_t index) {
    fail("out of bounds", 0, static_cast<int>(data->source.line), 0, 0,
         "index %lld of an array of type %s ({here})", static_cast<long long>(index), data->array->name);
}
HOOK void __ubsan_handle_type_mismatch_v1(Mismatch* data, uintptr_t pointer) {
    const size_t alignment = size_t(1) << data->log_alignment;
    fail("misaligned", 0, static_cast<int>(data->source.line), 0, 0,
         "a value of type %s, which lies at multiples of %zu bytes, is accessed %zu bytes behind one "
         "({here})",
         data->type->name, alignment, static_cast<size_t>(pointer % alignment));
}
#define TCGEN_ARITHMETIC(name, what, ...)                                                       \
    HOOK void __ubsan_handle_##name(Source* source, ##__VA_ARGS__) {                            \
        fail("arithmetic", 0, static_cast<int>(source->line), 0, 0, what " ({here})");          \
    }
TCGEN_ARITHMETIC(add_overflow, "a sum overflows", uintptr_t, uintptr_t)
TCGEN_ARITHMETIC(sub_overflow, "a difference overflows", uintptr_t, uintptr_t)
TCGEN_ARITHMETIC(mul_overflow, "a product overflows", uintptr_t, uintptr_t)
TCGEN_ARITHMETIC(negate_overflow, "a negation overflows", uintptr_t)
TCGEN_ARITHMETIC(divrem_overflow, "an integer is divided by zero, or overflows", uintptr_t, uintptr_t)
TCGEN_ARITHMETIC(shift_out_of_bounds, "a shift by more than the width", uintptr_t, uintptr_t)

// ---- cp.async ------------------------------------------------------------------------------------

namespace emulated {

bool is_shared(const void* pointer);

void cp_async(void* shared, const void* global, unsigned bytes) {
    const uintptr_t here = TCGEN_CALLER;
    if (reinterpret_cast<uintptr_t>(shared) % bytes || reinterpret_cast<uintptr_t>(global) % bytes)
        fail("misaligned", here, 0, 0, 0, "cp.async of %u bytes needs addresses that %u divides ({here})",
             bytes, bytes);
    access(global, bytes, Access::copy_source, here);
    access(shared, bytes, Access::copy_target, here);
    if (!is_shared(shared))
        fail("out of bounds", here, 0, 0, 0, "cp.async writes shared memory only ({here})");
    current->open.push_back({static_cast<char*>(shared), static_cast<const char*>(global), bytes});
}

void cp_async_commit() {
    current->groups.push_back(std::move(current->open));
    current->open.clear();
}

void cp_async_wait(unsigned pending_groups) {
    const uintptr_t here = TCGEN_CALLER;
    while (current->groups.size() > pending_groups) {
        for (const Copy& copy : current->groups.front()) copy_arrived(copy, here);
        current->groups.pop_front();
    }
}

void fence() {}

}  // namespace emulated

// ---- atomics -------------------------------------------------------------------------------------

template <class T, class Change> static T update(T* address, uintptr_t here, Change change) {
    if (reinterpret_cast<uintptr_t>(address) % sizeof(T))
        fail("misaligned", here, 0, 0, 0, "an atomic of %zu bytes needs an address that %zu divides ({here})",
             sizeof(T), sizeof(T));
    access(address, sizeof(T), Access::atomic, here);
    const T old = *address;
    *address = change(old);
    return old;
}

#define TCGEN_UPDATE(name, T, expression)                                                         \
    T name(T* address, T value) {                                                                 \
        return update(address, TCGEN_CALLER, [=](T old) -> T { return expression; });             \
    }
#define TCGEN_UPDATES(T)                                                                          \
    TCGEN_UPDATE(atomicAdd, T, old + value)                                                       \
    TCGEN_UPDATE(atomicExch, T, (static_cast<void>(old), value))                                  \
    TCGEN_UPDATE(atomicMax, T, std::max(old, value))                                              \
    TCGEN_UPDATE(atomicMin, T, std::min(old, value))
TCGEN_UPDATES(int)
TCGEN_UPDATES(unsigned)
TCGEN_UPDATES(long long)
TCGEN_UPDATES(unsigned long long)
TCGEN_UPDATES(float)
TCGEN_UPDATES(double)
TCGEN_UPDATE(atomicOr, unsigned, old | value)
TCGEN_UPDATE(atomicAnd, unsigned, old & value)
#define TCGEN_CAS(T)                                                                              \
    T atomicCAS(T* address, T expected, T value) {                                                \
        return update(address, TCGEN_CALLER,                                                      \
                      [=](T old) -> T { return old == expected ? value : old; });                 \
    }
TCGEN_CAS(int)
TCGEN_CAS(unsigned)
TCGEN_CAS(unsigned long long)
