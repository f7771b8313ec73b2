#include "cli/cmd_weights.h"

#include <memory>

#include "cli/model_arguments.h"
#include "cli/verbs.h"

namespace sparsight::cli {
namespace {

void add_weights_shard(CLI::App& weights) {
  const auto arguments = std::make_shared<WeightsShardArguments>();
  CLI::App* verb = add_verb(weights, "shard", "Divide a file of weights into several, the experts shared out over them",
                            "sparsight weights shard runs/demo --files 2 --out demo_shards\n"
                            "sparsight weights shard runs/demo/checkpoints/best.safetensors --files 8 --out shards");
  verb->add_option("weights", arguments->weights, "Run folder (its best weights), checkpoint or safetensors file")
      ->required()
      ->type_name("WEIGHTS");
  verb->add_option("--files", arguments->files, "Number of files")
      ->check(CLI::Range(int64_t{1}, int64_t{99'999}))
      ->capture_default_str()
      ->type_name("N");
  verb->add_option("--out", arguments->out, "Folder to make for them and their index")->required()->type_name("FOLDER");
  verb->callback([arguments] { run_weights_shard(*arguments); });
}

void add_weights_merge(CLI::App& weights) {
  const auto arguments = std::make_shared<WeightsMergeArguments>();
  CLI::App* verb = add_verb(weights, "merge", "Put the files of `weights shard` together into one",
                            "sparsight weights merge demo_shards --out demo.safetensors");
  verb->add_option("folder", arguments->folder,
                   "Folder with model.safetensors.index.json, another index, or a run whose checkpoints are in parts")
      ->required()
      ->type_name("FOLDER");
  verb->add_option("--out", arguments->out, "File to write")->required()->type_name("FILE");
  verb->add_flag("--overwrite", arguments->overwrite, "Replace an existing file");
  verb->callback([arguments] { run_weights_merge(*arguments); });
}

void add_weights_convert(CLI::App& weights) {
  const auto arguments = std::make_shared<WeightsConvertArguments>();
  CLI::App* verb = add_verb(weights, "convert", "Write weights under the names of another library",
                            "sparsight weights convert runs/dense --to timm --out dense.safetensors\n"
                            "sparsight weights convert vit_b_16.pth --to huggingface --out model.safetensors");
  verb->add_option("weights", arguments->weights,
                   "Run folder (its best weights), checkpoint, or file of weights of any of the libraries")
      ->required()
      ->type_name("WEIGHTS");
  verb->add_option("--to", arguments->library,
                   "Library: timm, torchvision, huggingface (names of its files), transformers-5 (names of "
                   "state_dict() in version 5) or domainbed")
      ->required()
      ->type_name("LIBRARY");
  verb->add_option("--out", arguments->out, "Safetensors file to write")->required()->type_name("FILE");
  verb->add_flag("--overwrite", arguments->overwrite, "Replace an existing file");
  verb->callback([arguments] { run_weights_convert(*arguments); });
}

void add_weights_publish(CLI::App& weights) {
  const auto arguments = std::make_shared<WeightsPublishArguments>();
  CLI::App* verb =
      add_verb(weights, "publish", "Write a trained model with a model card, as Hugging Face's hub lays models out",
               "sparsight weights publish runs/demo --out demo_hub\n"
               "sparsight weights publish runs/demo --name demo-moe --license apache-2.0 --out demo_hub");
  verb->add_option("run", arguments->run, "Run folder")->required()->type_name("RUN");
  verb->add_option("--out", arguments->out, "Folder to make: model.safetensors, config.json, config.toml, README.md")
      ->required()
      ->type_name("FOLDER");
  verb->add_option("--name", arguments->name, "Name of the model (default: that of the run's folder)")
      ->type_name("NAME");
  verb->add_option("--license", arguments->license, "License of the weights, as the hub names it")->type_name("NAME");
  add_checkpoint_option(*verb, arguments->checkpoint);
  verb->callback([arguments] { run_weights_publish(*arguments); });
}

}  // namespace

void add_weights(CLI::App& app) {
  CLI::App* verb = add_verb(app, "weights",
                            "Divide weights into files and merge them, rename them for other libraries, publish them",
                            "sparsight weights shard runs/demo --files 2 --out demo_shards\n"
                            "sparsight weights merge demo_shards --out demo.safetensors\n"
                            "sparsight weights convert runs/dense --to timm --out dense.safetensors\n"
                            "sparsight weights publish runs/demo --out demo_hub");
  verb->require_subcommand(1);
  add_weights_shard(*verb);
  add_weights_merge(*verb);
  add_weights_convert(*verb);
  add_weights_publish(*verb);
}

}  // namespace sparsight::cli
