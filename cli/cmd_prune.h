// `sparsight prune`
#pragma once

#include "sparsight/infer/prune_request.h"

namespace sparsight::cli {

struct PruneArguments {
  PruneRequest request;
  std::string data;  // data.root, or ""
  bool json = false;
};

void run_prune(const PruneArguments& arguments);

}  // namespace sparsight::cli
