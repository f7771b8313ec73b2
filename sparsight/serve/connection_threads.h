// A thread for each open connection, up to a limit.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <httplib.h>

namespace sparsight::serve {

// Shared between the server and the library, which owns ConnectionThreads.
struct ConnectionCounts {
  std::atomic<int64_t> open{0}, refused{0};
};

class ConnectionThreads final : public httplib::TaskQueue {
 public:
  ConnectionThreads(int64_t limit, ConnectionCounts& counts) : limit_(limit), counts_(counts) {}

  // Runs `connection` on a thread; beyond the limit on this one, where is_refused() is then true.
  void enqueue(std::function<void()> connection) override;
  // Waits for the connections that are open.
  void shutdown() override;

  // Whether this thread runs a connection that is one too many.
  static bool is_refused();

 private:
  void work();
  bool has_thread();

  const int64_t limit_;
  ConnectionCounts& counts_;
  std::mutex mutex_;
  std::condition_variable arrival_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  int64_t idle_ = 0;
  bool stopped_ = false;
};

}  // namespace sparsight::serve
