// Paths of the program under test and of the sources.
#pragma once

#include <string>

namespace sparsight::test {

std::string program_path();        // the sparsight program
std::string disk_fault_library();  // what disk_faults.h preloads
std::string source_path(
    const std::string& relative);  // a file of the repository: "tests/golden/vit_golden.safetensors"

}  // namespace sparsight::test
