// For losses that contain gradients (create_graph). The layers with hand-written backward passes have no second
// derivative; while a TwiceDifferentiable lives, they compute by torch's operations instead, which autograd can
// differentiate any number of times. Slower, and with other rounding.
#pragma once

#include <mutex>

#include "sparsight/core/log.h"

namespace sparsight {

// On the thread that makes it, for the forward passes during its life.
class TwiceDifferentiable {
 public:
  TwiceDifferentiable() : before_(on()) { on() = true; }
  ~TwiceDifferentiable() { on() = before_; }
  TwiceDifferentiable(const TwiceDifferentiable&) = delete;
  TwiceDifferentiable& operator=(const TwiceDifferentiable&) = delete;

  // Asked by an operation that would otherwise run on its kernels. The first time that one has to do without them in
  // this process is logged.
  static bool wanted() {
    if (!on()) return false;
    static std::once_flag logged;
    std::call_once(logged, [] {
      log_info(
          "the loss needs second derivatives: attention, norms, linear layers and experts run on torch's "
          "operations instead of the kernels, which is slower");
    });
    return true;
  }

 private:
  static bool& on() {
    thread_local bool second_derivatives = false;
    return second_derivatives;
  }
  bool before_;
};

}  // namespace sparsight
