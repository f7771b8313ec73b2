#include "cli/cmd_models.h"

#include <memory>

#include "cli/verbs.h"

namespace sparsight::cli {
namespace {

void add_image_options(CLI::App& verb, ModelsArguments& arguments) {
  verb.add_option("--image", arguments.image, "Channels, height and width of the images")
      ->delimiter(',')
      ->expected(3)
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  verb.add_option("--classes", arguments.classes, "Number of classes")
      ->check(CLI::Range(2, 1000000))
      ->capture_default_str();
}

}  // namespace

void add_models(CLI::App& app) {
  CLI::App* verb = add_verb(app, "models", "List the models and their published sizes, or show the settings of one",
                            "sparsight models list\n"
                            "sparsight models list --image 3,32,32 --classes 10\n"
                            "sparsight models show vit_small_patch16");
  verb->require_subcommand(1);
  const auto listed = std::make_shared<ModelsArguments>(), shown = std::make_shared<ModelsArguments>();
  CLI::App* list = add_verb(*verb, "list", "Print each model and published size: parameters, multiply-adds per image",
                            "sparsight models list\nsparsight models list --format json");
  add_image_options(*list, *listed);
  list->add_option("--format", listed->format, "Format of the list")
      ->check(CLI::IsMember({"text", "markdown", "json"}))
      ->capture_default_str();
  list->callback([listed] { run_models_list(*listed); });
  CLI::App* show = add_verb(*verb, "show", "Print the [model] section of a model or size, its settings and its cost",
                            "sparsight models show vit_base_patch32\nsparsight models show resnet --image 3,64,64");
  show->add_option("name", shown->name, "Name of a model or size: see sparsight models list")
      ->required()
      ->type_name("NAME");
  add_image_options(*show, *shown);
  show->callback([shown] { run_models_show(*shown); });
}

}  // namespace sparsight::cli
