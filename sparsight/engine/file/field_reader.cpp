#include "sparsight/engine/file/field_reader.h"

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"

namespace sparsight::engine {

FieldReader::FieldReader(std::shared_ptr<const ByteSource> file, const FrozenHeader& header, ExpertMemory memory,
                         PackCache* cache)
    : file_(std::move(file)), object_(&header.program), memory_(memory), cache_(cache) {
  for (const FrozenTensor& tensor : header.tensors)
    if (!tensors_.emplace(tensor.name, &tensor).second) refuse(tensor.name + " once, not twice");
}

void FieldReader::refuse(const std::string& what) const {
  fail(file_->name(), ": ", path_.empty() ? "the program" : path_.substr(0, path_.size() - 1), " must have ", what,
       "; export the model again");
}

void FieldReader::require(bool so, const char* what) {
  if (!so) refuse(what);
}

const Json& FieldReader::field(const char* name) {
  const Json& value = member(*object_, name);
  if (value.is_null()) refuse(std::string("a field ") + name);
  return value;
}

namespace {

bool fits(const Json& json, Bounds<int64_t> bounds) {
  return json.is_number_integer() &&
         (!json.is_number_unsigned() || json.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()}) &&
         json.get<int64_t>() >= bounds.low && json.get<int64_t>() <= bounds.high;
}

}  // namespace

void FieldReader::number(const char* name, int64_t& value, Bounds<int64_t> bounds) {
  const Json& json = field(name);
  if (!fits(json, bounds)) refuse(cat(name, " from ", bounds.low, " to ", bounds.high, ", not ", shown(json)));
  value = json;
}

void FieldReader::real(const char* name, double& value, Bounds<double> bounds) {
  const Json& json = field(name);
  double number = std::numeric_limits<double>::quiet_NaN();
  if (json.is_number()) number = json;
  if (json == "inf") number = std::numeric_limits<double>::infinity();
  if (json == "-inf") number = -std::numeric_limits<double>::infinity();
  const bool allowed =
      (number >= bounds.low && number <= bounds.high) ||
      (std::isinf(number) && bounds.high == Bounds<double>{}.high && bounds.low == Bounds<double>{}.low);
  if (!allowed) refuse(cat(name, " from ", bounds.low, " to ", bounds.high, ", not ", shown(json)));
  value = number;
}

void FieldReader::flag(const char* name, bool& value) {
  const Json& json = field(name);
  if (!json.is_boolean()) refuse(cat(name, " true or false, not ", shown(json)));
  value = json;
}

void FieldReader::text(const char* name, std::string& value) {
  const Json& json = field(name);
  if (!json.is_string()) refuse(cat("a text for ", name, ", not ", shown(json)));
  value = json;
}

void FieldReader::numbers(const char* name, std::vector<int64_t>& values, Bounds<int64_t> bounds, int64_t max_count) {
  const Json& json = field(name);
  if (!json.is_array() || static_cast<int64_t>(json.size()) > max_count)
    refuse(cat("at most ", max_count, " numbers for ", name));
  values.clear();
  for (const Json& entry : json) {
    if (!fits(entry, bounds)) refuse(cat(name, " from ", bounds.low, " to ", bounds.high, ", not ", shown(entry)));
    values.push_back(entry);
  }
}

void FieldReader::texts(const char* name, std::vector<std::string>& values, int64_t max_count) {
  const Json& json = field(name);
  if (!json.is_array() || static_cast<int64_t>(json.size()) > max_count)
    refuse(cat("at most ", max_count, " texts for ", name));
  values.clear();
  for (const Json& entry : json) {
    if (!entry.is_string()) refuse(cat("texts for ", name, ", not ", shown(entry)));
    values.push_back(entry);
  }
}

void FieldReader::options(const char* name, OptionSet& set) {
  try {
    assign(set, field(name), name);
  } catch (const UsageError& error) {
    refuse(cat("settings that are allowed: ", error.what()));
  }
}

void FieldReader::set_values(std::vector<Shape> values) {
  values_ = std::move(values);
  written_.assign(values_.size(), false);
  require(!values_.empty(), "pixels");
  written_.front() = true;
}

int64_t FieldReader::value_number(const char* name) {
  int64_t number = 0;
  this->number(name, number, {0, static_cast<int64_t>(values_.size()) - 1});
  return number;
}

void FieldReader::value(const char* name, Value& value, bool required) {
  value = {};
  if (!required && member(*object_, name).is_null()) return;
  const int64_t number = value_number(name);
  require(written_[static_cast<size_t>(number)], "values to read that an earlier step writes");
  value = {number, values_[static_cast<size_t>(number)]};
}

void FieldReader::output(const char* name, Value& value) {
  value = {};
  if (member(*object_, name).is_null()) return;
  const int64_t number = value_number(name);
  const auto index = static_cast<size_t>(number);
  require(!written_[index], "a value to write that no other step does");
  written_[index] = true;
  value = {number, values_[index]};
}

void FieldReader::decides(const char* name, int64_t& number, int64_t rows, int64_t experts) {
  const auto next = static_cast<int64_t>(decisions_.size());
  this->number(name, number, {next, next});
  decisions_.push_back({rows, experts});
}

void FieldReader::routing(const char* name, int64_t& number, int64_t rows, int64_t experts) {
  this->number(name, number, {0, static_cast<int64_t>(decisions_.size()) - 1});
  const Decision& decision = decisions_[static_cast<size_t>(number)];
  require(decision.rows == rows && (experts == kAny || decision.experts == experts),
          "a decision about as many rows and experts");
}

const FrozenTensor& FieldReader::find(const std::string& name, const std::vector<int64_t>& shape) {
  const std::string full = path_ + name;
  const auto found = tensors_.find(full);
  if (found == tensors_.end()) refuse("a tensor " + full);
  const FrozenTensor& tensor = *found->second;
  if (!asked_.insert(full).second || tensor.column != column_)
    refuse("the tensor " + full + " once, in the column of its expert");
  bool same = tensor.shape.size() == shape.size();
  for (size_t i = 0; same && i < shape.size(); ++i)
    same = shape[i] == tensor.shape[i] || (shape[i] == kAny && tensor.shape[i] <= kMaxFieldNumber);
  if (!same) refuse(cat(tensor.name, " of the shape ", shown(shape), ", not ", shown(tensor.shape)));
  return tensor;
}

std::vector<float> FieldReader::read_fp32(const FrozenTensor& tensor) const {
  if (tensor.type != WeightType::fp32) refuse(tensor.name + " in fp32");
  return read_floats(*file_, tensor);
}

void FieldReader::floats(const char* name, std::vector<float>& values, const std::vector<int64_t>& shape,
                         bool required) {
  values.clear();
  if (required || tensors_.contains(path_ + name)) values = read_fp32(find(name, shape));
}

namespace {

std::shared_ptr<const void> borrowed(void* memory) { return {std::shared_ptr<const void>(), memory}; }

}  // namespace

cpu::PackedLinear FieldReader::read_linear(const char* name, int64_t inputs, int64_t outputs, int64_t together) {
  const std::string prefix = std::string(name) + ".";
  const FrozenTensor& tensor = find(prefix + "weight", {outputs, inputs});
  const int64_t rows = tensor.shape[0], columns = tensor.shape[1];
  std::optional<FrozenTensor> scale;
  if (tensor.type == WeightType::int8) {
    scale = find(prefix + "weight_scale", {rows});
    require(scale->type == WeightType::fp32, "scales in fp32");
  }
  const std::vector<float> bias = read_vector(prefix + "bias", rows);
  require(together == 0 || (together == 1 && !scale), "convolutions in fp32 or bf16");
  const cpu::PanelOrder order =
      cpu::panel_order(tensor.type, together > 0 ? together : cpu::rows_together(tensor.type));
  const PackedArray array{.tensor = tensor.offset,
                          .bytes = cpu::PackedMatrix::memory_bytes(order, columns, rows),
                          .type = static_cast<int64_t>(tensor.type),
                          .rows = columns,
                          .columns = rows,
                          .together = order.group};
  const auto pack = [file = file_, tensor, scale, order, rows, columns](void* memory) {
    const Bytes weight = read_tensor(*file, tensor);
    const std::vector<float> scales = scale ? read_floats(*file, *scale) : std::vector<float>();
    cpu::PackedMatrix(order, columns, rows, borrowed(memory))
        .pack({tensor.type, rows, columns, weight.data(), scale ? scales.data() : nullptr}, cpu::Outputs::rows);
  };
  return {cpu::PackedMatrix(order, columns, rows, get_packed(cache_, array, pack)), bias.data()};
}

void FieldReader::write_linear(const char*, const cpu::PackedLinear&) { SPARSIGHT_CHECK(false); }

// Those of all experts, which have the same.
std::vector<MlpTensors> FieldReader::mlp_tensors(const cpu::MlpShape& shape) {
  std::vector<MlpTensors> all;
  const auto vector = [&](const char* name, int64_t count, bool is_there) -> std::optional<FrozenTensor> {
    if (!is_there) return std::nullopt;
    const FrozenTensor& tensor = find(name, {count});
    require(tensor.type == WeightType::fp32, "biases and scales in fp32");
    return tensor;
  };
  for (int64_t e = 0; e < shape.experts; ++e)
    expert(e, [&] {
      MlpTensors t;
      t.w1 = find("w1", {shape.width, shape.hidden}), t.w2 = find("w2", {shape.hidden, shape.width});
      const bool scaled = t.w1.type == WeightType::int8;
      t.w1_scale = vector("w1_scale", shape.hidden, scaled), t.w2_scale = vector("w2_scale", shape.width, scaled);
      t.b1 = vector("b1", shape.hidden, tensors_.contains(path_ + "b1"));
      t.b2 = vector("b2", shape.width, tensors_.contains(path_ + "b2"));
      const MlpTensors& first = all.empty() ? t : all.front();
      require(t.w1.type == first.w1.type && t.w2.type == first.w1.type && t.b1.has_value() == first.b1.has_value() &&
                  t.b2.has_value() == first.b2.has_value(),
              "experts of one type, all with biases or none");
      all.push_back(std::move(t));
    });
  return all;
}

cpu::PackedExperts FieldReader::packed_experts(const cpu::MlpShape& shape, const std::vector<MlpTensors>& tensors) {
  const MlpTensors& first = tensors.front();
  const WeightType type = first.w1.type;
  const PackedArray array{.tensor = first.w1.offset,
                          .bytes = cpu::PackedExperts::memory_bytes(shape, type),
                          .type = static_cast<int64_t>(type),
                          .experts = shape.experts,
                          .rows = shape.width,
                          .columns = shape.hidden};
  const auto pack = [file = file_, tensors, shape, type](void* memory) {
    cpu::PackedExperts matrices(shape, type, false, false, borrowed(memory));
    for (int64_t e = 0; e < shape.experts; ++e) read_matrices(*file, tensors[static_cast<size_t>(e)], e, matrices);
  };
  cpu::PackedExperts experts(shape, type, first.b1.has_value(), first.b2.has_value(), get_packed(cache_, array, pack));
  for (int64_t e = 0; e < shape.experts; ++e) read_vectors(*file_, tensors[static_cast<size_t>(e)], e, experts);
  return experts;
}

void FieldReader::experts(const char* name, cpu::PackedExperts& experts, ColumnLayer& on_demand) {
  cpu::MlpShape shape;
  std::vector<MlpTensors> tensors;
  part(name, [&] {
    size("experts", shape.experts);
    size("width", shape.width);
    size("hidden", shape.hidden);
    tensors = mlp_tensors(shape);  // and so the memory that they take is no more than the file has
  });
  if (always_used_ || memory_.kept_columns == ExpertMemory::kAll) {
    experts = packed_experts(shape, tensors);
    return;
  }
  if (!columns_) columns_ = std::make_shared<ExpertColumns>(memory_.kept_columns);
  on_demand.columns = columns_, on_demand.shape = shape;
  for (const MlpTensors& t : tensors) on_demand.bytes += t.bytes();
  cpu::MlpShape one = shape;
  one.experts = 1;
  on_demand.number = columns_->add_layer(shape.experts, [file = file_, all = std::move(tensors), one](int64_t e) {
    const MlpTensors& tensors = all[static_cast<size_t>(e)];
    cpu::PackedExperts expert(one, tensors.w1.type, tensors.b1.has_value(), tensors.b2.has_value());
    read_matrices(*file, tensors, 0, expert);
    read_vectors(*file, tensors, 0, expert);
    return expert;
  });
}

void FieldReader::part(const char* name, FunctionRef<void()> body) {
  const Json& inner = field(name);
  if (!inner.is_object()) refuse(cat("fields of ", name));
  const Json* const outer = std::exchange(object_, &inner);
  const std::string outer_path = path_;
  path_ += std::string(name) + ".";
  body();
  path_ = outer_path, object_ = outer;
}

void FieldReader::list(const char* name, int64_t& count, Bounds<int64_t> bounds, FunctionRef<void(int64_t)> body) {
  const Json& all = field(name);
  count = all.is_array() ? static_cast<int64_t>(all.size()) : -1;
  if (count < bounds.low || count > bounds.high) refuse(cat(bounds.low, " to ", bounds.high, " ", name));
  const Json* const outer = object_;
  const std::string outer_path = path_;
  for (int64_t i = 0; i < count; ++i) {
    object_ = &all[static_cast<size_t>(i)], path_ = outer_path + name + "." + std::to_string(i) + ".";
    require(object_->is_object(), "fields");
    body(i);
  }
  object_ = outer, path_ = outer_path;
}

void FieldReader::expert(int64_t number, FunctionRef<void()> body) {
  const std::string outer_path = path_;
  const int64_t outer = std::exchange(column_, always_used_ ? -1 : number);
  path_ += cat("expert", number, ".");
  body();
  path_ = outer_path, column_ = outer;
}

void FieldReader::check_all_read() const {
  for (const auto& [name, tensor] : tensors_)
    if (!asked_.contains(name)) refuse("no tensor " + name + ", which no step reads");
}

}  // namespace sparsight::engine
