// The files of a folder as bytes, to send them to another process.
#pragma once

#include <string>

namespace sparsight {

// Files only. Raises Error where one cannot be read.
std::string packed_folder(const std::string& folder);
// Makes the folder, whole or not at all (atomic_folder.h). Raises Error for bytes that packed_folder() did not return.
void unpack_folder(const std::string& folder, const std::string& bytes);

}  // namespace sparsight
