// Reads the parts of a program from the fields of a frozen model, whose content is not trusted.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/file/frozen_header.h"
#include "sparsight/engine/file/mlp_tensors.h"
#include "sparsight/engine/file/pack_cache.h"

namespace sparsight::engine {

class FieldReader final : public Fields {
 public:
  // header, cache: stay there while it reads. cache: of packed matrices, or null.
  FieldReader(std::shared_ptr<const ByteSource> file, const FrozenHeader& header, ExpertMemory memory,
              PackCache* cache);

  bool reads() const override { return true; }
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

  // The shapes of the program's values, by number; the first is that of the pixels, which no step writes.
  void set_values(std::vector<Shape> values);
  // Null where all experts were read, or no layer has any.
  const std::shared_ptr<ExpertColumns>& columns() const { return columns_; }
  // Raises Error where a tensor of the file was not asked for.
  void check_all_read() const;

 private:
  struct Decision {
    int64_t rows, experts;
  };

  const Json& field(const char* name);
  [[noreturn]] void refuse(const std::string& what) const;
  int64_t value_number(const char* name);
  const FrozenTensor& find(const std::string& name, const std::vector<int64_t>& shape);
  std::vector<float> read_fp32(const FrozenTensor& tensor) const;
  std::vector<MlpTensors> mlp_tensors(const cpu::MlpShape& shape);
  cpu::PackedExperts packed_experts(const cpu::MlpShape& shape, const std::vector<MlpTensors>& tensors);
  std::vector<float> read_vector(const std::string& name, int64_t count) { return read_fp32(find(name, {count})); }

  std::shared_ptr<const ByteSource> file_;
  const Json* object_;  // of the part in work
  std::string path_;
  int64_t column_ = -1;
  std::map<std::string, const FrozenTensor*> tensors_;
  std::set<std::string> asked_;
  std::vector<Shape> values_;
  std::vector<bool> written_;
  std::vector<Decision> decisions_;
  ExpertMemory memory_;
  PackCache* cache_;
  std::shared_ptr<ExpertColumns> columns_;
};

}  // namespace sparsight::engine
