// `sparsight explain`
#pragma once

#include <string>

#include "sparsight/infer/explain_request.h"

namespace sparsight::cli {

struct ExplainArguments {
  ExplainRequest request;
  std::string out;
  bool json = false;
};

void run_explain(const ExplainArguments& arguments);

}  // namespace sparsight::cli
