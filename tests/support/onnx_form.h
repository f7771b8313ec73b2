// A program as an ONNX file beside what it answers, for tests/engine/onnx_runtime_test.py to compare.
#pragma once

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sparsight/engine/onnx/onnx_export.h"
#include "sparsight/kernels/threads/own_threads.h"
#include "tests/support/dequantised.h"

namespace sparsight::test {

inline std::string onnx_bytes(const engine::Program& program,
                              engine::OnnxExperts experts = engine::OnnxExperts::gathered) {
  std::string bytes;
  const auto append = [&](const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); };
  engine::write_onnx(program, append, experts);
  return bytes;
}

template <class T>
std::vector<T> as_vector(const engine::Array<T>& values) {
  return {values.data(), values.data() + values.size()};
}

// The kept choices, in the order of the ranks where tokens choose.
inline Json kept_choices(const engine::Routing& routing, const std::string& layer) {
  Json json{{"layer", layer}, {"tokens", routing.tokens}, {"ranked", routing.per_token > 0}};
  if (routing.mixes_tokens()) {
    json["dispatch"] = as_vector(routing.scores), json["combine"] = as_vector(routing.combine);
    return json;
  }
  for (const char* name : {"token", "expert", "gate"}) json[name] = Json::array();
  for (int64_t a = 0; a < routing.assignments(); ++a) {
    if (!routing.kept[a]) continue;
    json["token"].push_back(routing.token[a]);
    json["expert"].push_back(routing.expert[a]);
    json["gate"].push_back(routing.gate[a]);
  }
  return json;
}

inline Json answer_json(const engine::Program& program, const std::vector<float>& pixels, int64_t images) {
  engine::Session session;
  cpu::OwnThreads threads(1);
  const engine::Answer answer = program.run(session, threads, {.pixels = pixels.data(), .images = images});
  Json json{{"images", images}, {"pixels", pixels}};
  json["logits"] = std::vector<float>(answer.logits, answer.logits + images * program.classes());
  json["routings"] = Json::array();
  for (size_t r = 0; r < answer.routings.size(); ++r)
    json["routings"].push_back(kept_choices(answer.routings[r], program.routes()[r]->layer()));
  return json;
}

// Writes into the folder NAME.onnx; NAME.masked.onnx, made of the program after it was frozen and read; and NAME.json
// with the answers for one image and for five: in int8 those of the fp32 numbers that the weights stand for, as files
// compute. pixels: of five images. type: "fp32", "bf16" or "int8".
inline void write_onnx_form(const std::string& folder, const std::string& name, const engine::Program& program,
                            const std::vector<float>& pixels, const std::string& type) {
  const std::string path = folder + "/" + name;
  std::ofstream(path + ".onnx", std::ios::binary) << onnx_bytes(program);
  std::ofstream(path + ".masked.onnx", std::ios::binary)
      << onnx_bytes(read_frozen(frozen_bytes(program)), engine::OnnxExperts::masked);
  Json json{{"classes", program.classes()}, {"answers", Json::array()}};
  const auto add_answers = [&](const engine::Program& answering) {
    json["answers"].push_back(answer_json(answering, pixels, 5));
    json["answers"].push_back(
        answer_json(answering, std::vector(pixels.begin(), pixels.begin() + pixels.size() / 5), 1));
  };
  if (type == "int8")
    add_answers(dequantised(program));
  else
    add_answers(program);
  std::ofstream(path + ".json") << json;
}

// The folder that the comparison asks for, or "".
inline std::string onnx_folder() {
  const char* const folder = std::getenv("SPARSIGHT_ONNX_FORMS");
  return folder ? folder : "";
}

}  // namespace sparsight::test
