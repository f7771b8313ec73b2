#include "sparsight/infer/convert_weights.h"

#include <iterator>
#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/infer/bare_weights.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/safetensors_parts.h"
#include "sparsight/io/weight_names.h"
#include "sparsight/models/normalize.h"

namespace sparsight {
namespace {

// A checkpoint gives the weights that evaluation reports on: the average, if it has one, not the plain ones beside it.
NamedTensors weights_to_convert(const std::string& path) {
  if (is_bare_weights(path)) return read_weights(path);
  return weights_for_use(read_checkpoint(path, CheckpointParts::kInference));
}

}  // namespace

ConvertedWeights convert_weights(const ConvertRequest& request) {
  NamedTensors tensors = weights_to_convert(request.from);
  ConvertedWeights done;
  done.pixels = find_pixel_statistics(tensors);
  std::erase_if(tensors, [](const auto& entry) { return is_pixel_statistics(entry.first); });
  NamedTensors renamed;
  try {
    renamed = with_names_of(request.library, tensors);
  } catch (const UsageError& error) {
    fail_usage(printable(request.from), ": ", error.what());
  } catch (const Error& error) {
    fail(printable(request.from), ": ", error.what());
  }
  done.tensors = std::ssize(renamed);
  const TensorFile file{std::move(renamed), {{"format", "pt"}}};  // transformers refuses files without it
  write_safetensors(
      request.to, file, [&](size_t i) { return file.tensors[i].second; }, request.existing);
  return done;
}

}  // namespace sparsight
