#include "sparsight/core/background_thread.h"

#include <signal.h>

#include <system_error>
#include <utility>

namespace sparsight {

std::thread background_thread(std::function<void()> body) {
  sigset_t all, before;  // a thread begins with the mask of the one that starts it
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::move(body));
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

bool start_background_thread(std::function<void()> body) {
  std::thread thread = background_thread(std::move(body));
  if (!thread.joinable()) return false;
  thread.detach();
  return true;
}

}  // namespace sparsight
