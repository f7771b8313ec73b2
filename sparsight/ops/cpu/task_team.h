// The threads that run tasks while other programs take the cores (thread_waiting.h). A team of OpenMP waits at the end
// of its work for all of its threads, also for one that the system has not let run since it was woken, although others
// have done its tasks. This team waits only for threads that have begun, and threads pair up (follower.h) where
// thread_waiting.h says so.
#pragma once

#include <cstdint>

#include <c10/util/FunctionRef.h>

namespace sparsight::cpu {

// Calls work() on this thread and on up to threads - 1 others, and returns when all calls that began have ended: work()
// must take tasks until none is left. Rethrows what a call has thrown. Alone on this thread if the team is in use.
void run_on_team(int64_t threads, c10::function_ref<void()> work);

}  // namespace sparsight::cpu
