#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/cmd_weights.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/infer/convert_weights.h"
#include "sparsight/infer/publish_run.h"
#include "sparsight/io/part_files.h"
#include "sparsight/io/sharded_weights.h"
#include "sparsight/report/format.h"

namespace sparsight::cli {
namespace {

namespace fs = std::filesystem;

// A run's best weights, or the last ones if it has no best; "" where it has none.
std::string weights_of_run(const std::string& path) {
  std::error_code ignored;
  for (const char* const name : {"best", "last"}) {
    const std::string file = index_or_file(path + "/checkpoints/" + name + ".safetensors");
    if (fs::exists(file, ignored)) return file;
  }
  return "";
}

std::string weights_file(const std::string& path) {
  std::error_code ignored;
  const std::string file = fs::is_directory(path, ignored) ? weights_of_run(path) : path;
  if (file.empty()) fail(printable(path), " is no run with a checkpoint; name one, or a safetensors file");
  return file;
}

Existing existing_file(bool overwrite) { return overwrite ? Existing::replace : Existing::keep_equal; }

}  // namespace

void run_weights_shard(const WeightsShardArguments& arguments) {
  begin_interruptible_work();
  const std::string file = is_sharded(arguments.weights) ? arguments.weights : weights_file(arguments.weights);
  if (is_sharded(file))
    fail_usage(printable(file), " has its weights in several files already; sparsight weights merge makes one of them");
  shard_weights(file, arguments.out, arguments.files);
  output() << printable(file) << ": " << arguments.files << (arguments.files == 1 ? " file" : " files") << " and "
           << kShardIndex << " in " << printable(arguments.out) << "\n";
}

void run_weights_merge(const WeightsMergeArguments& arguments) {
  begin_interruptible_work();
  const std::string from = is_sharded(arguments.folder) ? arguments.folder : weights_of_run(arguments.folder);
  if (!is_sharded(from))
    fail(printable(arguments.folder), " has no ", kShardIndex,
         "; name the folder of weights shard, or a run whose checkpoints are in parts");
  merge_weights(from, arguments.out, existing_file(arguments.overwrite));
  output() << printable(arguments.folder) << ": merged into " << printable(arguments.out) << "\n";
}

void run_weights_convert(const WeightsConvertArguments& arguments) {
  begin_interruptible_work();
  const std::string from = is_sharded(arguments.weights) ? arguments.weights : weights_file(arguments.weights);
  const ConvertedWeights done =
      convert_weights({from, arguments.library, arguments.out, existing_file(arguments.overwrite)});
  output() << printable(from) << ": " << done.tensors << " tensors under the names of " << arguments.library << " in "
           << printable(arguments.out) << "\n";
  if (!done.pixels.empty())
    output() << "the model takes pixels in 0..1 that are normalised by " << to_text(done.pixels)
             << ", which the file does not say\n";
}

void run_weights_publish(const WeightsPublishArguments& arguments) {
  begin_interruptible_work();
  const Json result =
      publish_run({arguments.run, arguments.checkpoint, arguments.out, arguments.name, arguments.license});
  output() << result["out"].get<std::string>() << ": model.safetensors (" << grouped(result["bytes"].get<int64_t>())
           << " bytes), config.json, config.toml, README.md\n";
}

}  // namespace sparsight::cli
