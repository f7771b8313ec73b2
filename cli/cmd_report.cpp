#include "cli/cmd_report.h"

#include <memory>

#include "cli/verbs.h"
#include "sparsight/core/error.h"

namespace sparsight::cli {

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
  verb->callback([arguments] {
    if (arguments->format == "csv" && !arguments->baselines.empty())
      fail_usage("--baseline goes with --format html, table or markdown, got csv");
    run_report(*arguments);
  });
}

}  // namespace sparsight::cli
