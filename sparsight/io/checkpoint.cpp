#include "sparsight/io/checkpoint.h"

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_text.h"
#include "sparsight/io/checkpoint_parts.h"
#include "sparsight/io/sharded_weights.h"

namespace sparsight {
namespace {

const std::string kCheckpointFormat = "sparsight-checkpoint";
const std::string kTraining = "training/";

// Digits only, so that a damaged string is never read as an old version.
int parse_version(const std::string& text) {
  if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != std::string::npos) return 0;
  return std::stoi(text);
}

std::string metadata_text(const TensorFile& file, const std::string& key) {
  const auto found = file.metadata.find(key);
  return found == file.metadata.end() ? "" : found->second;
}

Json metadata_object(const TensorFile& file, const std::string& key, const std::string& path) {
  auto object = try_parse_json_object(metadata_text(file, key));
  if (!object) fail(path, ": the checkpoint's ", key, " is missing or damaged");
  return std::move(*object);
}

}  // namespace

bool is_training_name(const std::string& name) { return name.rfind(kTraining, 0) == 0; }

NamedTensors tensors_under(std::string_view prefix, const NamedTensors& tensors) {
  NamedTensors found;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with(prefix)) found.emplace_back(name.substr(prefix.size()), tensor);
  return found;
}

NamedTensors weights_for_use(const Checkpoint& checkpoint) {
  NamedTensors average = tensors_under(kAverageTensors, checkpoint.training);
  return average.empty() ? checkpoint.weights : average;
}

TensorFile checkpoint_file(const Checkpoint& checkpoint) {
  TensorFile file;
  for (const auto& [name, tensor] : checkpoint.weights) {
    SPARSIGHT_CHECK(!is_training_name(name));
    file.tensors.emplace_back(name, tensor);
  }
  for (const auto& [name, tensor] : checkpoint.training) file.tensors.emplace_back(kTraining + name, tensor);
  const auto text = [](const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); };
  file.metadata = {{"format", kCheckpointFormat},
                   {"version", std::to_string(kCheckpointVersion)},
                   {"config", text(checkpoint.config)},
                   {"state", text(checkpoint.state)}};
  return file;
}

std::map<std::string, std::string> read_checkpoint_metadata(const std::string& path) {
  return is_sharded(path) ? read_shard_index(path).metadata : read_safetensors_metadata(path);
}

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  write_safetensors(path, checkpoint_file(checkpoint));
}

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint, const TensorSource& source) {
  write_safetensors(path, checkpoint_file(checkpoint), source);
}

Checkpoint read_checkpoint(const std::string& path, CheckpointParts parts) {
  return read_checkpoint(path, parts, [](const std::string&, const at::Tensor& tensor) { return tensor; });
}

Checkpoint read_checkpoint(const std::string& path, CheckpointParts parts, const TensorCut& cut) {
  const auto wanted = [&](const std::string& name) {
    return parts == CheckpointParts::kAll || !is_training_name(name) ||
           name.substr(kTraining.size()).starts_with(kAverageTensors);
  };
  const TensorCut cut_plain = [&](const std::string& name, const at::Tensor& tensor) {
    return cut(is_training_name(name) ? name.substr(kTraining.size()) : name, tensor);
  };
  TensorFile file =
      is_sharded(path) ? ShardedWeights(path).read_all(wanted, cut_plain) : read_safetensors(path, wanted, cut_plain);
  if (metadata_text(file, "format") != kCheckpointFormat)
    fail(path, " holds tensors but is not a sparsight checkpoint; use --init-from for weights alone");
  const int version = parse_version(metadata_text(file, "version"));
  if (version < 1) fail(path, ": the checkpoint's version \"", metadata_text(file, "version"), "\" is damaged");
  if (version > kCheckpointVersion)
    fail(path, " is a checkpoint of version ", version, ", newer than the ", kCheckpointVersion,
         " that this program reads; update sparsight");
  Checkpoint checkpoint;
  checkpoint.config = metadata_object(file, "config", path);
  checkpoint.state = metadata_object(file, "state", path);
  for (auto& [name, tensor] : file.tensors) {
    if (is_training_name(name))
      checkpoint.training.emplace_back(name.substr(kTraining.size()), std::move(tensor));
    else
      checkpoint.weights.emplace_back(name, std::move(tensor));
  }
  return checkpoint;
}

}  // namespace sparsight
