#include "sparsight/infer/model_path.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/options.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/shard_index.h"

namespace sparsight {
namespace {

bool looks_like_model(const std::string& path) {
  for (const char* extension : {".safetensors", ".sparsight", ".pt", ".pth", ".th", ".bin"})
    if (path.ends_with(extension)) return true;
  std::error_code ignored;
  return is_sharded(path) || std::filesystem::is_directory(std::filesystem::path(path) / "checkpoints", ignored);
}

}  // namespace

void check_model_exists(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    fail(printable(path),
         ": no such file or folder; name a run folder, a checkpoint, a frozen model or a file of weights");
}

// Writes the path as TOML, whose text is UTF-8; a path that is no UTF-8 is taken as it is.
std::string data_root_override(const std::string& folder) {
  return "data.root=" + (is_utf8(folder) ? Json(folder).dump() : folder);
}

void check_model_is_first(const std::string& model, const std::vector<std::string>& images) {
  if (looks_like_model(model)) return;
  for (const std::string& image : images)
    if (looks_like_model(image))
      fail_usage("the model comes first, then the images: ", printable(image), " is a model, ", printable(model),
                 " is not; exchange them");
}

}  // namespace sparsight
