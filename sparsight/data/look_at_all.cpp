#include "sparsight/data/look_at_all.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"

namespace sparsight {

Looks look_at_all(int64_t count, const std::function<void(int64_t)>& look,
                  const std::function<void(int64_t, int64_t)>& progress) {
  Looks looks;
  std::atomic<int64_t> next = 0, done = 0;
  std::mutex mutex;
  std::exception_ptr failure;  // not the fault of an image: out of memory
  const auto work = [&] {
    try {
      for (int64_t i = next++; i < count && !interrupted(); i = next++) {
        try {
          look(i);
        } catch (const Error& error) {
          const std::lock_guard lock(mutex);
          looks.problems[i] = error.what();
        }
        progress(++done, count);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> threads;
    const int64_t cores = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 16);
    try {
      for (int64_t t = 1; t < std::min(cores, count); ++t) threads.emplace_back(work);
    } catch (const std::system_error&) {  // no more threads available: fewer do the work
    }
    work();
  }
  if (failure) std::rethrow_exception(failure);
  looks.done = done;
  return looks;
}

std::vector<DataSetPtr> distinct_parts(std::initializer_list<DataSetPtr> parts) {
  std::vector<DataSetPtr> distinct;
  for (const DataSetPtr& part : parts)
    if (part && std::ranges::find(distinct, part) == distinct.end()) distinct.push_back(part);
  return distinct;
}

}  // namespace sparsight
