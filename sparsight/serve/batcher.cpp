#include "sparsight/serve/batcher.h"

#include <algorithm>

#include "sparsight/core/background_thread.h"
#include "sparsight/serve/http_error.h"

namespace sparsight::serve {

Batcher::Batcher(RunBatch run, const BatcherOptions& options) : run_(std::move(run)), options_(options) {
  thread_ = background_thread([this] { work(); });
  if (!thread_.joinable()) fail("the system allows no more threads; raise the limit (ulimit -u) or end other programs");
}

Batcher::~Batcher() {
  stop();
  thread_.join();
}

void Batcher::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  arrival_.notify_all();
}

int64_t Batcher::waiting() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(queue_);
}

std::vector<ImageAnswer> Batcher::answer(std::vector<ImageRequest> images, Clock::time_point deadline) {
  const auto job = std::make_shared<Job>();
  job->images = std::move(images);
  job->unanswered = job->images.size();
  job->answers.resize(job->images.size());
  std::unique_lock lock(mutex_);
  if (stopped_) fail_http(503, "the server is stopping; ask another one");
  if (std::ssize(queue_) + std::ssize(job->images) > options_.max_queue)
    fail_http(503, "the queue of ", options_.max_queue, " images is full; try again later");
  const Clock::time_point now = Clock::now();
  for (size_t i = 0; i < job->images.size(); ++i) queue_.push_back({job, i, now});
  arrival_.notify_all();
  if (!job->done.wait_until(lock, deadline, [&] { return job->unanswered == 0; })) {
    std::erase_if(queue_, [&](const Entry& entry) { return entry.job == job; });
    fail_http(503, "the answer took too long; try again later, with fewer images");
  }
  return std::move(job->answers);
}

std::vector<Batcher::Entry> Batcher::next_batch() {
  std::unique_lock lock(mutex_);
  const auto full = [&] { return std::ssize(queue_) >= options_.max_batch; };
  do {  // a request that gave up may have emptied the queue
    arrival_.wait(lock, [&] { return !queue_.empty() || stopped_; });
    if (queue_.empty()) return {};
    arrival_.wait_until(lock, queue_.front().arrived + options_.max_delay, [&] { return full() || stopped_; });
  } while (queue_.empty());
  std::vector<Entry> batch;
  while (!queue_.empty() && std::ssize(batch) < options_.max_batch) {
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return batch;
}

std::vector<ImageAnswer> Batcher::run_checked(const std::vector<Entry>& batch) const {
  std::vector<const ImageRequest*> images;
  for (const Entry& entry : batch) images.push_back(&entry.job->images[entry.image]);
  std::string problem;
  try {
    std::vector<ImageAnswer> answers = run_(images);
    SPARSIGHT_CHECK(answers.size() == batch.size());
    return answers;
  } catch (const std::exception& error) {
    problem = error.what();
  }
  return std::vector<ImageAnswer>(batch.size(), ImageAnswer{.problem = problem});
}

void Batcher::work() {
  for (std::vector<Entry> batch = next_batch(); !batch.empty(); batch = next_batch()) {
    std::vector<ImageAnswer> answers = run_checked(batch);
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < batch.size(); ++i) {
      Job& job = *batch[i].job;
      job.answers[batch[i].image] = std::move(answers[i]);
      if (--job.unanswered == 0) job.done.notify_all();
    }
  }
}

}  // namespace sparsight::serve
