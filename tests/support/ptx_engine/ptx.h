// What translated PTX calls. Addresses are those of the state space: global and generic ones are
// pointers, shared ones count from the start of the library, local ones are pointers into the stack.
#pragma once

#include <cstdint>

#include "emulated.h"

extern char tcgen_ptx_window[] __attribute__((visibility("hidden")));  // the static shared arrays

namespace ptx {

using emulated::Access;

uint64_t window(uint64_t offset);  // shared address of an offset in the window
uint64_t launched();               // shared address of the memory that the launch allots
uint64_t to_shared(uint64_t address);
uint64_t from_shared(uint64_t address);
bool in_space(uint64_t address, const char* space);

// Pointers to as many bytes, after all checks of such an access; `line` is the instruction's.
void* global(uint64_t address, unsigned bytes, Access kind, int line);
void* shared(uint64_t address, unsigned bytes, Access kind, int line);
void* generic(uint64_t address, unsigned bytes, Access kind, int line);
void* local(uint64_t address, char* depot, uint64_t depot_bytes, unsigned bytes, int line);
inline void* constant(uint64_t address, unsigned bytes, Access kind, int line) {
    return global(address, bytes, kind, line);
}

void copy(uint64_t target, uint64_t source, unsigned bytes, unsigned read, int line);
void wait_for_copies(unsigned pending_groups, int line);

enum class Lane { up, down, bfly, idx };
uint32_t shuffle(Lane how, uint32_t value, uint32_t lane, uint32_t clamp, uint32_t mask, int line,
                 bool& in_range);
void product(int m, int k, double* d, const double* a, const double* b, int line);
unsigned lane();

template <class T> inline T get(const void* at, int number) {
    T value;
    __builtin_memcpy(&value, static_cast<const char*>(at) + number * sizeof(T), sizeof(T));
    return value;
}
template <class T> inline void put(void* at, int number, T value) {
    __builtin_memcpy(static_cast<char*>(at) + number * sizeof(T), &value, sizeof(T));
}

// ---- arithmetic that C++ leaves open --------------------------------------------------------------

inline float flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x; }

// The nearest number with 11 significant bits, ties away from zero.
inline uint32_t tf32(float x) { return (__builtin_bit_cast(uint32_t, x) + 0x1000u) & ~0x1fffu; }

template <class T> inline T quotient(T a, T b) {
    if (b == 0) return T(-1);
    return T(-1) < 0 && b == T(-1) ? T(0 - static_cast<uint64_t>(a)) : a / b;
}
template <class T> inline T rest(T a, T b) {
    if (b == 0) return a;
    return T(-1) < 0 && b == T(-1) ? T(0) : a % b;
}

template <class T> inline T left(T x, uint32_t count) {
    return count >= 8 * sizeof(T) ? T(0) : T(static_cast<uint64_t>(x) << count);
}
template <class T> inline T right(T x, uint32_t count) {
    if (count < 8 * sizeof(T)) return T(x >> count);
    return x < 0 ? T(-1) : T(0);
}
inline uint32_t funnel_left(uint32_t low, uint32_t high, uint32_t count, bool wrap) {
    count = wrap ? count & 31 : count < 32 ? count : 32;
    return static_cast<uint32_t>(((uint64_t(high) << 32 | low) << count) >> 32);
}
inline uint32_t funnel_right(uint32_t low, uint32_t high, uint32_t count, bool wrap) {
    count = wrap ? count & 31 : count < 32 ? count : 32;
    return static_cast<uint32_t>((uint64_t(high) << 32 | low) >> count);
}

inline uint64_t reversed(uint64_t x, int bits) {
    uint64_t made = 0;
    for (int i = 0; i < bits; ++i) made |= (x >> i & 1) << (bits - 1 - i);
    return made;
}
template <class U> inline U bit_field_insert(U field, U into, uint32_t at, uint32_t count) {
    at &= 255;
    count &= 255;
    for (uint32_t i = 0; i < count && at + i < 8 * sizeof(U); ++i) {
        const U bit = U(1) << (at + i);
        into = (field >> i & 1) ? U(into | bit) : U(into & ~bit);
    }
    return into;
}
template <class T> inline T bit_field_extract(T x, uint32_t at, uint32_t count) {
    const uint32_t bits = 8 * sizeof(T);
    at &= 255;
    count &= 255;
    if (count == 0) return 0;
    const uint32_t last = at + count - 1 < bits - 1 ? at + count - 1 : bits - 1;
    const bool sign = T(-1) < 0 && (static_cast<uint64_t>(x) >> last & 1);
    uint64_t made = sign ? ~uint64_t(0) : 0;
    for (uint32_t i = 0; i < count && i < bits; ++i) {
        const bool bit = at + i < bits ? static_cast<uint64_t>(x) >> (at + i) & 1 : sign;
        made = bit ? made | uint64_t(1) << i : made & ~(uint64_t(1) << i);
    }
    return static_cast<T>(made);
}
inline uint32_t permuted(uint32_t low, uint32_t high, uint32_t choice) {
    const uint64_t bytes = uint64_t(high) << 32 | low;
    uint32_t made = 0;
    for (int i = 0; i < 4; ++i) {
        const uint32_t code = choice >> (4 * i) & 15;
        uint32_t byte = bytes >> (8 * (code & 7)) & 255;
        if (code & 8) byte = byte & 128 ? 255 : 0;
        made |= byte << (8 * i);
    }
    return made;
}
inline uint32_t logic_of_three(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t made = 0;
    for (int i = 0; i < 32; ++i)
        made |= (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i;
    return made;
}

template <class T, class F> inline T saturated(F x) {
    const F past = F(2) * F(T(1) << (8 * sizeof(T) - 2)) * (T(-1) < 0 ? F(1) : F(2));
    if (__builtin_isnan(x)) return sizeof(T) == 8 ? T(uint64_t(1) << 63) : T(0);
    if (x >= past) return T(-1) < 0 ? T(~(uint64_t(1) << (8 * sizeof(T) - 1))) : T(-1);
    if (T(-1) < 0 && x < -past) return T(uint64_t(1) << (8 * sizeof(T) - 1));
    return T(-1) > 0 && x < 0 ? T(0) : static_cast<T>(x);
}

}  // namespace ptx
