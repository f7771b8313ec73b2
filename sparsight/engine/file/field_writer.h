// Writes the parts of a program as the fields of a frozen model.
#pragma once

#include <nlohmann/json.hpp>

#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/file/frozen_header.h"
#include "sparsight/kernels/threads/own_threads.h"

namespace sparsight::engine {

class FieldWriter final : public Fields {
 public:
  bool reads() const override { return false; }
  void number(const char* name, int64_t& value, Bounds<int64_t> bounds) override;
  void real(const char* name, double& value, Bounds<double> bounds) override;
  void flag(const char* name, bool& value) override;
  void text(const char* name, std::string& value) override;
  void texts(const char* name, std::vector<std::string>& values, int64_t max_count) override;
  void numbers(const char* name, std::vector<int64_t>& values, Bounds<int64_t> bounds, int64_t max_count) override;
  void options(const char* name, OptionSet& set) override;
  void value(const char* name, Value& value, bool required = true) override;
  void output(const char* name, Value& value) override;
  void decides(const char* name, int64_t& number, int64_t rows, int64_t experts) override;
  void routing(const char* name, int64_t& number, int64_t rows, int64_t experts) override;
  void floats(const char* name, std::vector<float>& values, const std::vector<int64_t>& shape, bool required) override;
  cpu::PackedLinear read_linear(const char* name, int64_t inputs, int64_t outputs, int64_t together) override;
  void write_linear(const char* name, const cpu::PackedLinear& linear) override;
  void experts(const char* name, cpu::PackedExperts& experts, ColumnLayer& on_demand) override;
  void part(const char* name, FunctionRef<void()> body) override;
  void list(const char* name, int64_t& count, Bounds<int64_t> bounds, FunctionRef<void(int64_t)> body) override;
  void expert(int64_t number, FunctionRef<void()> body) override;
  void require(bool so, const char* what) override;
  using Fields::floats;

  Json fields = Json::object();
  std::vector<NewTensor> tensors;
  std::vector<Shape> values;  // by number, those that were written

 private:
  void add_tensor(const std::string& name, WeightType type, std::vector<int64_t> shape, const void* data);
  void add_matrix(const std::string& name, const cpu::MatrixView& matrix, int64_t outputs);
  void add_floats(const std::string& name, const std::vector<float>& values);
  void note(const Value& value);

  Json* object_ = &fields;  // of the part in work
  std::string path_;        // "steps.3."
  int64_t column_ = -1;
  cpu::OwnThreads thread_{1};
};

}  // namespace sparsight::engine
