#include "sparsight/engine/file/field_writer.h"

#include <cmath>
#include <utility>

#include "sparsight/core/error.h"

namespace sparsight::engine {

void FieldWriter::number(const char* name, int64_t& value, Bounds<int64_t>) { (*object_)[name] = value; }

// JSON has no infinity.
void FieldWriter::real(const char* name, double& value, Bounds<double>) {
  if (std::isinf(value))
    (*object_)[name] = value > 0 ? "inf" : "-inf";
  else
    (*object_)[name] = value;
}

void FieldWriter::flag(const char* name, bool& value) { (*object_)[name] = value; }
void FieldWriter::text(const char* name, std::string& value) { (*object_)[name] = value; }
void FieldWriter::texts(const char* name, std::vector<std::string>& values, int64_t) { (*object_)[name] = values; }
void FieldWriter::numbers(const char* name, std::vector<int64_t>& values, Bounds<int64_t>, int64_t) {
  (*object_)[name] = values;
}
void FieldWriter::options(const char* name, OptionSet& set) { (*object_)[name] = sparsight::values(set); }

void FieldWriter::note(const Value& value) {
  const auto number = static_cast<size_t>(value.number);
  if (number >= values.size()) values.resize(number + 1);
  values[number] = value.shape;
}

void FieldWriter::value(const char* name, Value& value, bool required) {
  SPARSIGHT_CHECK(!required || value.exists());
  if (!value.exists()) return;
  (*object_)[name] = value.number;
  note(value);
}

void FieldWriter::output(const char* name, Value& value) { this->value(name, value, /*required=*/false); }
void FieldWriter::decides(const char* name, int64_t& number, int64_t, int64_t) { (*object_)[name] = number; }
void FieldWriter::routing(const char* name, int64_t& number, int64_t, int64_t) { (*object_)[name] = number; }

void FieldWriter::add_tensor(const std::string& name, WeightType type, std::vector<int64_t> shape, const void* data) {
  NewTensor tensor{{.name = path_ + name, .type = type, .shape = std::move(shape), .column = column_}, {}};
  const auto* const bytes = static_cast<const uint8_t*>(data);
  tensor.bytes.assign(bytes, bytes + tensor.entry.bytes());
  tensors.push_back(std::move(tensor));
}

void FieldWriter::add_floats(const std::string& name, const std::vector<float>& values) {
  if (!values.empty()) add_tensor(name, WeightType::fp32, {static_cast<int64_t>(values.size())}, values.data());
}

void FieldWriter::add_matrix(const std::string& name, const cpu::MatrixView& matrix, int64_t outputs) {
  add_tensor(name, matrix.type, {matrix.rows, matrix.columns}, matrix.data);
  if (matrix.scale) add_tensor(name + "_scale", WeightType::fp32, {outputs}, matrix.scale);
}

void FieldWriter::floats(const char* name, std::vector<float>& values, const std::vector<int64_t>& shape,
                         bool required) {
  if (values.empty()) return require(!required, "numbers to write");
  const auto count = static_cast<int64_t>(values.size());
  std::vector<int64_t> sides = shape;
  int64_t known = 1;
  for (const int64_t side : sides) known *= side == kAny ? 1 : side;
  for (int64_t& side : sides)
    if (side == kAny) side = count / known;
  add_tensor(name, WeightType::fp32, sides, values.data());
  SPARSIGHT_CHECK(tensors.back().entry.numbers() == count);
}

cpu::PackedLinear FieldWriter::read_linear(const char*, int64_t, int64_t, int64_t) {
  SPARSIGHT_CHECK(false);
  return {};
}

void FieldWriter::write_linear(const char* name, const cpu::PackedLinear& linear) {
  const std::string prefix = std::string(name) + ".";
  add_matrix(prefix + "weight", linear.stored().view(), linear.outputs());
  add_tensor(prefix + "bias", WeightType::fp32, {linear.outputs()}, linear.bias());
}

void FieldWriter::experts(const char* name, cpu::PackedExperts& experts, ColumnLayer& on_demand) {
  on_demand.check_unused();
  cpu::MlpShape shape = experts.shape();
  part(name, [&] {
    size("experts", shape.experts);
    size("width", shape.width);
    size("hidden", shape.hidden);
    for (int64_t e = 0; e < shape.experts; ++e)
      expert(e, [&] {
        const cpu::StoredMlp mlp = experts.stored(thread_, e);
        add_matrix("w1", mlp.w1.view(), shape.hidden);
        add_floats("b1", mlp.b1);
        add_matrix("w2", mlp.w2.view(), shape.width);
        add_floats("b2", mlp.b2);
      });
  });
}

void FieldWriter::part(const char* name, FunctionRef<void()> body) {
  Json inner = Json::object();
  Json* const outer = std::exchange(object_, &inner);
  const std::string outer_path = path_;
  path_ += std::string(name) + ".";
  body();
  path_ = outer_path;
  object_ = outer;
  (*object_)[name] = std::move(inner);
}

void FieldWriter::list(const char* name, int64_t& count, Bounds<int64_t>, FunctionRef<void(int64_t)> body) {
  Json all = Json::array();
  Json* const outer = object_;
  const std::string outer_path = path_;
  for (int64_t i = 0; i < count; ++i) {
    Json inner = Json::object();
    object_ = &inner, path_ = outer_path + name + "." + std::to_string(i) + ".";
    body(i);
    all.push_back(std::move(inner));
  }
  object_ = outer, path_ = outer_path;
  (*object_)[name] = std::move(all);
}

void FieldWriter::expert(int64_t number, FunctionRef<void()> body) {
  const std::string outer_path = path_;
  const int64_t outer = std::exchange(column_, always_used_ ? -1 : number);
  path_ += cat("expert", number, ".");
  body();
  path_ = outer_path, column_ = outer;
}

void FieldWriter::require(bool so, const char* what) {
  if (!so) throw std::logic_error(cat("internal check failed: ", path_, " must have ", what));
}

}  // namespace sparsight::engine
