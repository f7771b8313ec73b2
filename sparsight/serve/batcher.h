// A queue that answers images in batches: while one batch is computed, the images of other requests gather for the
// next. Letters: moe/axes.md.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sparsight/serve/answer.h"

namespace sparsight::serve {

struct ImageRequest {
  std::vector<float> pixels;  // [C,H,W] in 0..1
  WantedParts wanted = {};
};

struct BatcherOptions {
  int64_t max_batch = 32;                  // images computed at once
  std::chrono::microseconds max_delay{0};  // how long an image waits for others before its batch begins
  int64_t max_queue = 256;                 // images that wait
};

class Batcher {
 public:
  using Clock = std::chrono::steady_clock;
  // Answers of a batch, in its order. What it raises becomes the problem of each of its images.
  using RunBatch = std::function<std::vector<ImageAnswer>(const std::vector<const ImageRequest*>& batch)>;

  // One thread calls `run`, on one batch after the other. Raises Error where the system allows no thread.
  Batcher(RunBatch run, const BatcherOptions& options);
  ~Batcher();  // answers what is in the queue
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // The answers to the images of one request, which may be computed in different batches. Raises HttpError: 503 where
  // the queue has no room for all of them, where they are not answered by `deadline`, and after stop().
  std::vector<ImageAnswer> answer(std::vector<ImageRequest> images, Clock::time_point deadline);

  int64_t waiting() const;  // images in the queue
  // Takes no more images; those in the queue are answered.
  void stop();

 private:
  struct Job {
    std::vector<ImageRequest> images;
    std::vector<ImageAnswer> answers;
    size_t unanswered = 0;
    std::condition_variable done;
  };
  struct Entry {
    std::shared_ptr<Job> job;
    size_t image = 0;
    Clock::time_point arrived;
  };

  void work();
  std::vector<Entry> next_batch();  // empty: there will be no more
  std::vector<ImageAnswer> run_checked(const std::vector<Entry>& batch) const;

  const RunBatch run_;
  const BatcherOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable arrival_;
  std::deque<Entry> queue_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace sparsight::serve
