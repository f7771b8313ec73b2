// Takes chosen files out of a .tar.gz archive. Nothing else in it is written anywhere, so paths in it can do no harm.
#pragma once

#include <map>
#include <string>

namespace sparsight {

// `wanted`: path in the archive -> file to write (whole or not at all, each). Raises Error where the archive is damaged
// or lacks one of them.
void untar(const std::string& archive, const std::map<std::string, std::string>& wanted);

}  // namespace sparsight
