#include <memory>

#include "cli/output.h"
#include "cli/verbs.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/report.h"
#include "sparsight/report/run_comparison.h"
#include "sparsight/report/table.h"

namespace sparsight::cli {
namespace {

struct ReportArguments {
  std::string run, out, format = "html";
  std::vector<std::string> baselines;
};

void report(const ReportArguments& arguments) {
  if (arguments.format == "csv" && !arguments.baselines.empty())
    fail_usage("--baseline goes with --format html, table or markdown, got csv");
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

}  // namespace

void add_report(CLI::App& app) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* verb = add_verb(
      app, "report", "Write the report of a run (one HTML file with curves, experts and examples) or its result table",
      "sparsight report runs/demo\n"
      "sparsight report runs/demo --out demo.html\n"
      "sparsight report runs/demo --format markdown\n"
      "sparsight report runs/moe --baseline runs/dense");
  verb->add_option("run", arguments->run, "Run folder")->required()->type_name("RUN");
  verb->add_option("--out", arguments->out, "File to write (default: RUN/report.html for html, else standard output)")
      ->type_name("FILE");
  verb->add_option("--format", arguments->format, "Format: html, table, csv or markdown")
      ->check(CLI::IsMember({"html", "table", "csv", "markdown"}))
      ->capture_default_str();
  verb->add_option("--baseline", arguments->baselines,
                   "Run to compare with: adds a table of accuracy, size, cost and time (repeatable)")
      ->type_name("RUN")
      ->allow_extra_args(false);
  verb->callback([arguments] { report(*arguments); });
}

}  // namespace sparsight::cli
