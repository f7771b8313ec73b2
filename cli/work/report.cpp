#include "sparsight/report/report.h"
#include "cli/cmd_report.h"
#include "cli/output.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/attack/read_attacks.h"
#include "sparsight/report/attack/robustbench.h"
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
  const RobustBenchEntry entry = robustbench_entry(read_autoattack(arguments.run), fields, arguments.any_epsilon);
  write_text(arguments, json_text(entry.info, 2) + "\n");
  log_info("for the folder ", entry.folder, " of RobustBench");
  if (!entry.empty.empty())
    log_warning("these fields are empty: ", join(entry.empty, ", "), "; give them as --field ", entry.empty.front(),
                "=VALUE");
}

}  // namespace

void run_report(const ReportArguments& arguments) {
  if (arguments.format == "robustbench") return write_robustbench(arguments);
  if (arguments.format == "html") {
    output() << printable(write_report(arguments.run, arguments.out, arguments.baselines)) << "\n";
    return;
  }
  const RunMetrics log = read_run_metrics(RunFolder::open(arguments.run).metrics());
  for (const std::string& warning : log.warnings) log_warning(warning);
  std::string text = arguments.format == "csv"        ? result_csv(log)
                     : arguments.format == "markdown" ? result_markdown(log)
                                                      : result_table(log);
  if (const Rows rows = compared_with(arguments.run, arguments.baselines); !rows.empty())
    text += "\n" + (arguments.format == "markdown" ? markdown(rows) : aligned(rows));
  std::vector<std::string> warnings;
  if (const Rows rows = attack_overview_rows(read_attacks(arguments.run, warnings));
      !rows.empty() && arguments.format != "csv")
    text += "\n" + (arguments.format == "markdown" ? markdown(rows) : aligned(rows));
  for (const std::string& warning : warnings) log_warning(warning);
  write_text(arguments, text);
}

}  // namespace sparsight::cli
