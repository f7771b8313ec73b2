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
      "sparsight report runs/moe --baseline runs/dense\n"
      "sparsight report runs/moe runs/dense --out both.html");
  verb->add_option("run", arguments->runs, "Run folder; several are shown beside each other in one page")
      ->required()
      ->type_name("RUN");
  verb->add_option("--out", arguments->out,
                   "File to write (default: RUN/report.html for html, comparison.html for several runs, else standard "
                   "output)")
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
    const bool several = arguments->runs.size() > 1;
    if (several && !arguments->baselines.empty())
      fail_usage("several runs are compared with each other; leave out --baseline");
    if (several && arguments->format == "csv")
      fail_usage("several runs go with --format html, table or markdown, got csv");
    run_report(*arguments);
  });
}

}  // namespace sparsight::cli
