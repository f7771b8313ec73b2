// A checkpoint is one safetensors file: the model's weights under their own names, so that any program can read them,
// the rest of the training state under "training/...", and in the metadata format, version, config and state.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "sparsight/core/options.h"
#include "sparsight/io/safetensors.h"

namespace sparsight {

// 2: a model's weights include what it normalises pixels by. 1: the configuration alone says it.
inline constexpr int kCheckpointVersion = 2;

struct Checkpoint {
  NamedTensors weights;   // parameters and buffers of the model
  NamedTensors training;  // optimiser, averaged weights ...; names without the "training/" in front
  Json config;            // resolved configuration of the run
  Json state;             // step, epoch, description of the data, ...; NaN and infinity become null
};

// Names in `training` begin with one of these.
inline constexpr std::string_view kOptimizerTensors = "optimizer/", kAverageTensors = "ema/";

// The tensors whose names begin with `prefix`, without it.
NamedTensors tensors_under(std::string_view prefix, const NamedTensors& tensors);

// Written aside and renamed: a process killed while it writes leaves the earlier file whole.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

// Whether a tensor of a checkpoint file belongs to the training state and not to the model.
bool is_training_name(const std::string& name);

enum class CheckpointParts { kAll, kWeights };  // kWeights leaves `training` empty

// Raises Error where the file is damaged, no checkpoint, or of a newer version.
Checkpoint read_checkpoint(const std::string& path, CheckpointParts parts = CheckpointParts::kAll);

}  // namespace sparsight
