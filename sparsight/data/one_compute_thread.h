// One compute thread for work that is too small to share, such as that on single images: waking another thread may take
// longer.
#pragma once

namespace sparsight {

// The calling thread uses one compute thread as long as this lives, if the work is `small`; other threads keep theirs.
class OneComputeThread {
 public:
  explicit OneComputeThread(bool small = true);
  ~OneComputeThread();
  OneComputeThread(const OneComputeThread&) = delete;
  OneComputeThread& operator=(const OneComputeThread&) = delete;

 private:
  int before_;
};

}  // namespace sparsight
