#include "sparsight/kernels/threads/task_team.h"

#include <memory>
#include <thread>

#include "sparsight/core/background_thread.h"
#include "sparsight/kernels/threads/follower.h"

namespace sparsight::cpu {
namespace {

thread_local int depth = 0;  // of calls of work on this thread

struct InUse {
  std::atomic_flag& flag;
  ~InUse() { flag.clear(); }
};

}  // namespace

// The caller leads the first member, the second one leads the third, and so on.
struct TaskTeam::Member {
  bool leads;
  Follower follower = {};
  std::thread thread = {};
  std::atomic<Member*> next = nullptr;
};

TaskTeam::~TaskTeam() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wake_.notify_all();
  for (Member* member = first_; member;) {
    member->thread.join();
    const std::unique_ptr<Member> ended(member);
    member = member->next;
  }
}

void TaskTeam::run(int64_t threads, FunctionRef<void()> work, bool pair_up) {
  if (threads <= 1 || in_use_.test_and_set()) return work();
  const InUse use{in_use_};
  pairs_ = pair_up;
  start(threads - 1);
  lead(first_);
  {
    const std::lock_guard lock(mutex_);
    work_ = &work, places_ = threads - 1, error_ = nullptr;
  }
  wake_.notify_all();
  call(work);
  std::unique_lock lock(mutex_);
  work_ = nullptr;  // who has not begun does not
  ended_.wait(lock, [&] { return running_ == 0; });
  if (error_) std::rethrow_exception(error_);
}

bool TaskTeam::inside() { return depth > 0; }

void TaskTeam::start(int64_t members) {
  std::atomic<Member*>* place = &first_;
  for (bool leads = false; members > 0; --members, leads = !leads, place = &place->load()->next) {
    if (*place) continue;
    std::unique_ptr<Member> member(new Member{.leads = leads});
    member->thread = background_thread([this, self = member.get()] { serve(*self); });
    if (!member->thread.joinable()) return;
    *place = member.release();
  }
}

void TaskTeam::lead(const std::atomic<Member*>& member) const {
  if (Member* const follower = member) follower->follower.lead(pairs_);
}

void TaskTeam::serve(Member& self) {
  self.follower.begin();
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stops_ || (work_ && places_ > 0); });
    if (stops_) return;
    const FunctionRef<void()> work = *work_;
    --places_, ++running_;
    lock.unlock();
    if (self.leads) lead(self.next);
    call(work);
    lock.lock();
    if (--running_ == 0) ended_.notify_one();
  }
}

void TaskTeam::call(FunctionRef<void()> work) {
  ++depth;
  try {
    work();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  --depth;
}

}  // namespace sparsight::cpu
