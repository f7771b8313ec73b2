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
      "sparsight report runs/moe runs/dense --out both.html\n"
      "sparsight report runs/demo --format robustbench --field venue=\"ICLR 2026\" --out Moe2026.json");
  verb->add_option("run", arguments->runs,
                   "Run folder; several are shown beside each other in one page. With --format robustbench also the "
                   "folder of an AutoAttack")
      ->required()
      ->type_name("RUN");
  verb->add_option("--out", arguments->out,
                   "File to write (default: RUN/report.html for html, comparison.html for several runs, else standard "
                   "output)")
      ->type_name("FILE");
  verb->add_option(
          "--format", arguments->format,
          "Format: html, table, csv or markdown; robustbench: the run's AutoAttack as an entry of RobustBench's "
          "leaderboards")
      ->check(CLI::IsMember({"html", "table", "csv", "markdown", "robustbench"}))
      ->capture_default_str();
  verb->add_option("--baseline", arguments->baselines,
                   "Run to compare with: adds a table of accuracy, size, cost and time (repeatable)")
      ->type_name("RUN")
      ->allow_extra_args(false);
  verb->add_option("--field", arguments->fields,
                   "With --format robustbench: a field of the entry, such as link, name, authors or architecture "
                   "(repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb->add_flag("--any-eps", arguments->any_epsilon,
                 "With --format robustbench: also at an epsilon that no leaderboard has");
  verb->callback([arguments] {
    const bool robustbench = arguments->format == "robustbench", several = arguments->runs.size() > 1;
    if ((arguments->format == "csv" || robustbench) && !arguments->baselines.empty())
      fail_usage("--baseline goes with --format html, table or markdown, got ", arguments->format);
    if (several && !arguments->baselines.empty())
      fail_usage("several runs are compared with each other; leave out --baseline");
    if (several && (arguments->format == "csv" || robustbench))
      fail_usage("several runs go with --format html, table or markdown, got ", arguments->format);
    if (!robustbench && (!arguments->fields.empty() || arguments->any_epsilon))
      fail_usage("--field and --any-eps go with --format robustbench, got ", arguments->format);
    run_report(*arguments);
  });
}

}  // namespace sparsight::cli
