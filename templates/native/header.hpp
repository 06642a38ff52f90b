/* The C++ header of a library. */
//: library
// Programs of the library $name for C++20: spans whose sizes are checked, errors as exceptions.
// Written by tcgen $version. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <complex>
#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include "$name.h"
#ifndef __cpp_lib_span
#error "$name.hpp needs C++20: compile with -std=c++20"
#endif

$shared

namespace $name {
$classes
}
//: shared
#ifndef TCGEN_HPP
#define TCGEN_HPP
namespace tcgen {

// What went wrong in a call, with the number of its tcgen_status.
struct error : std::runtime_error {
    tcgen_status status;
    error(int number, const std::string &text) : std::runtime_error(text), status(tcgen_status(number)) {}
};

inline void check(const char *program, const char *name, std::size_t found, std::int64_t wanted, bool optional)
{
    if (found == std::size_t(wanted) || (optional && found == 0)) return;
    throw error(TCGEN_EXTENT, std::string(program) + ": " + name + " has " + std::to_string(found)
        + " elements, not " + std::to_string(wanted));
}

// Memory on cache lines.
class memory {
public:
    memory() = default;
    memory(memory &&other) noexcept : start(std::exchange(other.start, nullptr)), count(std::exchange(other.count, 0)) {}
    memory &operator=(memory &&other) noexcept
    {
        std::swap(start, other.start);
        std::swap(count, other.count);
        return *this;
    }
    ~memory() { release(); }
    void resize(std::size_t bytes)
    {
        if (bytes <= count) return;
        release();
        start = ::operator new(bytes, line);
        count = bytes;
    }
    void *data() const { return start; }
    std::size_t size() const { return count; }

private:
    static constexpr std::align_val_t line{64};
    void *start = nullptr;
    std::size_t count = 0;
    void release()
    {
        if (start) ::operator delete(start, line);
        start = nullptr;
        count = 0;
    }
};

// A source of tiles: a function (first, count, tile) that fills the tile in C order. An exception ends the call,
// which throws it again.
struct source {
    std::function<void(const std::int64_t *first, const std::int64_t *count, void *tile)> fill;
    mutable std::exception_ptr thrown = nullptr;
    tcgen_source c() const
    {
        if (!fill) return {nullptr, nullptr};
        return {call, const_cast<source *>(this)};
    }
    void rethrow() const
    {
        if (thrown) std::rethrow_exception(std::exchange(thrown, nullptr));
    }

private:
    static int call(void *context, const std::int64_t *first, const std::int64_t *count, void *tile)
    {
        const source *const self = static_cast<const source *>(context);
        try {
            self->fill(first, count, tile);
            return 0;
        } catch (...) {
            self->thrown = std::current_exception();
            return 1;
        }
    }
};
}
#endif
//: program

class $name {
public:
    struct inputs {
        $inputs
    };
    struct outputs {
        $outputs
    };
    tcgen_options options{};

    explicit $name(const ${symbol}_extents &extents) : n(extents) {}
    std::int64_t parts() const { return wanted(${symbol}_parts(&n)); }
    std::int64_t workspace_bytes() const { return wanted(${symbol}_workspace_bytes(&n, options.threads)); }

    // Run the program; after bind(), from its state.
    void operator()(const inputs &in, const outputs &out)
    {
        const std::size_t bytes(workspace_bytes());
        check_inputs(in);
        $checks_out
        const ${symbol}_inputs given = {$given};
        const ${symbol}_outputs made = {$made};
        (void)out;
        workspace.resize(bytes);
        $run
        $rethrow
        raise(status);
    }
    $bind

private:
    ${symbol}_extents n;
    tcgen::memory workspace, state;
    void check_inputs(const inputs &in) const
    {
        (void)in;
        $checks_in
    }
    static std::int64_t wanted(std::int64_t number)
    {
        if (number < 0) raise(int(-number));
        return number;
    }
    static void raise(int status)
    {
        if (status != TCGEN_OK) throw tcgen::error(status, $message());
    }
};
//: run
const int status = ::$symbol(&n, &given, &made, workspace.data(), workspace.size(), &options);
//: run_bound
const int status = state.size() == 0
    ? ::$symbol(&n, &given, &made, workspace.data(), workspace.size(), &options)
    : ::${symbol}_call(&n, &given, &made, state.data(), state.size(), workspace.data(), workspace.size(), &options);
//: bind

// Compute what depends on constant inputs alone; calls pass the same constants.
void bind(const inputs &in)
{
    state.resize(std::size_t(wanted(${symbol}_state_bytes(&n))));
    workspace.resize(std::size_t(workspace_bytes()));
    check_inputs(in);
    const ${symbol}_inputs given = {$given};
    const int status = ${symbol}_bind(
        &n, &given, state.data(), state.size(), workspace.data(), workspace.size(), &options);
    $rethrow
    raise(status);
}
