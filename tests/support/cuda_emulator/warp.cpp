// What the lanes of a warp do together: shuffles, votes, __syncwarp, matrix products.
#include "runtime.h"

#include <cstring>

namespace emulated {
namespace {

struct Shuffle {
    Lane how;
    void* value;
    size_t bytes;
    int lane, width, line;
};

// The lane whose value `lane` gets, as the shuffle of width `width` defines it; itself if none.
int source_lane(const Shuffle& shuffle, int lane) {
    const int segment = lane / shuffle.width * shuffle.width;
    switch (shuffle.how) {
        case Lane::index: return segment + (shuffle.lane & (shuffle.width - 1));
        case Lane::up: return lane - shuffle.lane < segment ? lane : lane - shuffle.lane;
        case Lane::down:
            return lane + shuffle.lane >= segment + shuffle.width ? lane : lane + shuffle.lane;
        case Lane::exclusive: {
            const int other = lane ^ shuffle.lane;
            return other >= segment + shuffle.width ? lane : other;
        }
    }
    return lane;
}

void finish_shuffle(Thread** lanes, uint32_t mask) {
    char values[32][16];
    for (int lane = 0; lane < 32; ++lane) {
        if (!lanes[lane]) continue;
        const auto& shuffle = *static_cast<Shuffle*>(lanes[lane]->collective->data);
        std::memcpy(values[lane], shuffle.value, shuffle.bytes);
    }
    for (int lane = 0; lane < 32; ++lane) {
        if (!lanes[lane]) continue;
        const auto& shuffle = *static_cast<Shuffle*>(lanes[lane]->collective->data);
        const int source = source_lane(shuffle, lane);
        if (!(mask >> source & 1))
            fail("mask", 0, shuffle.line, 0, 0,
                 "%s ({here}): lane %d reads lane %d, which the mask %#010x lacks",
                 lanes[lane]->collective->name, lane, source, mask);
        std::memcpy(shuffle.value, values[source], shuffle.bytes);
    }
}

struct Ballot {
    int predicate;
    unsigned result;
};

void finish_ballot(Thread** lanes, uint32_t) {
    unsigned result = 0;
    for (int lane = 0; lane < 32; ++lane)
        if (lanes[lane] && static_cast<Ballot*>(lanes[lane]->collective->data)->predicate)
            result |= 1u << lane;
    for (int lane = 0; lane < 32; ++lane)
        if (lanes[lane]) static_cast<Ballot*>(lanes[lane]->collective->data)->result = result;
}

// Memory is ordered for the whole warp only: a partial mask meets, and orders nothing.
void finish_warp_barrier(Thread** lanes, uint32_t) {
    const uint32_t warp = current->linear / 32 * 32;
    for (uint32_t lane = 0; lane < 32 && warp + lane < threads.size(); ++lane)
        if (!lanes[lane] && threads[warp + lane].state != State::exited) return;
    for (uint32_t lane = 0; lane < 32 && warp + lane < threads.size(); ++lane)
        threads[warp + lane].warp_syncs += 1;
}

struct Product {
    int m, k;
    double* d;
    const double *a, *b;
};

// D += A B with the fragments of the PTX ISA for .f64, g = lane / 4 and t = lane % 4 (section
// "Matrix Fragments for mma.m8n8k4 / m16n8k4 / m16n8k8 / m16n8k16"):
//   a[i] is A[g + 8 (i mod m/8)][t + 4 (i div m/8)],  b[i] is B[t + 4 i][g],
//   d[i] is D[g + 8 (i div 2)][2 t + i mod 2].
void finish_mma(Thread** lanes, uint32_t) {
    double a[16][16], b[16][8];
    const auto& shape = *static_cast<Product*>(lanes[0]->collective->data);
    const int m = shape.m, k = shape.k, halves = m / 8;
    for (int lane = 0; lane < 32; ++lane) {
        const auto& mine = *static_cast<Product*>(lanes[lane]->collective->data);
        const int g = lane / 4, t = lane % 4;
        for (int i = 0; i < m * k / 32; ++i) a[g + 8 * (i % halves)][t + 4 * (i / halves)] = mine.a[i];
        for (int i = 0; i < k / 4; ++i) b[t + 4 * i][g] = mine.b[i];
    }
    for (int lane = 0; lane < 32; ++lane) {
        const auto& mine = *static_cast<Product*>(lanes[lane]->collective->data);
        const int g = lane / 4, t = lane % 4;
        for (int i = 0; i < m / 4; ++i)
            for (int l = 0; l < k; ++l) mine.d[i] += a[g + 8 * (i / 2)][l] * b[l][2 * t + i % 2];
    }
}

}  // namespace

void shuffle(Lane how, unsigned mask, void* value, size_t bytes, int lane, int width, int line) {
    static const char* const names[] = {"__shfl_sync", "__shfl_up_sync", "__shfl_down_sync",
                                        "__shfl_xor_sync"};
    const char* name = names[static_cast<int>(how)];
    if (width < 1 || width > 32 || (width & (width - 1)) != 0)
        fail("mask", 0, line, 0, 0, "%s ({here}): width %d is no power of two up to 32", name, width);
    if (bytes != 4 && bytes != 8)
        fail("mask", 0, line, 0, 0, "%s ({here}): a value of %zu bytes; CUDA shuffles 4 or 8", name,
             bytes);
    Shuffle mine{how, value, bytes, lane, width, line};
    Collective call{name, line, mask, finish_shuffle, &mine};
    meet(call);
}

unsigned ballot(const char* name, unsigned mask, int predicate, int line) {
    Ballot mine{predicate, 0};
    Collective call{name, line, mask, finish_ballot, &mine};
    meet(call);
    return mine.result;
}

void warp_barrier(unsigned mask, int line) {
    // Lanes that the block lacks are not waited for: CUDA has no other way to name a last warp whole.
    const uint32_t warp = current->linear / 32 * 32;
    for (uint32_t lane = 0; lane < 32; ++lane)
        if (warp + lane >= threads.size()) mask &= ~(1u << lane);
    Collective call{"__syncwarp", line, mask, finish_warp_barrier, nullptr};
    meet(call);
}

void mma(int m, int k, double* d, const double* a, const double* b, int line) {
    static const char* const names[] = {"mma m8n8k4", "mma m16n8k4", "mma m16n8k8", "mma m16n8k16"};
    const char* name = m == 8 ? names[0] : k == 4 ? names[1] : k == 8 ? names[2] : names[3];
    Product mine{m, k, d, a, b};
    Collective call{name, line, 0xffffffffu, finish_mma, &mine};
    meet(call);
}

}  // namespace emulated
