#include "sparsight/report/report.h"

#include "sparsight/core/log.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/report_page.h"
#include "sparsight/report/run/overlaid_runs.h"
#include "sparsight/report/run/run_comparison.h"

namespace sparsight {

std::string write_report(const std::string& run, const std::string& out, const std::vector<std::string>& baselines) {
  const RunSummary summary = read_run_summary(run);
  for (const std::string& warning : summary.warnings) log_warning(warning);  // the page has them too
  std::string path = out.empty() ? RunFolder::open(run).report() : out;
  write_file_atomically(path, report_page(summary, compared_with(run, baselines)));
  return path;
}

std::string write_overlaid_report(const std::vector<std::string>& runs, const std::string& out) {
  const OverlaidRuns overlaid = read_overlaid_runs(runs);
  for (const std::string& warning : overlaid.warnings) log_warning(warning);
  const std::string path = out.empty() ? "comparison.html" : out;
  write_file_atomically(path, overlaid_page(overlaid));
  return path;
}

}  // namespace sparsight
