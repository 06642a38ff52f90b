// What the emulator's own files share. None of them is instrumented; see README.md for the whole.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <ucontext.h>
#include <vector>

#include "emulated.h"

namespace emulated {

// ---- what Python passes; module.py has the same structures -------------------------------------

struct Region {  // global memory of one or more arguments
    char* begin;  // the emulator's copy, with a gap on both sides
    uint64_t bytes;
    int32_t writable;
    const char* name;
};

struct Variable {
    uint64_t address;  // from the start of the library
    uint64_t bytes;
    int32_t shared;  // 1 a static __shared__ array of the kernel, 0 a __constant__ array
    const char* name;
};

struct Launch {
    const Signature* signature;
    void** arguments;
    uint32_t grid[3], block[3];
    uint64_t dynamic_shared, seed;
    const Region* regions;
    const Variable* variables;
    int32_t region_count, variable_count;
    const uint32_t* chosen;  // numbers of the blocks that run, if there are some; else all run
    uint64_t chosen_count;
};

struct Report {  // of the first fault
    char kind[32];
    char message[1024];     // {here} and {there} stand for the source lines of the two below
    uint64_t here, there;   // return addresses from the start of the library, 0: none
    int32_t here_line, there_line;  // or lines where they are known
    uint32_t block[3], thread[3];
};

// ---- threads -----------------------------------------------------------------------------------

struct Copy {  // one cp.async
    char* target;
    const char* source;
    uint32_t bytes;
};

struct Thread;

struct Collective {  // a call in which the lanes of a mask take part together
    const char* name;
    int line;
    uint32_t mask;
    void (*finish)(Thread** lanes, uint32_t mask);  // computes what every lane gets
    void* data;
};

enum class State { ready, at_barrier, at_collective, exited };

struct Thread {
    std::jmp_buf context;
    ucontext_t first;
    char* stack = nullptr;
    bool started = false;
    State state = State::exited;
    dim3 index;
    uint32_t linear = 0;
    uint32_t warp_syncs = 0;
    const char* barrier = nullptr;
    int line = 0;
    int predicate = 0;
    Collective* collective = nullptr;
    std::deque<std::vector<Copy>> groups;  // committed, oldest first
    std::vector<Copy> open;                // not committed
};

struct Block {
    dim3 index;
    uint32_t number = 0;    // from 1, counted on over all launches
    uint32_t barriers = 0;  // passed so far, from 1
    int votes = 0;          // predicates that were true at the last barrier
};

extern const Launch* launch;
extern uint32_t launch_number;  // less than those of its blocks, more than any before
extern Block block;
extern Thread* current;  // null outside kernels
extern std::vector<Thread> threads;

// Records the fault and leaves the kernel for good.
[[noreturn]] void fail(const char* kind, uintptr_t here, int here_line, uintptr_t there,
                       int there_line, const char* format, ...)
    __attribute__((format(printf, 6, 7)));

void run_block();
std::string thread_name(const Thread& thread);  // "thread (3,0,0)"
void meet(Collective& mine);  // returns when all lanes of the mask have met

// ---- memory ------------------------------------------------------------------------------------

void begin_launch_memory();
void begin_block_memory();
void release_memory();
void access(const void* address, size_t bytes, Access kind, uintptr_t here);
void copy_arrived(const Copy& copy, uintptr_t here);
bool in_other_stack(uintptr_t address);

constexpr size_t stack_bytes = 128 * 1024;

}  // namespace emulated

#define TCGEN_CALLER reinterpret_cast<uintptr_t>(__builtin_return_address(0))
