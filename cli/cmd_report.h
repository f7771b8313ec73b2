// `sparsight report`
#pragma once

#include <string>
#include <vector>

namespace sparsight::cli {

struct ReportArguments {
  std::string run, out, format = "html";
  std::vector<std::string> baselines;
};

void run_report(const ReportArguments& arguments);

}  // namespace sparsight::cli
