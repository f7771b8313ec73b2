// Extracts chosen files from a .tar.gz archive. Nothing else in it is written, so hostile paths can do no harm.
#pragma once

#include <map>
#include <string>

#include "sparsight/core/limits.h"

namespace sparsight {

// `wanted`: path in the archive -> file to write (each completely or not at all). Raises Error if the archive is
// damaged, one of them is missing, or it unpacks to more than `max_bytes` before all of them are found.
void untar(const std::string& archive, const std::map<std::string, std::string>& wanted,
           int64_t max_bytes = kMaxFileBytes);

}  // namespace sparsight
