#include "sparsight/engine/onnx/onnx_export.h"

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"

namespace sparsight::engine {

OnnxExport::OnnxExport(const Program& program, OnnxExperts experts) : gathers_rows(experts == OnnxExperts::gathered) {
  const Shape& pixels = program.pixels();
  set_planes({Program::kInput, pixels}, pixels.height,
             graph.add_input("images", {OnnxGraph::kImages, pixels.height, pixels.width, pixels.columns}));
}

OnnxName OnnxExport::rows(const Value& value, int64_t columns) {
  const std::pair key{value.number, columns};
  const Shape& written = written_.at(value.number);
  if (columns == written.columns) return written_rows(value.number);
  if (!rows_.contains(key))
    rows_[key] = graph.reshape(written_rows(value.number), {-1, written.numbers() / columns, columns});
  return rows_[key];
}

// In the shape in which it was written.
OnnxName OnnxExport::written_rows(int64_t number) {
  const Shape& shape = written_.at(number);
  OnnxName& rows = rows_[{number, shape.columns}];
  if (!rows.empty()) return rows;
  if (const auto map = maps_.find(map_key({number, shape})); map != maps_.end()) {
    rows = graph.transpose(graph.reshape(map->second, {-1, shape.columns, shape.rows()}), {0, 2, 1});
  } else {
    const auto planes = planes_.lower_bound({number, 0});
    SPARSIGHT_CHECK(planes != planes_.end() && planes->first.first == number);
    rows = graph.reshape(planes->second, {-1, shape.rows(), shape.columns});
  }
  return rows;
}

OnnxName OnnxExport::map(const Value& value) {
  const Shape& shape = value.shape;
  SPARSIGHT_CHECK(shape.prefix == 0);
  if (!has_map(value))
    maps_[map_key(value)] =
        graph.reshape(graph.transpose(rows(value), {0, 2, 1}), {-1, shape.columns, shape.height, shape.width});
  return maps_[map_key(value)];
}

OnnxName OnnxExport::planes(const Value& value, int64_t channels) {
  const std::pair key{value.number, channels};
  if (!planes_.contains(key)) {
    const OnnxName read = rows(value);
    planes_[key] = graph.reshape(read, {-1, channels, value.shape.rows() / channels, value.shape.columns});
  }
  return planes_[key];
}

void OnnxExport::set_rows(const Value& value, const OnnxName& tensor, int64_t columns) {
  written_[value.number] = value.shape;
  rows_[{value.number, columns}] = tensor;
  if (columns != value.shape.columns)
    rows_[{value.number, value.shape.columns}] = graph.reshape(tensor, {-1, value.shape.rows(), value.shape.columns});
}

void OnnxExport::set_map(const Value& value, const OnnxName& tensor) {
  written_[value.number] = value.shape;
  maps_[map_key(value)] = tensor;
}

void OnnxExport::set_planes(const Value& value, int64_t channels, const OnnxName& tensor) {
  written_[value.number] = value.shape;
  planes_[{value.number, channels}] = tensor;
}

const OnnxName& OnnxExport::images() {
  if (images_.empty()) images_ = graph.node("Shape", {"images"}, {{"start", 0}, {"end", 1}});
  return images_;
}

void write_onnx(const Program& program, FunctionRef<void(const void*, size_t)> write, OnnxExperts experts) {
  OnnxExport onnx(program, experts);
  OnnxGraph& graph = onnx.graph;
  const auto& steps = program.steps();
  for (size_t i = 0; i < steps.size(); ++i) {
    graph.set_scope(cat("steps.", i, "."));
    steps[i]->export_onnx(onnx);
  }
  graph.set_scope("");
  const int64_t classes = program.classes();
  graph.add_output("logits", graph.reshape(onnx.rows(program.logits()), {-1, classes}), OnnxType::fp32,
                   {OnnxGraph::kImages, classes});
  for (const RouteStep* route : program.routes())
    add_outputs(graph, "routing." + route->layer(), onnx.routings.at(route->number()));
  graph.add_metadata("probabilities", program.info.sigmoid ? "sigmoid" : "softmax");
  if (!program.info.classes.empty()) graph.add_metadata("classes", json_text(Json(program.info.classes)));
  graph.write(write);
}

}  // namespace sparsight::engine
