// What the accesses of a warp cost in shared and in global memory, counted and not timed.
//
// Shared memory has 32 banks of 4 bytes. It serves a warp in one pass for each different word of the
// bank that most words are asked of; accesses of 8 bytes go by half warps, of 16 bytes by quarters.
// Global memory is read and written in sectors of 32 bytes.
#include "traffic.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "runtime.h"

namespace ptx {

bool counting = false;

namespace {

using namespace emulated;

struct Lane {
    uint32_t number;
    uint64_t address;
};

// The accesses of one instruction by the lanes of a warp, the n-th time that each lane executes it.
using Key = std::tuple<int32_t, uint32_t, uint32_t>;  // line, warp, times before
struct Access {
    bool shared, write;
    uint32_t bytes;
    std::vector<Lane> lanes;
};
std::map<Key, Access> accesses;                      // of a block
std::unordered_map<uint64_t, uint32_t> times_before;  // by thread and line
uint32_t counted_block = 0;

struct Row {  // traffic.py has the same
    int32_t line, shared, write;
    uint64_t accesses, bytes, cost, least;
};
std::map<int32_t, Row> rows;

void count_shared(const Access& access, Row& row) {
    const uint32_t together = 128 / access.bytes;  // lanes of one pass, if no two words share a bank
    for (uint32_t first = 0; first < 32; first += together) {
        std::set<uint64_t> words[32];
        for (const Lane& lane : access.lanes) {
            if (lane.number / together != first / together) continue;
            for (uint32_t byte = 0; byte < access.bytes; byte += 4) {
                const uint64_t word = (lane.address + byte) / 4;
                words[word % 32].insert(word);
            }
        }
        size_t passes = 0;
        for (const auto& of_bank : words) passes = std::max(passes, of_bank.size());
        row.cost += passes;
        row.least += passes > 0;
    }
}

void count_global(const Access& access, Row& row) {
    std::set<uint64_t> sectors, words;
    for (const Lane& lane : access.lanes) {
        for (uint32_t byte = 0; byte < access.bytes; byte += 4) words.insert((lane.address + byte) / 4);
        sectors.insert(lane.address / 32);
        sectors.insert((lane.address + access.bytes - 1) / 32);
    }
    row.cost += sectors.size();
    row.least += (4 * words.size() + 31) / 32;
}

void count_block() {
    for (const auto& [key, access] : accesses) {
        Row& row = rows[std::get<0>(key) * 2 + access.shared];
        row.line = std::get<0>(key);
        row.shared = access.shared;
        row.write = access.write;
        row.accesses += 1;
        row.bytes += access.bytes * access.lanes.size();
        access.shared ? count_shared(access, row) : count_global(access, row);
    }
    accesses.clear();
    times_before.clear();
}

}  // namespace

void count(int line, bool shared, bool write, uint64_t address, unsigned bytes) {
    if (block.number != counted_block) count_block();
    counted_block = block.number;
    const uint32_t thread = current->linear;
    const uint64_t who = (static_cast<uint64_t>(thread) << 32 | static_cast<uint32_t>(line)) * 2 + shared;
    Access& access = accesses[{line, thread / 32 * 2 + shared, times_before[who]++}];
    access.shared = shared;
    access.write = write;
    access.bytes = std::max(bytes, 4u);
    access.lanes.push_back({thread % 32, address});
}

}  // namespace ptx

// Begins to count (1), or ends it (0) and gives the number of rows.
extern "C" __attribute__((visibility("default"))) int tcgen_count_traffic(int on) {
    if (on) {
        ptx::rows.clear();
        ptx::accesses.clear();
    } else {
        ptx::count_block();
    }
    ptx::counting = on != 0;
    return static_cast<int>(ptx::rows.size());
}

extern "C" __attribute__((visibility("default"))) void tcgen_traffic(ptx::Row* into) {
    for (const auto& [key, row] : ptx::rows) *into++ = row;
}
