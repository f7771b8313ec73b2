// `sparsight version`
#pragma once

#include <string>

namespace sparsight::cli {

void run_version();
void print_version(const std::string& torch_version, const std::string& instruction_set);

}  // namespace sparsight::cli
