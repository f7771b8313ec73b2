#include <iostream>
#include <memory>

#include "cli/verbs.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/report.h"
#include "sparsight/report/table.h"

namespace sparsight::cli {
namespace {

struct ReportArguments {
  std::string run, out, format = "html";
};

void report(const ReportArguments& arguments) {
  if (arguments.format == "html") {
    std::cout << write_report(arguments.run, arguments.out) << "\n";
    return;
  }
  const RunMetrics log = read_run_metrics(RunFolder::open(arguments.run).metrics());
  for (const std::string& warning : log.warnings) log_warning(warning);
  const std::string text = arguments.format == "csv"        ? result_csv(log)
                           : arguments.format == "markdown" ? result_markdown(log)
                                                            : result_table(log);
  if (arguments.out.empty())
    std::cout << text;
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
      "sparsight report runs/demo --format markdown");
  verb->add_option("run", arguments->run, "Run folder")->required()->type_name("RUN");
  verb->add_option("--out", arguments->out, "File to write (default: RUN/report.html for html, else standard output)")
      ->type_name("FILE");
  verb->add_option("--format", arguments->format, "Format: html, table, csv or markdown")
      ->check(CLI::IsMember({"html", "table", "csv", "markdown"}))
      ->capture_default_str();
  verb->callback([arguments] { report(*arguments); });
}

}  // namespace sparsight::cli
