// The threads of a block: fibers that run one after the other, in random order, until they wait.
//
// A fiber starts by swapcontext, once for each stack; afterwards switches are _setjmp/_longjmp, which
// need no system call. A fault leaves the fiber where it is: its stack is used anew.
#include "runtime.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

namespace emulated {

const Launch* launch = nullptr;
uint32_t launch_number = 0;
Block block;
Thread* current = nullptr;
std::vector<Thread> threads;

namespace {

Report* report;
std::jmp_buf scheduler;
ucontext_t scheduler_first;
std::vector<char*> stacks;
bool failed;
uint64_t random_state;
uint32_t last_number;

uint32_t random_below(uint32_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((random_state >> 33) % n);
}

void to_scheduler() {
    if (_setjmp(current->context) == 0) _longjmp(scheduler, 1);
}

void fiber() {
    for (;;) {  // one kernel for each turn
        launch->signature->call(launch->arguments);
        current->state = State::exited;
        to_scheduler();
    }
}

void resume(Thread& thread) {
    current = &thread;
    if (_setjmp(scheduler) == 0) {
        if (thread.started) _longjmp(thread.context, 1);
        thread.started = true;
        getcontext(&thread.first);
        thread.first.uc_stack.ss_sp = thread.stack;
        thread.first.uc_stack.ss_size = stack_bytes;
        thread.first.uc_link = nullptr;
        makecontext(&thread.first, fiber, 0);
        swapcontext(&scheduler_first, &thread.first);
    }
    current = nullptr;
}

size_t guard_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

char* new_stack() {
    const size_t guard = guard_bytes();
    void* memory = mmap(nullptr, stack_bytes + guard, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    mprotect(memory, guard, PROT_NONE);
    return static_cast<char*>(memory) + guard;
}

void set_block_threads(uint32_t count) {
    while (stacks.size() < count) stacks.push_back(new_stack());
    threads.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
        Thread& thread = threads[i];
        thread.stack = stacks[i];
        thread.linear = i;
        const uint32_t* extent = launch->block;
        thread.index = dim3(i % extent[0], i / extent[0] % extent[1], i / extent[0] / extent[1]);
    }
}

[[noreturn]] void fail_waiting(const Thread& waits, const Thread& other) {
    const char* name = waits.state == State::at_barrier ? waits.barrier : waits.collective->name;
    const int line = waits.state == State::at_barrier ? waits.line : waits.collective->line;
    const std::string who = thread_name(waits);
    if (other.state == State::exited) {
        fail("divergent barrier", 0, line, 0, 0, "%s waits at %s ({here}), but %s has left the kernel",
             who.c_str(), name, thread_name(other).c_str());
    }
    const bool barrier = other.state == State::at_barrier;
    fail("divergent barrier", 0, line, 0, barrier ? other.line : other.collective->line,
         "%s waits at %s ({here}) while %s waits at %s ({there})", who.c_str(), name,
         thread_name(other).c_str(), barrier ? other.barrier : other.collective->name);
}

// Nobody can run. Opens the barrier if all wait at it; else says who waits for whom.
void open_barrier() {
    for (Thread& thread : threads) {
        if (thread.state != State::at_collective) continue;
        const uint32_t warp = thread.linear / 32 * 32;
        for (uint32_t lane = 0; lane < 32; ++lane) {
            if (!(thread.collective->mask >> lane & 1)) continue;
            const Thread& other = threads[warp + lane];
            if (other.state != State::at_collective || other.collective->line != thread.collective->line)
                fail_waiting(thread, other);
        }
    }
    const Thread* first = nullptr;
    for (const Thread& thread : threads)
        if (thread.state == State::at_barrier && !first) first = &thread;
    int votes = 0;
    for (const Thread& thread : threads) {
        if (thread.state != State::at_barrier || thread.line != first->line ||
            std::strcmp(thread.barrier, first->barrier) != 0)
            fail_waiting(*first, thread);
        votes += thread.predicate != 0;
    }
    block.votes = votes;
    block.barriers += 1;
    for (Thread& thread : threads) thread.state = State::ready;
}

}  // namespace

std::string thread_name(const Thread& thread) {
    char text[64];
    std::snprintf(text, sizeof text, "thread (%u,%u,%u)", thread.index.x, thread.index.y,
                  thread.index.z);
    return text;
}

void fail(const char* kind, uintptr_t here, int here_line, uintptr_t there, int there_line,
          const char* format, ...) {
    failed = true;
    const auto base = reinterpret_cast<uintptr_t>(__ehdr_start);
    std::snprintf(report->kind, sizeof report->kind, "%s", kind);
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(report->message, sizeof report->message, format, arguments);
    va_end(arguments);
    report->here = here ? here - base : 0;
    report->there = there ? there - base : 0;
    report->here_line = here_line;
    report->there_line = there_line;
    const dim3 at = current ? current->index : dim3(0, 0, 0);
    const uint32_t where[2][3] = {{block.index.x, block.index.y, block.index.z}, {at.x, at.y, at.z}};
    std::memcpy(report->block, where[0], sizeof report->block);
    std::memcpy(report->thread, where[1], sizeof report->thread);
    _longjmp(scheduler, 2);
}

void run_block() {
    set_block_threads(launch->block[0] * launch->block[1] * launch->block[2]);
    block.barriers = 1;
    for (Thread& thread : threads) {
        thread.state = State::ready;
        thread.warp_syncs = 0;
        thread.groups.clear();
        thread.open.clear();
    }
    std::vector<Thread*> order;
    for (Thread& thread : threads) order.push_back(&thread);
    for (;;) {
        for (size_t i = order.size(); i > 1; --i)
            std::swap(order[i - 1], order[random_below(static_cast<uint32_t>(i))]);
        bool ran = false;
        for (Thread* thread : order) {
            if (thread->state != State::ready) continue;
            ran = true;
            resume(*thread);
            if (failed) return;
        }
        if (ran) continue;
        const auto exited = [](const Thread& thread) { return thread.state == State::exited; };
        if (std::all_of(threads.begin(), threads.end(), exited)) return;
        if (_setjmp(scheduler) == 0) open_barrier();
        if (failed) return;
    }
}

bool in_other_stack(uintptr_t address) {
    return std::any_of(stacks.begin(), stacks.end(), [&](const char* stack) {
        const auto low = reinterpret_cast<uintptr_t>(stack);
        return low <= address && address < low + stack_bytes;
    });
}

int block_barrier(const char* name, Vote vote, int predicate, int line) {
    current->state = State::at_barrier;
    current->barrier = name;
    current->line = line;
    current->predicate = predicate;
    to_scheduler();
    switch (vote) {
        case Vote::none: return 0;
        case Vote::any: return block.votes > 0;
        case Vote::all: return block.votes == static_cast<int>(threads.size());
        case Vote::count: return block.votes;
    }
    return 0;
}

void meet(Collective& mine) {
    const uint32_t warp = current->linear / 32 * 32, lane = current->linear % 32;
    const auto count = static_cast<uint32_t>(threads.size());
    if (!(mine.mask >> lane & 1))
        fail("mask", 0, mine.line, 0, 0, "%s ({here}) is called by lane %u, which its mask %#010x lacks",
             mine.name, lane, mine.mask);
    current->collective = &mine;
    bool complete = true;
    for (uint32_t other = 0; other < 32; ++other) {
        if (other == lane || !(mine.mask >> other & 1)) continue;
        if (warp + other >= count)
            fail("mask", 0, mine.line, 0, 0,
                 "%s ({here}): its mask %#010x names lane %u, which the block of %u threads lacks",
                 mine.name, mine.mask, other, count);
        const Thread& thread = threads[warp + other];
        if (thread.state == State::exited)
            fail("mask", 0, mine.line, 0, 0,
                 "%s ({here}): its mask %#010x names lane %u, which has left the kernel", mine.name,
                 mine.mask, other);
        if (thread.state != State::at_collective) {
            complete = false;
            continue;
        }
        const Collective& theirs = *thread.collective;
        const bool same = theirs.line == mine.line && theirs.finish == mine.finish;
        if (same && theirs.mask != mine.mask)
            fail("mask", 0, mine.line, 0, 0, "%s ({here}): mask %#010x in lane %u, %#010x in lane %u",
                 mine.name, mine.mask, lane, theirs.mask, other);
        complete = complete && same;
    }
    if (!complete) {
        current->state = State::at_collective;
        to_scheduler();
        return;
    }
    Thread* lanes[32] = {};
    for (uint32_t other = 0; other < 32; ++other)
        if (mine.mask >> other & 1) lanes[other] = &threads[warp + other];
    mine.finish(lanes, mine.mask);
    for (Thread* thread : lanes)
        if (thread) thread->state = State::ready;
}

dim3 thread_index() { return current->index; }
dim3 block_index() { return block.index; }
dim3 block_extent() { return dim3(launch->block[0], launch->block[1], launch->block[2]); }
dim3 grid_extent() { return dim3(launch->grid[0], launch->grid[1], launch->grid[2]); }

unsigned live_lanes() {
    const uint32_t warp = current->linear / 32 * 32;
    unsigned mask = 0;
    for (uint32_t lane = 0; lane < 32 && warp + lane < threads.size(); ++lane)
        if (threads[warp + lane].state != State::exited) mask |= 1u << lane;
    return mask;
}

void trap(int line) { fail("trap", 0, line, 0, 0, "__trap ({here})"); }

}  // namespace emulated

// Runs all blocks in random order; 0, or 1 with the first fault in the report.
extern "C" __attribute__((visibility("default"))) int tcgen_emulate(const emulated::Launch* launch,
                                                                    emulated::Report* report) {
    using namespace emulated;
    emulated::launch = launch;
    emulated::report = report;
    random_state = launch->seed * 2 + 1;
    failed = false;
    launch_number = last_number + 1;
    const uint32_t* grid = launch->grid;
    const size_t all = static_cast<size_t>(grid[0]) * grid[1] * grid[2];
    std::vector<uint32_t> order(launch->chosen, launch->chosen + launch->chosen_count);
    for (size_t i = 0; !launch->chosen_count && i < all; ++i) order.push_back(static_cast<uint32_t>(i));
    for (size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[random_below(static_cast<uint32_t>(i))]);
    last_number = launch_number + static_cast<uint32_t>(all);
    begin_launch_memory();
    for (uint32_t i : order) {
        block.index = dim3(i % grid[0], i / grid[0] % grid[1], i / grid[0] / grid[1]);
        block.number = launch_number + i + 1;
        begin_block_memory();
        run_block();
        current = nullptr;
        if (failed) {
            for (Thread& thread : threads) thread.started = false;
            return 1;
        }
    }
    return 0;
}

// Gives the threads' stacks back: a process may map a limited number of pieces, and a test makes
// hundreds of modules. The next launch makes new ones.
extern "C" __attribute__((visibility("default"))) void tcgen_release() {
    using namespace emulated;
    threads.clear();
    for (char* stack : stacks) munmap(stack - guard_bytes(), stack_bytes + guard_bytes());
    stacks.clear();
    release_memory();
}
