// Groups on c10d's gloo backend. Its source file alone knows c10d.
#pragma once

#include "sparsight/dist/group.h"

namespace sparsight::dist {

struct GlooSettings {
  int64_t rank = 0, size = 1;
  int64_t restarts = 0;
  std::string store_file = {};  // or:
  std::string address = {};     // of the process that serves the store
  int64_t port = 0;
  bool launcher_serves = false;   // else rank 0 serves the store
  std::string token = {};         // of this run: ranks with another one do not join
  std::string program = {};       // its version, the same for all ranks; "": of this build
  int64_t timeout_seconds = 600;  // of each collective: how long a rank may be late
};

GroupPtr join_gloo(const GlooSettings& settings);

}  // namespace sparsight::dist
