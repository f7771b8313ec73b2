// Manual pages, in the language of troff that man reads.
#pragma once

#include <string>

#include "cli/command_tree.h"

namespace sparsight::cli {

// "sparsight-dg-sweep"
std::string man_page_name(const Command& command);

// The page of a command: sparsight(1), sparsight-train(1), sparsight-dg-sweep(1).
std::string man_page(const Command& command);

}  // namespace sparsight::cli
