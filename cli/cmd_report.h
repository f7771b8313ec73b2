// `sparsight report`
#pragma once

#include <string>
#include <vector>

namespace sparsight::cli {

struct ReportArguments {
  std::vector<std::string> runs, baselines;
  std::string out, format = "html";
  std::vector<std::string> fields;  // of robustbench: "venue=ICLR 2020"
  bool any_epsilon = false;         // of robustbench
};

void run_report(const ReportArguments& arguments);

}  // namespace sparsight::cli
