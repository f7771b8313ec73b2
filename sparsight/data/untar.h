// Takes chosen files out of a .tar.gz archive. Nothing else in it is written anywhere, so paths in it can do no harm.
#pragma once

#include <map>
#include <string>

#include "sparsight/core/limits.h"

namespace sparsight {

// `wanted`: path in the archive -> file to write (whole or not at all, each). Raises Error where the archive is
// damaged, lacks one of them, or unpacks to more than `max_bytes` before they are all there.
void untar(const std::string& archive, const std::map<std::string, std::string>& wanted,
           int64_t max_bytes = kMaxFileBytes);

}  // namespace sparsight
