#include "sparsight/core/background_thread.h"

#include <signal.h>

#include <system_error>
#include <thread>
#include <utility>

namespace sparsight {

bool start_background_thread(std::function<void()> body) {
  sigset_t all, before;  // a thread begins with the mask of the one that starts it
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  bool started = true;
  try {
    std::thread(std::move(body)).detach();
  } catch (const std::system_error&) {
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace sparsight
