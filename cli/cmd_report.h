// `sparsight report`
#pragma once

#include <string>
#include <vector>

namespace sparsight::cli {

struct ReportArguments {
  std::vector<std::string> runs, baselines;
  std::string out, format = "html";
};

void run_report(const ReportArguments& arguments);

}  // namespace sparsight::cli
