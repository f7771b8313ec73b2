// `sparsight serve`
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sparsight/infer/bare_options.h"

namespace sparsight::cli {

struct ServeArguments {
  std::string run, checkpoint, weights, name, token;
  std::vector<std::string> overrides;
  BareOptions bare;  // for a file of weights alone
  bool pack_cache = false;
  std::string host = "127.0.0.1";
  int64_t port = 8000;
  int64_t threads = 0;  // 0: all cores
  int64_t max_batch = 32, max_queue = 256, max_connections = 64;
  double max_delay_ms = 1;
  int64_t max_megabytes = 32, max_megapixels = 16, timeout = 30;
};

void run_serve(const ServeArguments& arguments);

}  // namespace sparsight::cli
