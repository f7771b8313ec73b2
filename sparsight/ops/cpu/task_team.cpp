#include "sparsight/ops/cpu/task_team.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>

#include "sparsight/core/background_thread.h"
#include "sparsight/ops/cpu/follower.h"
#include "sparsight/ops/cpu/thread_waiting.h"

namespace sparsight::cpu {
namespace {

class Team {
 public:
  void run(int64_t threads, c10::function_ref<void()> work) {
    if (in_use_.test_and_set()) return work();
    const InUse use{in_use_};
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

 private:
  struct InUse {
    std::atomic_flag& flag;
    ~InUse() { flag.clear(); }
  };

  // The caller leads the first member, the second one leads the third, and so on.
  struct Member {
    bool leads;
    Follower follower = {};
    std::atomic<Member*> next = nullptr;
  };

  void start(int64_t members) {
    std::atomic<Member*>* place = &first_;
    for (bool leads = false; members > 0; --members, leads = !leads, place = &place->load()->next) {
      if (*place) continue;
      auto* member = new Member{.leads = leads};
      if (!start_background_thread([this, member] { serve(*member); })) return delete member;
      *place = member;
    }
  }

  static void lead(const std::atomic<Member*>& member) {
    if (Member* const follower = member) follower->follower.lead(threads_pair_up());
  }

  void serve(Member& self) {
    self.follower.begin();
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return work_ && places_ > 0; });
      const c10::function_ref<void()> work = *work_;
      --places_, ++running_;
      lock.unlock();
      if (self.leads) lead(self.next);
      call(work);
      lock.lock();
      if (--running_ == 0) ended_.notify_one();
    }
  }

  void call(c10::function_ref<void()> work) {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
  }

  std::atomic_flag in_use_;
  std::atomic<Member*> first_ = nullptr;
  std::mutex mutex_;  // of what follows
  std::condition_variable wake_, ended_;
  const c10::function_ref<void()>* work_ = nullptr;
  int64_t places_ = 0, running_ = 0;
  std::exception_ptr error_;
};

}  // namespace

void run_on_team(int64_t threads, c10::function_ref<void()> work) {
  static auto* team = new Team;  // never ends, as its threads do not
  team->run(threads, work);
}

}  // namespace sparsight::cpu
