#include "runtime/run/arguments.h"

#include <CLI/CLI.hpp>

#include "cli/output.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/infer.h"

namespace sparsight::run {

std::optional<Arguments> parse_arguments(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Classify images with a frozen model, without torch.", "sparsight-run");
  app.set_version_flag("--version", std::string("sparsight-run ") + sparsight_infer_version());
  app.add_option("model", arguments.model, "Frozen model, made by sparsight export RUN --format sparsight")
      ->required()
      ->type_name("FILE");
  app.add_option("images", arguments.images, "Image files")->required()->type_name("IMAGE");
  app.add_option("--top", arguments.top, "Number of classes to print per image")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->capture_default_str();
  app.add_option("--threads", arguments.threads, "Number of threads (default: as many as there are processors)")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}));
  app.add_option(
         "--keep-experts", arguments.kept_experts,
         "Number of experts that stay in memory; their weights are read when an image chooses them (default: all)")
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max()))
      ->type_name("N");
  app.add_flag("--pack-cache", arguments.pack_cache,
               "Keep the weights packed for this CPU in a file beside the model, which the next start maps");
  app.add_flag("--json", arguments.json, "Print one JSON object per line");
  app.add_flag("--routing", arguments.routing,
               "Print the experts that each layer used; with --json also the choices of each token");
  app.footer("Example:\n  sparsight-run model.sparsight cat.png\n  sparsight-run model.sparsight --json photos/*.jpg");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    app.exit(help_or_version, cli::output(), cli::output());
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    fail_usage(printable(error.what()), "; see sparsight-run --help");
  }
  return arguments;
}

}  // namespace sparsight::run
