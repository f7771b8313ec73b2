// `sparsight report`
#pragma once

#include <string>
#include <vector>

namespace sparsight::cli {

struct ReportArguments {
  std::string run, out, format = "html";
  std::vector<std::string> baselines;
  std::vector<std::string> fields;  // of robustbench: "venue=ICLR 2020"
  bool any_epsilon = false;         // of robustbench
};

void run_report(const ReportArguments& arguments);

}  // namespace sparsight::cli
