// The command line of sparsight-run.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace sparsight::run {

struct Arguments {
  std::string model;
  std::vector<std::string> images;
  int64_t top = 5;
  int64_t threads = 0;  // 0: as many as there are processors
  int64_t kept_experts = std::numeric_limits<int64_t>::max();
  bool json = false, routing = false, pack_cache = false;
};

// Nothing for --help and --version, which have been answered then. Raises UsageError for a wrong command line.
std::optional<Arguments> parse_arguments(int argc, char** argv);

}  // namespace sparsight::run
