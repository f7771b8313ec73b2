// The input is the training state, alone and in the metadata of a checkpoint, or else the whole checkpoint file.
#include <ATen/ops/ones.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/json_text.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/optim/adam.h"
#include "sparsight/train/training_progress.h"
#include "tests/fuzz/fuzz.h"

using namespace sparsight;

namespace {

void continue_from(const Json& state) {
  const TrainingProgress progress = training_progress_from(state, 1000);
  progress.window.means.headline();
  Json line{{"kind", "train"}, {"step", progress.step}};
  progress.window.means.write_to(line);
  training_progress_from(to_json(progress), 1000);
}

// One step of Adam on a weight [2,3] and a bias [3], from the state in the file.
void optimize_from(const NamedTensors& state) {
  const at::Tensor weight = at::ones({2, 3}), bias = at::ones({3});
  weight.mutable_grad() = at::ones({2, 3});
  bias.mutable_grad() = at::ones({3});
  Adam optimizer({}, /*decoupled=*/true, {{"weight", weight}, {"bias", bias}});
  optimizer.load_state(state);
  optimizer.step(0.1);
}

std::string header(const std::string& state) {
  const Json metadata{{"format", "sparsight-checkpoint"}, {"version", "2"}, {"config", "{}"}, {"state", state}};
  const std::string json = Json{{"__metadata__", metadata}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(json.size() >> 8 * i);
  return bytes + json;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(as_text(data, size));
  if (const auto state = try_parse_json_object(text)) try_reader([&] { continue_from(*state); });
  const std::string bytes = text.starts_with("{") ? header(text) : text;
  return try_reader([&] {
    const std::string path = as_file(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    const Checkpoint checkpoint = read_checkpoint(path);
    try_reader([&] { continue_from(checkpoint.state); });
    optimize_from(tensors_under(kOptimizerTensors, checkpoint.training));
  });
}
