// Counting what accesses of memory cost: ptx.cpp tells of each, if it is wanted.
#pragma once

#include <cstdint>

namespace ptx {

extern bool counting;
void count(int line, bool shared, bool write, uint64_t address, unsigned bytes);

}  // namespace ptx
