#include "sparsight/report/report.h"
#include "cli/cmd_report.h"
#include "cli/output.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/run_comparison.h"
#include "sparsight/report/table.h"

namespace sparsight::cli {

void run_report(const ReportArguments& arguments) {
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
  if (arguments.out.empty())
    output() << text;
  else
    write_file_atomically(arguments.out, text);
}

}  // namespace sparsight::cli
