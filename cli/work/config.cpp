#include "cli/catalogue.h"
#include "cli/cmd_config.h"
#include "cli/output.h"
#include "cli/work/read_config.h"
#include "sparsight/attacks/register_attacks.h"
#include "sparsight/core/config_text.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/log.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/models/model_cost.h"
#include "sparsight/report/run/cost_table.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/training_setup.h"

namespace sparsight::cli {

void run_config_show(const ConfigArguments& arguments) {
  const Config config = with_presets(read_config(arguments), config_sections());
  output() << toml_with_origins(resolve(config, config_sections()), config);
}

void run_config_check(const ConfigArguments& arguments) {
  const Json config = resolved_config(arguments);
  // `fresh` initialises or reads the weights, which is worth checking only if they come from a file.
  const bool reads_weights = !config.at("train").at("init_from").get<std::string>().empty();
  make_training_setup(config, /*fresh=*/reads_weights);
  log_info("the configuration is valid");
}

void run_config_cost(const ConfigCostArguments& arguments) {
  if (!arguments.ranks.empty()) return run_ranks_cost(arguments);
  const std::vector<int64_t>& image = arguments.image;
  const ImageShape shape{image[0], image[1], image[2], arguments.classes};
  const Json config = resolved_config(arguments.config);
  const CostOptions options{cost_convention(arguments.flops), config.at("loader").at("batch").get<int64_t>()};
  output() << cost_table(model_cost(config, shape, options), options.convention);
}

void run_config_catalogue() { output() << json_text(catalogue(), 1) << "\n"; }

void run_config_docs(const std::vector<std::string>& pages) {
  std::vector<Section> sections = config_sections();
  if (pages.empty()) output() << configuration_reference(sections);
  sections.push_back(named_section("attack", "An adversarial attack.", "pgd", attacks()));  // of `sparsight attack`
  for (const std::string& page : pages)
    write_file_atomically(page, with_tables(read_file(page, kMaxTextBytes), sections));
}

}  // namespace sparsight::cli
