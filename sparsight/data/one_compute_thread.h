// One compute thread for the work on single images, which is too small to share.
#pragma once

namespace sparsight {

// The calling thread uses one compute thread as long as this lives; other threads keep theirs.
class OneComputeThread {
 public:
  OneComputeThread();
  ~OneComputeThread();
  OneComputeThread(const OneComputeThread&) = delete;
  OneComputeThread& operator=(const OneComputeThread&) = delete;

 private:
  int before_;
};

}  // namespace sparsight
