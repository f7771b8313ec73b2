#include <filesystem>

#include "cli/cmd_weights.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/io/sharded_weights.h"

namespace sparsight::cli {
namespace {

namespace fs = std::filesystem;

// A run's best weights, or the last ones if it has no best.
std::string weights_file(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  for (const char* const name : {"best", "last"})
    if (const std::string file = path + "/checkpoints/" + name + ".safetensors"; fs::exists(file, ignored)) return file;
  fail(printable(path), " is no run with a checkpoint; name one, or a safetensors file");
}

}  // namespace

void run_weights_shard(const WeightsShardArguments& arguments) {
  begin_interruptible_work();
  const std::string file = weights_file(arguments.weights);
  shard_weights(file, arguments.out, arguments.files);
  output() << printable(file) << ": " << arguments.files << (arguments.files == 1 ? " file" : " files") << " and "
           << kShardIndex << " in " << printable(arguments.out) << "\n";
}

void run_weights_merge(const WeightsMergeArguments& arguments) {
  begin_interruptible_work();
  std::error_code ignored;
  if (!arguments.overwrite && fs::exists(arguments.out, ignored))
    fail(printable(arguments.out), " exists; choose another --out, or replace it with --overwrite");
  merge_weights(arguments.folder, arguments.out);
  output() << printable(arguments.folder) << ": merged into " << printable(arguments.out) << "\n";
}

}  // namespace sparsight::cli
