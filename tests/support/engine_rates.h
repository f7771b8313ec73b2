// A file of measured engine rates that a test has chosen.
#pragma once

#include <filesystem>
#include <string>

#include "sparsight/io/atomic_file.h"
#include "sparsight/models/kept_engine_rates.h"

namespace sparsight::test {

// In the cache that XDG_CACHE_HOME names: oneDNN has `onednn` GFLOP/s where the kernels have 100, for all uses.
inline void write_engine_rates(const std::string& onednn) {
  const std::string file = *engine_rates_file();
  std::filesystem::create_directories(std::filesystem::path(file).parent_path());
  std::string rates;
  for (const EngineUse use : kEngineUses)
    rates += std::string(rates.empty() ? "" : ", ") + "\"" + engine_use_name(use) +
             "\": {\"kernels\": 100, \"onednn\": " + onednn + "}";
  write_file_atomically(file, "{\"gflops\": {" + rates + "}}");
}

}  // namespace sparsight::test
