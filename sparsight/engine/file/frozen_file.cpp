#include "sparsight/engine/file/frozen_file.h"

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "sparsight/engine/file/field_reader.h"
#include "sparsight/engine/file/field_writer.h"
#include "sparsight/engine/file/kinds.h"
#include "sparsight/engine/file/pack_cache.h"

namespace sparsight::engine {
namespace {

constexpr int64_t kMaxSteps = 1 << 16, kMaxClasses = 1 << 20;
constexpr int64_t kMaxValueNumbers = int64_t{1} << 28;  // of an image

void visit_shape(Fields& fields, Shape& shape) {
  fields.size_or_zero("prefix", shape.prefix);
  fields.size("height", shape.height);
  fields.size("width", shape.width);
  fields.size("columns", shape.columns);
  fields.flag("has_grid", shape.has_grid);
  fields.require(shape.height * shape.width <= kMaxFieldNumber && shape.rows() <= kMaxFieldNumber &&
                     shape.rows() <= kMaxValueNumbers / shape.columns,
                 "a shape of at most 2^28 numbers");
}

void visit_preprocessing(Fields& fields, Preprocessing& preprocessing) {
  fields.number("channels", preprocessing.channels, {1, 4});
  fields.number("height", preprocessing.height, {1, 1 << 15});
  fields.number("width", preprocessing.width, {1, 1 << 15});
  fields.flag("divides", preprocessing.divides);
  auto count = static_cast<int64_t>(preprocessing.steps.size());
  fields.list("steps", count, {0, kMaxLayers}, [&](int64_t i) {
    if (fields.reads()) preprocessing.steps.emplace_back();
    PreprocessStep& step = preprocessing.steps[static_cast<size_t>(i)];
    fields.choice("kind", step.kind, std::array{"resize", "center_crop"});
    fields.number("height", step.height, {0, 1 << 15});
    fields.number("width", step.width, {0, 1 << 15});
    fields.flag("bicubic", step.bicubic);
  });
}

void visit_info(Fields& fields, ProgramInfo& info, const Shape& pixels, int64_t outputs) {
  fields.optional("preprocesses", info.preprocessing, [&](Preprocessing& preprocessing) {
    fields.part("preprocessing", [&] { visit_preprocessing(fields, preprocessing); });
    fields.require(
        preprocessing.channels * preprocessing.height == pixels.rows() && preprocessing.width == pixels.columns,
        "preprocessing that makes its pixels");
  });
  fields.flag("sigmoid", info.sigmoid);
  fields.texts("classes", info.classes, kMaxClasses);
  fields.texts("super_classes", info.super_classes, kMaxClasses);
  fields.numbers("super_class_of", info.super_class_of,
                 {0, std::max<int64_t>(0, static_cast<int64_t>(info.super_classes.size()) - 1)}, kMaxClasses);
  const auto classes = static_cast<int64_t>(info.classes.size());
  fields.require((classes == 0 || classes == outputs) &&
                     (info.super_class_of.empty() || static_cast<int64_t>(info.super_class_of.size()) == outputs),
                 "a name and a super-class for each of its outputs, or none");
}

void visit_steps(Fields& fields, std::vector<std::unique_ptr<Step>>& steps) {
  auto count = static_cast<int64_t>(steps.size());
  fields.list("steps", count, {1, kMaxSteps}, [&](int64_t i) {
    if (fields.reads()) steps.emplace_back();
    visit_kind(fields, step_kinds(), steps[static_cast<size_t>(i)]);
  });
}

void visit_values(Fields& fields, std::vector<Shape>& values) {
  auto count = static_cast<int64_t>(values.size());
  fields.list("values", count, {1, kMaxSteps}, [&](int64_t i) {
    if (fields.reads()) values.emplace_back();
    visit_shape(fields, values[static_cast<size_t>(i)]);
  });
}

}  // namespace

void write_program(const Program& program, const Json& provenance, FunctionRef<void(const void*, size_t)> write) {
  FieldWriter fields;
  fields.values.push_back(program.pixels());
  // (Writing changes nothing.)
  visit_steps(fields, const_cast<std::vector<std::unique_ptr<Step>>&>(program.steps()));
  Value features = program.features(), logits = program.logits();
  fields.value("features", features);
  fields.value("logits", logits);
  std::vector<Shape> values = fields.values;
  visit_values(fields, values);
  ProgramInfo info = program.info;
  visit_info(fields, info, program.pixels(), program.classes());

  write_frozen(fields.fields, provenance, std::move(fields.tensors), write);
}

Program read_program(std::shared_ptr<const ByteSource> file, const FrozenHeader& header, ExpertMemory memory,
                     const std::string& packed_beside) {
  const bool keeps = !packed_beside.empty() && MappedFile::kSupported;
  const auto cache = keeps ? std::make_shared<PackCache>(packed_beside, header) : nullptr;
  FieldReader fields(std::move(file), header, memory, cache.get());
  std::vector<Shape> values;
  visit_values(fields, values);
  fields.set_values(values);
  std::vector<std::unique_ptr<Step>> steps;
  visit_steps(fields, steps);
  Value features, logits;
  fields.value("features", features);
  fields.value("logits", logits);
  ProgramInfo info;
  visit_info(fields, info, values.front(), logits.shape.numbers());
  fields.require(features.number > 0 && logits.number > 0 && features.shape.rows() == 1 && logits.shape.rows() == 1,
                 "features and logits that steps write, a vector each");
  fields.check_all_read();
  Program program(values.front(), std::move(steps), features, logits);
  program.info = std::move(info);
  program.columns = fields.columns();
  if (cache) cache->finish();
  program.packed = cache;
  return program;
}

Program read_program(const std::string& path, ExpertMemory memory) {
  const std::shared_ptr<const ByteSource> file = open_file(path);
  return read_program(file, read_header(*file), memory);
}

}  // namespace sparsight::engine
