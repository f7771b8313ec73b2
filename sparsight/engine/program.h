// What a trained model computes, as a value: a list of steps over arrays, with their packed weights, and the labels.
// Made by compile() of models/compile.h; runs without torch, from many threads at a time. Letters: moe/axes.md; K
// classes.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sparsight/core/function_ref.h"
#include "sparsight/engine/expert_columns.h"
#include "sparsight/engine/preprocess.h"
#include "sparsight/engine/step.h"
#include "sparsight/engine/steps/route.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::engine {

class PackCache;
class Program;

// Memory for one run at a time, kept from run to run: nothing is allocated after the first run of as many images.
class Session {
 private:
  friend class Program;
  friend class SessionFrame;
  std::vector<cpu::Workspace> buffers_;
  std::vector<Routing> routings_;
  std::vector<std::pair<int64_t, std::shared_future<ColumnPtr>>> columns_;  // of the run in work
};

struct Batch {
  const float* pixels = nullptr;           // [B,C,H,W] in 0..1
  int64_t images = 0;                      // B
  const int64_t* image_numbers = nullptr;  // [B], RouterInput::image
  const int64_t* image_groups = nullptr;   // [B], RouterInput::group
};

// Called after each decision, which it may replace by another of as many tokens and experts.
using RouteHook = FunctionRef<void(const RouteStep& step, Routing& routing)>;

// In the memory of the session, until its next run.
struct Answer {
  const float* logits = nullptr;      // [B,K]
  const float* features = nullptr;    // [B,D]: what the head sees
  std::span<const Routing> routings;  // in the order of Program::routes()
};

// What else it takes to use a program: from bytes to pixels, and what the answers mean.
struct ProgramInfo {
  std::optional<Preprocessing> preprocessing = {};  // nothing: [transforms] eval has no form without tensors
  std::vector<std::string> classes = {};            // [K]
  std::vector<std::string> super_classes = {};      // of guided routers; empty: none is guided
  std::vector<int64_t> super_class_of = {};         // [K]
  bool sigmoid = false;                             // the probability of a class is its own sigmoid, not the softmax
};

class Program {
 public:
  // pixels: of an image, C H rows of W columns (steps/pixels.h). features, logits: values that steps write.
  Program(Shape pixels, std::vector<std::unique_ptr<Step>> steps, Value features, Value logits);

  Answer run(Session& session, cpu::Threads& threads, const Batch& batch) const;
  Answer run(Session& session, cpu::Threads& threads, const Batch& batch, RouteHook after_route) const;

  const Shape& pixels() const { return pixels_; }  // height: C, width: H, columns: W
  int64_t classes() const { return logits_.shape.columns; }
  const Value& features() const { return features_; }
  const Value& logits() const { return logits_; }
  int64_t feature_width() const { return features_.shape.columns; }
  const std::vector<std::unique_ptr<Step>>& steps() const { return steps_; }
  const std::vector<const RouteStep*>& routes() const { return routes_; }
  // Exchanges the steps of that number of two programs of one model, neither of which is a route step.
  void swap_step(Program& other, size_t number) { std::swap(steps_[number], other.steps_[number]); }
  int64_t bytes() const;            // of the weights
  int64_t bytes_per_image() const;  // of the values between steps

  ProgramInfo info;
  std::shared_ptr<ExpertColumns> columns;  // of a frozen model whose experts are read on demand; else null
  std::shared_ptr<PackCache> packed;       // of one whose packed weights are kept in a file; else null

  static constexpr int64_t kInput = 0;  // the number of the value that is the pixels

 private:
  void place_values();
  Answer run(Session& session, cpu::Threads& threads, const Batch& batch, const RouteHook* after_route) const;

  friend class SessionFrame;
  Shape pixels_;
  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<const RouteStep*> routes_;
  Value features_, logits_;
  std::vector<int64_t> value_to_buffer_;  // by number of the value
  std::vector<int64_t> buffer_numbers_;   // floats of each buffer for an image
};

}  // namespace sparsight::engine
