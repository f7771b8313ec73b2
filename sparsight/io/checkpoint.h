// A checkpoint is one safetensors file: the model's weights under their own names, so that any program can read them;
// the rest of the training state under "training/..."; and format, version, config and state in the metadata. Divided
// into several files (sharded_weights.h) it is read by their folder or index.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "sparsight/core/options.h"
#include "sparsight/io/safetensors.h"

namespace sparsight {

// 2: the weights include the model's pixel mean and std. 1: only the configuration has them.
inline constexpr int kCheckpointVersion = 2;

struct Checkpoint {
  NamedTensors weights;   // parameters and buffers of the model
  NamedTensors training;  // optimiser, averaged weights ...; names without the prefix "training/"
  Json config;            // resolved configuration of the run
  Json state;             // step, epoch, description of the data, ...; NaN and infinity become null
};

// Names in `training` begin with one of these.
inline constexpr std::string_view kOptimizerTensors = "optimizer/", kAverageTensors = "ema/";

// The tensors whose names begin with `prefix`, without it.
NamedTensors tensors_under(std::string_view prefix, const NamedTensors& tensors);

// The weights that evaluation takes: the averaged ones where the checkpoint has them, else those of the model.
NamedTensors weights_for_use(const Checkpoint& checkpoint);

// Written to a temporary file and renamed: a process killed while it writes leaves the existing file intact.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

// The file that it writes.
TensorFile checkpoint_file(const Checkpoint& checkpoint);

// The metadata of a checkpoint or of another safetensors file, in one file or several.
std::map<std::string, std::string> read_checkpoint_metadata(const std::string& path);

// Whether a tensor of a checkpoint file belongs to the training state and not to the model.
bool is_training_name(const std::string& name);

enum class CheckpointParts { kAll, kInference };  // kInference reads only the averaged weights into `training`

// Raises Error if the file is damaged, not a checkpoint, or of a newer version.
Checkpoint read_checkpoint(const std::string& path, CheckpointParts parts = CheckpointParts::kAll);

}  // namespace sparsight
