// A step of a program: reads values of a batch and writes one. Kinds: engine/steps/. Steps do not change while they
// run, from any number of threads.
#pragma once

#include <string>
#include <vector>

#include "sparsight/engine/routing.h"
#include "sparsight/engine/value.h"
#include "sparsight/kernels/threads/threads.h"

namespace sparsight::engine {

// The batch in work.
class ExpertColumns;

class Frame {
 public:
  virtual ~Frame() = default;
  virtual cpu::Threads& threads() = 0;
  virtual int64_t images() const = 0;                       // B
  virtual const int64_t* image_numbers() const = 0;         // [B], RouterInput::image
  virtual const int64_t* image_groups() const = 0;          // [B], RouterInput::group
  virtual const float* read(const Value& value) const = 0;  // [B, rows, columns]
  virtual float* write(const Value& value) = 0;             // the same, to be filled
  virtual Routing& routing(int64_t number) = 0;             // of a route step
  // Begins to read an expert's column; waits for it. It stays until the end of the run.
  virtual void prefetch(ExpertColumns& columns, int64_t expert) = 0;
  virtual void need(ExpertColumns& columns, int64_t expert) = 0;
};

// Those of the values that exist.
inline std::vector<Value> existing(const Value& first, const Value& second) {
  if (!second.exists()) return {first};
  return {first, second};
}

class Fields;
class OnnxExport;

class Step {
 public:
  Step() = default;  // to be read from a file, as those of all kinds
  explicit Step(Value to) : to_(to) {}
  virtual ~Step() = default;

  virtual const char* kind() const = 0;  // "route"
  virtual std::vector<Value> reads() const = 0;
  virtual void run(Frame& frame) const = 0;
  virtual int64_t bytes() const { return 0; }  // of the weights
  // Reads or writes what a frozen model holds of it (engine/file/fields.h). Raises Error for what would not run.
  void visit(Fields& fields);
  // Adds what run() computes to a graph (engine/onnx/onnx_export.h). Raises Error for what ONNX cannot express.
  virtual void export_onnx(OnnxExport& onnx) const = 0;
  const Value& to() const { return to_; }  // what it writes; none for a route step

 protected:
  // All but the value that it writes.
  virtual void visit_fields(Fields& fields) = 0;

 private:
  Value to_;
};

}  // namespace sparsight::engine
