// A training run small enough for a test: glyphs and a two-block ViT with one MoE layer, about two seconds.
#pragma once

#include <string>
#include <vector>

#include "tests/support/program.h"

namespace sparsight::testing {

inline const char* const kTinyConfig = R"(
[run]
seed = 3
threads = 1

[data]
name = "glyphs"
classes = 4
side = 16
train = 256
validation = 64
test = 64

[transforms]
train = [{op = "random_crop", size = 16, padding = 2}, {op = "normalize", mean = [0.5], std = [0.5]}]
eval = [{op = "normalize", mean = [0.5], std = [0.5]}]

[loader]
batch = 32
workers = 1

[model]
name = "vit"
size = "custom"
width = 32
depth = 2
heads = 2
patch = 4
drop_path = 0.1

[moe]
blocks = [-1]
experts = 4

[train]
epochs = 4
ema_decay = 0.9
clip_norm = 1
log_every = 3
checkpoint_every = 2

[optimizer]
name = "adamw"
lr = 0.002
)";

// Writes the configuration and returns its path.
inline std::string tiny_config(const TemporaryFolder& folder) { return folder.write("tiny.toml", kTinyConfig); }

// Trains on the tiny configuration into `run`.
inline ProgramResult train_tiny(const TemporaryFolder& folder, const std::string& run,
                                std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"train", tiny_config(folder), "--out", run};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments);
}

}  // namespace sparsight::testing
