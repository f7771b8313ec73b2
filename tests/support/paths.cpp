#include "tests/support/paths.h"

namespace sparsight::test {

std::string program_path() { return SPARSIGHT_PROGRAM; }
std::string disk_fault_library() { return SPARSIGHT_DISK_FAULTS; }
std::string source_path(const std::string& relative) { return std::string(SPARSIGHT_SOURCE_DIR "/") + relative; }

}  // namespace sparsight::test
