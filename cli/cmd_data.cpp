#include "cli/cmd_data.h"

#include <memory>

#include "cli/verbs.h"

namespace sparsight::cli {
namespace {

void declare_set(CLI::App* verb, SetArguments& set, const std::string& help) {
  verb->add_option("set", set.what, help)->type_name("SET|PATH")->required();
  verb->add_option("--set", set.overrides, "A setting of the dataset, as in [data]; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_inspect_data(CLI::App& app) {
  const auto arguments = std::make_shared<SetArguments>();
  CLI::App* verb = add_verb(app, "inspect", "Show counts, classes, domains and image sizes",
                            "sparsight data inspect mnist\n"
                            "sparsight data inspect my/photos\n"
                            "sparsight data inspect cifar100 --set labels=coarse\n"
                            "sparsight data inspect picture.png");
  declare_set(verb, *arguments, "Name of a dataset, or a folder, manifest or single file");
  verb->callback([arguments] { run_data_inspect(*arguments); });
}

void add_verify(CLI::App& app) {
  const auto arguments = std::make_shared<SetArguments>();
  CLI::App* verb = add_verb(app, "verify", "Check every file and every image, and list all problems",
                            "sparsight data verify mnist\n"
                            "sparsight data verify my/photos");
  declare_set(verb, *arguments, "Name of a dataset, or a folder, manifest or single file");
  verb->callback([arguments] { run_data_verify(*arguments); });
}

void add_make(CLI::App& app) {
  const auto arguments = std::make_shared<DataMakeArguments>();
  CLI::App* verb = add_verb(app, "make", "Write a dataset as PNG files (default: glyphs)",
                            "sparsight data make my/glyphs --set side=64 --set train=1000\n"
                            "sparsight data make my/glyph_domains --layout domain");
  verb->add_option("folder", arguments->folder, "Folder to create; must not exist")->type_name("FOLDER")->required();
  verb->add_option("--from", arguments->set.what, "Dataset to write: a name or a path")
      ->type_name("SET|PATH")
      ->capture_default_str();
  verb->add_option("--layout", arguments->layout, "class: train/class/image ...; domain: domain/class/image")
      ->check(CLI::IsMember({"class", "domain"}))
      ->capture_default_str();
  verb->add_option("--set", arguments->set.overrides, "A setting of the dataset, as in [data]; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb->callback([arguments] { run_data_make(*arguments); });
}

void add_shard(CLI::App& app) {
  const auto arguments = std::make_shared<DataShardArguments>();
  CLI::App* verb = add_verb(app, "shard", "Write the image files of a dataset as tar shards (WebDataset)",
                            "sparsight data shard my/photos --out my/shards\n"
                            "sparsight data shard my/photos --out my/shards --shard-size 500MB --split train");
  declare_set(verb, arguments->set, "Name of a dataset of image files, or a folder or manifest");
  verb->add_option("--out", arguments->folder, "Folder for the shards; if it has some of them, the command goes on")
      ->type_name("FOLDER")
      ->required();
  verb->add_option("--shard-size", arguments->size, "Images of a shard, or its size (500MB, 2GB)")
      ->type_name("N|SIZE")
      ->capture_default_str();
  verb->add_option("--split", arguments->splits, "Split to write; may be repeated (default: all)")
      ->check(CLI::IsMember({"train", "validation", "test"}))
      ->allow_extra_args(false);
  verb->add_option("--order", arguments->order, "Order of the images: shuffled by --seed, or that of the dataset")
      ->check(CLI::IsMember({"shuffle", "sequential"}))
      ->capture_default_str();
  verb->add_option("--seed", arguments->seed, "Seed of the order and of a validation split")->capture_default_str();
  verb->callback([arguments] { run_data_shard(*arguments); });
}

void add_fetch(CLI::App& app) {
  const auto arguments = std::make_shared<DataFetchArguments>();
  CLI::App* verb = add_verb(app, "fetch",
                            "Download a published dataset or pretrained weights from the official URLs and verify them",
                            "sparsight data fetch mnist\n"
                            "sparsight data fetch cifar10 --to /big/disk/cifar10\n"
                            "sparsight data fetch mnist --from ~/Downloads/mnist\n"
                            "sparsight data fetch deit_small");
  verb->add_option("name", arguments->name, "Dataset or weights (see sparsight data list)")
      ->type_name("NAME")
      ->required();
  verb->add_option("--to", arguments->to,
                   "Folder for the files (default: NAME, of weights weights/NAME, in SPARSIGHT_DATA or data/)")
      ->type_name("FOLDER");
  verb->add_option("--mirror", arguments->mirror, "URL of a folder with the files, instead of the official one")
      ->type_name("URL");
  verb->add_option("--from", arguments->from, "Take the files from this folder instead of downloading them")
      ->type_name("FOLDER");
  verb->callback([arguments] { run_data_fetch(*arguments); });
}

void add_where(CLI::App& app) {
  const auto name = std::make_shared<std::string>();
  CLI::App* verb = add_verb(app, "where", "Show where a dataset's files go, and whether they are there",
                            "sparsight data where mnist");
  verb->add_option("name", *name, "Dataset (default: the folder of each)")->type_name("NAME");
  verb->callback([name] { run_data_where(*name); });
}

}  // namespace

void add_data(CLI::App& app) {
  CLI::App* verb = add_verb(app, "data", "Inspect, verify, generate and download datasets",
                            "sparsight data list\n"
                            "sparsight data inspect glyphs\n"
                            "sparsight data fetch mnist");
  verb->require_subcommand(1);
  add_verb(*verb, "list", "List the datasets, their licences and what they need", "sparsight data list")
      ->callback(run_data_list);
  add_inspect_data(*verb);
  add_verify(*verb);
  add_make(*verb);
  add_shard(*verb);
  add_fetch(*verb);
  add_where(*verb);
}

}  // namespace sparsight::cli
