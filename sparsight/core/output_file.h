// Files as output, which other processes may write, replace or clean up at the same time.
#pragma once

#include <cstddef>
#include <string>

namespace sparsight {

// Writes all of `bytes`, or raises Error naming `path`.
void write_all(int descriptor, const void* data, size_t bytes, const std::string& path);

// Whether `path` still names the open file.
bool is_same_file(int descriptor, const std::string& path);

// Takes the lock that says that the file is being written; its writer's end releases it. False where another process
// has it; true on a disk without locks.
bool lock_while_written(int descriptor);

}  // namespace sparsight
