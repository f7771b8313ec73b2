#include "sparsight/serve/connection_threads.h"

#include "sparsight/core/background_thread.h"

namespace sparsight::serve {
namespace {

thread_local bool refused = false;

}  // namespace

bool ConnectionThreads::is_refused() { return refused; }

// Whether a thread is there for one more connection, or begins now. The mutex is locked.
bool ConnectionThreads::has_thread() {
  if (idle_ > std::ssize(waiting_)) return true;
  if (std::ssize(threads_) >= limit_) return false;
  std::thread thread = background_thread([this] { work(); });
  if (!thread.joinable()) return false;  // the system allows no more
  threads_.push_back(std::move(thread));
  ++idle_;
  return true;
}

void ConnectionThreads::enqueue(std::function<void()> connection) {
  {
    const std::lock_guard lock(mutex_);
    if (has_thread()) {
      waiting_.push_back(std::move(connection));
      arrival_.notify_one();
      return;
    }
  }
  ++counts_.refused;
  refused = true;
  connection();
  refused = false;
}

void ConnectionThreads::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrival_.wait(lock, [&] { return !waiting_.empty() || stopped_; });
    if (waiting_.empty()) return;
    const std::function<void()> connection = std::move(waiting_.front());
    waiting_.pop_front();
    --idle_;
    lock.unlock();
    ++counts_.open;
    connection();
    --counts_.open;
    lock.lock();
    ++idle_;
  }
}

void ConnectionThreads::shutdown() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    arrival_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace sparsight::serve
