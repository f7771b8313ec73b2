#pragma once

#include <string>

namespace sparsight::cli {

// The program to start for another command line like this one: the front program that started this one, or this one.
// The first call takes the front program's variable out of the environment.
const std::string& program_path();

}  // namespace sparsight::cli
