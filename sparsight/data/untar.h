// Extracts chosen files from a .tar.gz archive. Nothing else in it is written, so hostile paths can do no harm.
#pragma once

#include <map>
#include <string>

namespace sparsight {

// `wanted`: path in the archive -> file to write (each completely or not at all). Raises Error if the archive is
// damaged or one of them is missing.
void untar(const std::string& archive, const std::map<std::string, std::string>& wanted);

}  // namespace sparsight
