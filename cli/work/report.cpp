#include "sparsight/report/report.h"
#include "cli/cmd_report.h"
#include "cli/output.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/attack/read_attacks.h"
#include "sparsight/report/attack/robustbench.h"
#include "sparsight/report/run/overlaid_runs.h"
#include "sparsight/report/run/run_comparison.h"
#include "sparsight/report/table.h"

namespace sparsight::cli {
namespace {

void write_text(const ReportArguments& arguments, const std::string& text) {
  if (arguments.out.empty())
    output() << text;
  else
    write_file_atomically(arguments.out, text);
}

void write_robustbench(const ReportArguments& arguments) {
  const RobustBenchFields fields = parse_robustbench_fields(arguments.fields);
  const RobustBenchEntry entry =
      robustbench_entry(read_autoattack(arguments.runs.at(0)), fields, arguments.any_epsilon);
  write_text(arguments, json_text(entry.info, 2) + "\n");
  log_info("for the folder ", entry.folder, " of RobustBench");
  if (!entry.empty.empty())
    log_warning("these fields are empty: ", join(entry.empty, ", "), "; give them as --field ", entry.empty.front(),
                "=VALUE");
}

void report_several_runs(const ReportArguments& arguments) {
  if (arguments.format == "html") {
    output() << printable(write_overlaid_report(arguments.runs, arguments.out)) << "\n";
    return;
  }
  const OverlaidRuns overlaid = read_overlaid_runs(arguments.runs);
  for (const std::string& warning : overlaid.warnings) log_warning(warning);
  const auto table = [&](const Rows& rows) { return arguments.format == "markdown" ? markdown(rows) : aligned(rows); };
  write_text(arguments, table(overlaid_results(overlaid.runs)) + "\n" + table(differing_settings(overlaid.runs)));
}

}  // namespace

void run_report(const ReportArguments& arguments) {
  if (arguments.format == "robustbench") return write_robustbench(arguments);
  if (arguments.runs.size() > 1) return report_several_runs(arguments);
  const std::string& run = arguments.runs.at(0);
  if (arguments.format == "html") {
    output() << printable(write_report(run, arguments.out, arguments.baselines)) << "\n";
    return;
  }
  const RunMetrics log = read_run_metrics(RunFolder::open(run).metrics());
  for (const std::string& warning : log.warnings) log_warning(warning);
  std::string text = arguments.format == "csv"        ? result_csv(log)
                     : arguments.format == "markdown" ? result_markdown(log)
                                                      : result_table(log);
  if (const Rows rows = compared_with(run, arguments.baselines); !rows.empty())
    text += "\n" + (arguments.format == "markdown" ? markdown(rows) : aligned(rows));
  std::vector<std::string> warnings;
  if (const Rows rows = attack_overview_rows(read_attacks(run, warnings)); !rows.empty() && arguments.format != "csv")
    text += "\n" + (arguments.format == "markdown" ? markdown(rows) : aligned(rows));
  for (const std::string& warning : warnings) log_warning(warning);
  write_text(arguments, text);
}

}  // namespace sparsight::cli
