// Memory, copies and the lanes of a warp as the PTX ISA has them, by the emulator's runtime.
#include "ptx.h"

#include <cstring>

#include "runtime.h"
#include "traffic.h"

extern char image_begin[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));

namespace emulated {
bool is_shared(const void* pointer);
}

namespace ptx {
namespace {

using namespace emulated;

// The emulator takes return addresses and counts them from the start of the library: lines fit.
uintptr_t place(int line) { return reinterpret_cast<uintptr_t>(image_begin) + static_cast<uintptr_t>(line); }

void* checked(uint64_t address, unsigned bytes, Access kind, int line) {
    if (address % bytes)
        fail("misaligned", 0, line, 0, 0, "%u bytes are accessed %llu bytes behind a multiple of them ({here})",
             bytes, static_cast<unsigned long long>(address % bytes));
    void* pointer = reinterpret_cast<void*>(address);
    access(pointer, bytes, kind, place(line));
    const auto stack = reinterpret_cast<uint64_t>(current->stack);
    if (counting && !(stack <= address && address < stack + stack_bytes))
        count(line, is_shared(pointer), kind == Access::write || kind == Access::copy_target, address, bytes);
    return pointer;
}

void wrong_space(const char* space, int line) {
    fail("out of bounds", 0, line, 0, 0, "an address of other memory is accessed as %s memory ({here})", space);
}

const char zeros[16] = {};

}  // namespace

uint64_t window(uint64_t offset) { return to_shared(reinterpret_cast<uint64_t>(tcgen_ptx_window) + offset); }
uint64_t launched() { return to_shared(reinterpret_cast<uint64_t>(dynamic_shared)); }
uint64_t to_shared(uint64_t address) { return address - reinterpret_cast<uint64_t>(image_begin); }
uint64_t from_shared(uint64_t address) { return address + reinterpret_cast<uint64_t>(image_begin); }

bool in_space(uint64_t address, const char* space) {
    const bool shared = is_shared(reinterpret_cast<const void*>(address));
    const auto stack = reinterpret_cast<uint64_t>(current->stack);
    const bool local = stack <= address && address < stack + stack_bytes;
    if (std::strcmp(space, "shared") == 0) return shared;
    return std::strcmp(space, "local") == 0 ? local : !shared && !local;
}

void* global(uint64_t address, unsigned bytes, Access kind, int line) {
    void* pointer = checked(address, bytes, kind, line);
    if (is_shared(pointer)) wrong_space("global", line);
    return pointer;
}

void* shared(uint64_t address, unsigned bytes, Access kind, int line) {
    void* pointer = checked(from_shared(address), bytes, kind, line);
    if (!is_shared(pointer)) wrong_space("shared", line);
    return pointer;
}

void* generic(uint64_t address, unsigned bytes, Access kind, int line) {
    return checked(address, bytes, kind, line);
}

void* local(uint64_t address, char* depot, uint64_t depot_bytes, unsigned bytes, int line) {
    const auto low = reinterpret_cast<uint64_t>(depot);
    if (address < low || address + bytes > low + depot_bytes)
        fail("out of bounds", 0, line, 0, 0, "%u bytes at byte %lld of local memory, which has %llu ({here})",
             bytes, static_cast<long long>(address - low), static_cast<unsigned long long>(depot_bytes));
    return checked(address, bytes, Access::read, line);
}

// ---- cp.async --------------------------------------------------------------------------------------

void copy(uint64_t target, uint64_t source, unsigned bytes, unsigned read, int line) {
    if (bytes != 4 && bytes != 8 && bytes != 16)
        fail("cp.async", 0, line, 0, 0, "a copy of %u bytes; 4, 8 and 16 exist ({here})", bytes);
    if (read > bytes)
        fail("cp.async", 0, line, 0, 0, "%u of %u bytes are to be read ({here})", read, bytes);
    if (source % bytes)
        fail("misaligned", 0, line, 0, 0, "cp.async reads %u bytes at no multiple of them ({here})", bytes);
    auto* to = static_cast<char*>(checked(from_shared(target), bytes, Access::copy_target, line));
    if (!is_shared(to)) wrong_space("shared", line);
    const auto* from = reinterpret_cast<const char*>(source);
    if (read) {
        access(from, read, Access::copy_source, place(line));
        if (is_shared(from)) wrong_space("global", line);
        if (counting) count(line, false, false, source, read);
        current->open.push_back({to, from, read});
    }
    if (read < bytes) current->open.push_back({to + read, zeros, bytes - read});
}

void wait_for_copies(unsigned pending_groups, int line) {
    while (current->groups.size() > pending_groups) {
        for (const Copy& arrived : current->groups.front()) copy_arrived(arrived, place(line));
        current->groups.pop_front();
    }
}

// ---- the lanes of a warp ---------------------------------------------------------------------------

unsigned lane() { return current->linear % 32; }

namespace {

struct Shuffle {
    Lane how;
    uint32_t value, lane, clamp;
    int line;
    uint32_t result;
    bool in_range;
};

// shfl.sync: bits 0 to 4 of the clamp are a bound, bits 8 to 12 say which bits of lanes are fixed.
void finish_shuffle(Thread** lanes, uint32_t mask) {
    for (int number = 0; number < 32; ++number) {
        if (!lanes[number]) continue;
        auto& mine = *static_cast<Shuffle*>(lanes[number]->collective->data);
        const int bound = mine.clamp & 31, fixed = mine.clamp >> 8 & 31, by = mine.lane & 31;
        const int most = (number & fixed) | (bound & ~fixed), least = number & fixed;
        int other = 0;
        switch (mine.how) {
            case Lane::up: other = number - by; mine.in_range = other >= most; break;
            case Lane::down: other = number + by; mine.in_range = other <= most; break;
            case Lane::bfly: other = number ^ by; mine.in_range = other <= most; break;
            case Lane::idx: other = least | (by & ~fixed); mine.in_range = other <= most; break;
        }
        if (!mine.in_range) other = number;
        if (!(mask >> other & 1))
            fail("mask", 0, mine.line, 0, 0, "shfl.sync ({here}): lane %d reads lane %d, which the mask %#010x lacks",
                 number, other, mask);
        mine.result = static_cast<Shuffle*>(lanes[other]->collective->data)->value;
    }
}

struct Product {
    int m, k;
    double* d;
    const double *a, *b;
};

struct Element {
    int row, column;
};

// The element of A that register i of a lane holds: sections "Matrix Fragments for mma.m8n8k4" and
// "... mma.m16n8k4, m16n8k8, m16n8k16 with .f64" of the PTX ISA.
Element of_a(int m, int lane, int i) {
    const int group = lane >> 2, in_group = lane & 3;
    if (m == 8) return {group, in_group};
    const int column = (i % 2 == 0 ? 2 * i : 2 * i - 2) + in_group;  // 0, 0, 4, 4, 8, 8, 12, 12
    return {i % 2 == 0 ? group : group + 8, column};
}
Element of_b(int lane, int i) { return {(lane & 3) + 4 * i, lane >> 2}; }
Element of_d(int lane, int i) { return {(lane >> 2) + (i < 2 ? 0 : 8), 2 * (lane & 3) + (i & 1)}; }

void finish_product(Thread** lanes, uint32_t) {
    const auto& shape = *static_cast<Product*>(lanes[0]->collective->data);
    const int m = shape.m, k = shape.k;
    double a[16][16], b[16][8];
    for (int lane = 0; lane < 32; ++lane) {
        const auto& mine = *static_cast<Product*>(lanes[lane]->collective->data);
        for (int i = 0; i < m * k / 32; ++i) {
            const Element at = of_a(m, lane, i);
            a[at.row][at.column] = mine.a[i];
        }
        for (int i = 0; i < k * 8 / 32; ++i) {
            const Element at = of_b(lane, i);
            b[at.row][at.column] = mine.b[i];
        }
    }
    for (int lane = 0; lane < 32; ++lane) {
        const auto& mine = *static_cast<Product*>(lanes[lane]->collective->data);
        for (int i = 0; i < m * 8 / 32; ++i) {
            const Element at = of_d(lane, i);
            for (int l = 0; l < k; ++l)
                mine.d[i] = __builtin_fma(a[at.row][l], b[l][at.column], mine.d[i]);
        }
    }
}

}  // namespace

uint32_t shuffle(Lane how, uint32_t value, uint32_t lane, uint32_t clamp, uint32_t mask, int line,
                 bool& in_range) {
    Shuffle mine{how, value, lane, clamp, line, 0, false};
    Collective call{"shfl.sync", line, mask, finish_shuffle, &mine};
    meet(call);
    in_range = mine.in_range;
    return mine.result;
}

void product(int m, int k, double* d, const double* a, const double* b, int line) {
    Product mine{m, k, d, a, b};
    Collective call{"mma.sync", line, 0xffffffffu, finish_product, &mine};
    meet(call);
}

}  // namespace ptx
