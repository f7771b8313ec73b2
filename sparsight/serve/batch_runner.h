// A batch of images through a program: one session, its threads, and the measures of what it did.
#pragma once

#include <vector>

#include "sparsight/kernels/threads/own_threads.h"
#include "sparsight/serve/batcher.h"
#include "sparsight/serve/metrics.h"
#include "sparsight/serve/served_model.h"

namespace sparsight::serve {

// Threads on which the hidden layers of experts are not split: into how many parts would depend on the rows of the
// whole batch, and so would the last bits of each image (kernels/experts/task_plan.h). Experts and rows are still
// shared out.
class UnsplitThreads final : public cpu::Threads {
 public:
  explicit UnsplitThreads(int64_t count) : threads_(count) {}
  int64_t count() const override { return threads_.count(); }
  bool inside() const override { return true; }
  void run(int64_t threads, FunctionRef<void()> work) override { threads_.run(threads, work); }

 private:
  cpu::OwnThreads threads_;
};

class BatchRunner {
 public:
  BatchRunner(const ServedModel& model, int64_t threads, Metrics& metrics)
      : program_(model.program), threads_(threads), metrics_(metrics) {}

  // From one thread at a time. Each image is a capacity group of its own, so that images do not crowd out each other's
  // tokens. With consistent arithmetic an image's fp32 answer has the same bits in every batch.
  std::vector<ImageAnswer> run(const std::vector<const ImageRequest*>& batch);

 private:
  std::shared_ptr<const engine::Program> program_;
  UnsplitThreads threads_;
  Metrics& metrics_;
  engine::Session session_;
  std::vector<float> pixels_;  // [B,C,H,W]
  std::vector<int64_t> numbers_, groups_;
};

}  // namespace sparsight::serve
