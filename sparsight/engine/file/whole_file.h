// Writes a file that is there as a whole or not at all. (io/atomic_file.h does more, for files that nothing can
// replace; the engine does not include io/.)
#pragma once

#include <cstddef>
#include <string>

#include "sparsight/core/function_ref.h"

namespace sparsight::engine {

using WriteBytes = FunctionRef<void(const void* bytes, size_t count)>;

// Renames what fill() writes to `path`, which nobody may write to; everybody may read it if everybody may read the file
// `like`, and else its owner alone.
// Returns false without calling fill() where another process is writing that file. What a killed process left is
// removed. Raises Error where the file cannot be written, and leaves nothing then.
bool write_whole_file(const std::string& path, const std::string& like, FunctionRef<void(WriteBytes write)> fill);

}  // namespace sparsight::engine
