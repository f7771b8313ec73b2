// Records of three images, as an evaluation writes them.
#pragma once

#include <string>
#include <vector>

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <nlohmann/json.hpp>

#include "sparsight/eval/record_writer.h"

namespace sparsight::test {

inline at::Tensor longs(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

struct RecordedImages {
  std::vector<std::string> ids = {"test/0", "caf\xC3\xA9.png", ""};
  std::vector<int64_t> labels = {1, 0, 2}, predictions = {1, 2, 2};
  std::vector<std::string> classes = {"a", "b", "c"};
  std::string data = "glyphs";
  Json settings = {{"data", {{"name", "glyphs"}, {"seed", 1}, {"root", "/here"}}}};
};

inline Batch recorded_batch(const RecordedImages& images, size_t begin, size_t end) {
  Batch batch;
  batch.ids = {images.ids.begin() + static_cast<std::ptrdiff_t>(begin),
               images.ids.begin() + static_cast<std::ptrdiff_t>(end)};
  batch.labels = longs(images.labels).slice(0, static_cast<int64_t>(begin), static_cast<int64_t>(end));
  batch.domains = at::zeros_like(batch.labels);
  return batch;
}

// Logits that are 1 at the prediction and 0 elsewhere.
inline at::Tensor make_logits(const RecordedImages& images, size_t begin, size_t end) {
  at::Tensor logits = at::zeros({static_cast<int64_t>(end - begin), std::ssize(images.classes)});
  for (size_t i = begin; i < end; ++i) logits[static_cast<int64_t>(i - begin)][images.predictions[i]] = 1;
  return logits;
}

inline RecordSource make_source(const RecordedImages& images) {
  RecordSource source;
  source.data.name = images.data;
  source.data.classes = images.classes;
  source.data.domains = {"all"};
  source.split = "test";
  source.checkpoint = "runs/a/checkpoints/best.safetensors";
  source.step = 7;
  source.weights = "ema";
  source.settings = images.settings;
  return source;
}

// Without experts.
inline void write_records(const std::string& folder, const RecordedImages& images) {
  RecordWriter writer(folder);
  ModelOutput output;
  output.logits = make_logits(images, 0, images.ids.size());
  writer.observe(recorded_batch(images, 0, images.ids.size()), output);
  writer.commit(make_source(images));
}

}  // namespace sparsight::test
