// Every load and store of a kernel: bounds, unwritten shared memory, races, copies in flight.
//
// Memory is watched in cells of four bytes. Two accesses of a cell by different threads are ordered
// if a barrier of their block (or of their warp) lies between them; blocks of one launch are never
// ordered. Unordered accesses of which one writes are a race, unless both are atomic.
#include "runtime.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

extern char image_begin[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));

namespace emulated {

alignas(1024) char dynamic_shared[256 * 1024];

namespace {

struct Stamp {  // who accessed, when and from where
    uint32_t block = 0, barriers = 0, warp_syncs = 0;  // block 0: nobody
    uint32_t from = 0;                                 // return address from the library's start
    uint16_t thread = 0;
    bool atomic = false;
};

struct Cell {
    Stamp write, read, other_read;  // the two reads hardest to be ordered after
    uint32_t owner = 0;             // launch or block to which all of it belongs
    uint8_t written = 0;            // a bit for each byte
    uint8_t in_flight = 0;          // bytes that a cp.async will write
};

// The cells of a launch; those of earlier launches and blocks are told by their owner, not cleared.
Cell* pool = nullptr;
size_t pool_cells = 0;

void reserve(size_t cells) {
    if (cells <= pool_cells) return;
    if (pool) munmap(pool, pool_cells * sizeof(Cell));
    pool_cells = 2 * cells;
    void* memory = mmap(nullptr, pool_cells * sizeof(Cell), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    pool = static_cast<Cell*>(memory);
}

struct Place {  // what an address belongs to
    const char* kind;  // "shared array", "argument"
    const char* name;
    char* begin;
    size_t bytes;
    size_t first_cell;
    size_t odd;  // bytes of the first cell before `begin`
    bool shared, writable;
};

std::vector<Place> places;  // of the launch, ascending
size_t last_place = 0;

Place* find(uintptr_t address) {
    const auto inside = [&](const Place& place) {
        const auto begin = reinterpret_cast<uintptr_t>(place.begin);
        return begin <= address && address < begin + place.bytes;
    };
    if (last_place < places.size() && inside(places[last_place])) return &places[last_place];
    for (size_t i = 0; i < places.size(); ++i)
        if (inside(places[i])) return &places[last_place = i];
    return nullptr;
}

const char* verb(Access kind) {
    switch (kind) {
        case Access::read: return "reads";
        case Access::read_only: return "reads as constant";
        case Access::write: return "writes";
        case Access::atomic: return "updates";
        case Access::copy_source: return "copies from";
        case Access::copy_target: return "copies to";
    }
    return "";
}

[[noreturn]] void out_of_bounds(uintptr_t address, size_t bytes, Access kind, uintptr_t here) {
    const Place* near = nullptr;
    uintptr_t nearest = 1 << 20;  // the gap between arguments is wider
    for (const Place& place : places) {
        const auto begin = reinterpret_cast<uintptr_t>(place.begin), end = begin + place.bytes;
        const uintptr_t distance = address < begin ? begin - address : address < end ? 0 : address - end;
        if (distance < nearest) {
            nearest = distance;
            near = &place;
        }
    }
    if (!near)
        fail("out of bounds", here, 0, 0, 0, "%s %zu bytes at an address of no argument ({here})",
             verb(kind), bytes);
    const auto offset = static_cast<long long>(address - reinterpret_cast<uintptr_t>(near->begin));
    fail("out of bounds", here, 0, 0, 0, "%s %zu bytes at byte %lld of %s %s, which has %zu ({here})",
         verb(kind), bytes, offset, near->kind, near->name, near->bytes);
}

bool is_read(Access kind) {
    return kind == Access::read || kind == Access::read_only || kind == Access::copy_source;
}

bool ordered(const Stamp& then, const Stamp& now) {
    if (then.block == 0) return true;
    if (then.block != now.block) return false;
    if (then.thread == now.thread || then.barriers != now.barriers) return true;
    return then.thread / 32 == now.thread / 32 && then.warp_syncs != now.warp_syncs;
}

[[noreturn]] void race(const Place& place, size_t offset, const Stamp& then, bool wrote, Access kind,
                       uintptr_t here) {
    char who[64];
    if (then.block != block.number) {
        const uint32_t number = then.block - launch_number - 1, *grid = launch->grid;
        std::snprintf(who, sizeof who, "block (%u,%u,%u)", number % grid[0], number / grid[0] % grid[1],
                      number / grid[0] / grid[1]);
    } else {
        std::snprintf(who, sizeof who, "%s", thread_name(threads[then.thread]).c_str());
    }
    const uintptr_t there = reinterpret_cast<uintptr_t>(image_begin) + then.from;
    fail("race", here, 0, there, 0, "%s byte %zu of %s %s ({here}), which %s %s ({there}): %s",
         verb(kind), offset, place.kind, place.name, who, wrote ? "wrote" : "read",
         then.block != block.number ? "blocks of one launch are not ordered"
                                    : "no barrier lies between");
}

// Keeps two reads such that a write unordered with any read is unordered with one of them.
void remember_read(Cell& cell, const Stamp& now) {
    const auto hardness = [&](const Stamp& read) {
        if (read.block == 0) return 0;
        if (read.block != now.block) return 4;
        if (read.barriers != now.barriers) return 0;
        if (read.thread / 32 != now.thread / 32) return 3;
        return read.thread != now.thread ? 2 : 1;
    };
    if (hardness(cell.read) >= hardness(cell.other_read)) cell.other_read = cell.read;
    cell.read = now;
}

void visit(const Place& place, Cell& cell, uint8_t mask, size_t offset, Access kind, const Stamp& now,
           uintptr_t here) {
    const bool reads = is_read(kind);
    if (cell.in_flight & mask)
        fail("cp.async", here, 0, reinterpret_cast<uintptr_t>(image_begin) + cell.write.from, 0,
             "%s byte %zu of %s %s ({here}) while the cp.async ({there}) of %s is not waited for",
             verb(kind), offset, place.kind, place.name,
             thread_name(threads[cell.write.thread]).c_str());
    if (place.shared && (reads || kind == Access::atomic) && (cell.written & mask) != mask)
        fail("unwritten", here, 0, 0, 0, "%s byte %zu of %s %s, which nobody has written ({here})",
             verb(kind), offset, place.kind, place.name);
    if (kind == Access::read_only && cell.write.block != 0)
        fail("read-only", here, 0, reinterpret_cast<uintptr_t>(image_begin) + cell.write.from, 0,
             "%s byte %zu of %s %s ({here}), which this launch wrote ({there})", verb(kind), offset,
             place.kind, place.name);
    const bool both_atomic = now.atomic && cell.write.atomic;
    if (!both_atomic && !ordered(cell.write, now)) race(place, offset, cell.write, true, kind, here);
    if (reads) {
        remember_read(cell, now);
        return;
    }
    for (const Stamp* read : {&cell.read, &cell.other_read})
        if (!ordered(*read, now)) race(place, offset, *read, false, kind, here);
    cell.write = now;
    if (kind == Access::copy_target) {
        cell.in_flight |= mask;
    } else {
        cell.written |= mask;
    }
}

template <class Function>
void for_cells(const Place& place, size_t offset, size_t bytes, Function function) {
    const size_t begin = place.odd + offset, end = begin + bytes;
    const uint32_t owner = place.shared ? block.number : launch_number;
    for (size_t i = begin / 4; i <= (end - 1) / 4; ++i) {
        const size_t low = std::max(begin, 4 * i) - 4 * i, high = std::min(end, 4 * i + 4) - 4 * i;
        const auto mask = static_cast<uint8_t>((1u << high) - (1u << low));
        Cell& cell = pool[place.first_cell + i];
        if (cell.owner != owner) {
            cell = Cell();
            cell.owner = owner;
        }
        function(cell, mask, 4 * i + low - place.odd);
    }
}

Stamp stamp_of(uintptr_t here, bool atomic) {
    Stamp now;
    now.block = block.number;
    now.barriers = block.barriers;
    now.warp_syncs = current->warp_syncs;
    now.from = static_cast<uint32_t>(here - reinterpret_cast<uintptr_t>(image_begin));
    now.thread = static_cast<uint16_t>(current->linear);
    now.atomic = atomic;
    return now;
}

}  // namespace

void release_memory() {
    if (pool) munmap(pool, pool_cells * sizeof(Cell));
    pool = nullptr;
    pool_cells = 0;
}

void begin_launch_memory() {
    places.clear();
    size_t used = 0;
    last_place = 0;
    const auto add = [&](const char* kind, const char* name, char* begin, size_t bytes, bool shared,
                        bool writable) {
        const size_t odd = reinterpret_cast<uintptr_t>(begin) % 4;
        places.push_back({kind, name, begin, bytes, used, odd, shared, writable});
        used += (odd + bytes + 3) / 4;
    };
    for (int i = 0; i < launch->region_count; ++i) {
        const Region& region = launch->regions[i];
        add("argument", region.name, region.begin, region.bytes, false, region.writable != 0);
    }
    for (int i = 0; i < launch->variable_count; ++i) {
        const Variable& variable = launch->variables[i];
        if (variable.shared)
            add("shared array", variable.name, image_begin + variable.address, variable.bytes, true, true);
    }
    if (launch->dynamic_shared)
        add("shared array", "of the launch", dynamic_shared, launch->dynamic_shared, true, true);
    reserve(used);
}

void begin_block_memory() {
    for (const Place& place : places)
        if (place.shared) std::memset(place.begin, 0xff, place.bytes);  // not what the last block left
}

bool constant(uintptr_t address) {
    for (int i = 0; i < launch->variable_count; ++i) {
        const Variable& variable = launch->variables[i];
        const auto low = reinterpret_cast<uintptr_t>(image_begin) + variable.address;
        if (!variable.shared && low <= address && address < low + variable.bytes) return true;
    }
    return false;
}

void access(const void* pointer, size_t bytes, Access kind, uintptr_t here) {
    if (!current) return;
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    const auto stack = reinterpret_cast<uintptr_t>(current->stack);
    if (stack <= address && address < stack + stack_bytes) return;
    Place* place = find(address);
    if (!place) {
        if (is_read(kind) && constant(address)) return;
        if (in_other_stack(address))
            fail("out of bounds", here, 0, 0, 0, "%s %zu bytes in another thread's registers ({here})",
                 verb(kind), bytes);
        out_of_bounds(address, bytes, kind, here);
    }
    const size_t offset = address - reinterpret_cast<uintptr_t>(place->begin);
    if (offset + bytes > place->bytes) out_of_bounds(address, bytes, kind, here);
    const bool reads = is_read(kind);
    if (!reads && !place->writable)
        fail("const", here, 0, 0, 0, "%s byte %zu of argument %s, a pointer to const ({here})",
             verb(kind), offset, place->name);
    const Stamp now = stamp_of(here, kind == Access::atomic);
    for_cells(*place, offset, bytes, [&](Cell& cell, uint8_t mask, size_t at) {
        visit(*place, cell, mask, at, kind, now, here);
    });
}

bool is_shared(const void* pointer) {
    const Place* place = find(reinterpret_cast<uintptr_t>(pointer));
    return place && place->shared;
}

void copy_arrived(const Copy& copy, uintptr_t here) {
    std::memcpy(copy.target, copy.source, copy.bytes);
    const Place* place = find(reinterpret_cast<uintptr_t>(copy.target));
    const size_t offset = static_cast<size_t>(copy.target - place->begin);
    const Stamp now = stamp_of(here, false);
    for_cells(*place, offset, copy.bytes, [&](Cell& cell, uint8_t mask, size_t) {
        cell.in_flight = static_cast<uint8_t>(cell.in_flight & ~mask);
        cell.written |= mask;
        cell.write = now;
    });
}

}  // namespace emulated
