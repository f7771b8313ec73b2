// What a frozen file holds of the parts of a program. Steps, routers and kinds of experts name their fields once, in
// visit(), by which they are written and read: docs/file_formats.md, "Frozen models".
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/core/function_ref.h"
#include "sparsight/core/options.h"
#include "sparsight/engine/experts.h"
#include "sparsight/engine/value.h"
#include "sparsight/kernels/gemm/packed_linear.h"

namespace sparsight::engine {

constexpr int64_t kMaxFieldNumber = int64_t{1} << 24;  // of sizes and counts: products of two do not overflow
constexpr int64_t kMaxLayers = 1024;                   // of a part: layers, convolutions

// While it reads, each call raises Error for a field that is missing, of another type or shape, or out of bounds.
class Fields {
 public:
  static constexpr int64_t kAny = -1;

  virtual ~Fields() = default;

  virtual bool reads() const = 0;  // else it writes

  virtual void number(const char* name, int64_t& value, Bounds<int64_t> bounds) = 0;
  virtual void real(const char* name, double& value, Bounds<double> bounds) = 0;
  virtual void flag(const char* name, bool& value) = 0;
  virtual void text(const char* name, std::string& value) = 0;
  virtual void texts(const char* name, std::vector<std::string>& values, int64_t max_count) = 0;
  virtual void numbers(const char* name, std::vector<int64_t>& values, Bounds<int64_t> bounds, int64_t max_count) = 0;
  virtual void options(const char* name, OptionSet& set) = 0;
  // A value of the program; none where it is not `required`.
  virtual void value(const char* name, Value& value, bool required = true) = 0;
  // The value that a step writes, which no other does.
  virtual void output(const char* name, Value& value) = 0;
  // The number of the decision of a step, about `rows` rows of an image and that many experts.
  virtual void decides(const char* name, int64_t& number, int64_t rows, int64_t experts) = 0;
  // That of an earlier step; experts: or kAny.
  virtual void routing(const char* name, int64_t& number, int64_t rows, int64_t experts) = 0;

  // Tensors. shape: a number for each dimension; kAny: whatever there is, at least 1. `floats` are empty where they are
  // absent and not `required`.
  virtual void floats(const char* name, std::vector<float>& values, const std::vector<int64_t>& shape,
                      bool required = true) = 0;
  // together: as PackedLinear's; 0: as usual for the type.
  virtual cpu::PackedLinear read_linear(const char* name, int64_t inputs, int64_t outputs, int64_t together = 0) = 0;
  virtual void write_linear(const char* name, const cpu::PackedLinear& linear) = 0;
  // Reads one of both, as the ExpertMemory of the reader says; writes `experts`.
  virtual void experts(const char* name, cpu::PackedExperts& experts, ColumnLayer& on_demand) = 0;

  // Fields of a part: those that body() names, under the part's name.
  virtual void part(const char* name, FunctionRef<void()> body) = 0;
  // `count` parts, numbered; body(number). Sets `count` when it reads.
  virtual void list(const char* name, int64_t& count, Bounds<int64_t> bounds, FunctionRef<void(int64_t)> body) = 0;
  // Tensors that body() names belong to the column of that expert (docs/file_formats.md).
  virtual void expert(int64_t number, FunctionRef<void()> body) = 0;

  // Experts that body() names are used by every image: they are in no column, and are read with the model.
  template <class Body>
  void always_used(const Body& body) {
    always_used_ = true;
    body();
    always_used_ = false;
  }

  // Raises Error with the place in the file: "<what>" is what must be so.
  virtual void require(bool so, const char* what) = 0;

  void linear(const char* name, cpu::PackedLinear& linear, int64_t inputs, int64_t outputs) {
    if (reads())
      linear = read_linear(name, inputs, outputs);
    else
      write_linear(name, linear);
  }
  // values: [experts, shape], a tensor for each expert.
  void expert_floats(const char* name, std::vector<float>& values, int64_t experts, const std::vector<int64_t>& shape,
                     bool required = true);
  void size(const char* name, int64_t& value) { number(name, value, {1, kMaxFieldNumber}); }
  void size_or_zero(const char* name, int64_t& value) { number(name, value, {0, kMaxFieldNumber}); }
  void epsilon(const char* name, float& value) {
    double wide = value;
    real(name, wide, {0, std::numeric_limits<float>::max()});
    value = static_cast<float>(wide);
  }
  void floats(const char* name, std::vector<float>& values, int64_t count, bool required = true) {
    floats(name, values, std::vector<int64_t>{count}, required);
  }
  // One of the names, in the order of the enumeration.
  template <class Enum, size_t N>
  void choice(const char* name, Enum& value, const std::array<const char*, N>& names) {
    std::string text = names[static_cast<size_t>(value)];
    this->text(name, text);
    for (size_t i = 0; i < N; ++i)
      if (text == names[i]) return void(value = static_cast<Enum>(i));
    require(false, "a known name of a choice");
  }
  // body(*value) if there is a value. name: of the flag that says so.
  template <class T, class Body>
  void optional(const char* name, std::optional<T>& value, const Body& body) {
    bool present = value.has_value();
    flag(name, present);
    if (reads()) value = present ? std::optional<T>(T{}) : std::nullopt;
    if (value) body(*value);
  }

 protected:
  bool always_used_ = false;
};

constexpr std::array<const char*, 4> kActivationNames{"gelu", "relu", "silu", "gelu_tanh"};

}  // namespace sparsight::engine
