// Torch's OpenMP threads as those that kernels run on, which wait for each other busily on an idle machine, and asleep
// on a busy one.
//
// A libgomp thread that waits spins for some 10 ms before it sleeps. On an idle machine this is fastest: to sleep and
// be woken takes longer than most waits. But if other programs run, spinning threads occupy the cores that the threads
// they wait for need, and everything becomes 5 to 100 times slower. libgomp reads OMP_WAIT_POLICY when it is loaded,
// before any code of ours runs, and has no function that changes it later. But it spins for a few microseconds only
// while it has more threads than the process has cores. So while the machine is busy (kernels/threads/machine_load.h),
// a second, idle team of threads exists, which never runs and makes libgomp's threads too many. Tasks of kernels then
// run on a team of our own (kernels/threads/task_team.h).
#pragma once

#include "sparsight/kernels/threads/threads.h"

namespace sparsight::cpu {

// count() is at::get_num_threads() of the caller.
Threads& torch_threads();

// Starts to watch the machine, on the first call; the next ones cost nothing. Whatever makes models calls it, and
// torch_threads() does. Does nothing if OMP_WAIT_POLICY or GOMP_SPINCOUNT is set, with another OpenMP than libgomp, or
// where the system does not count how long threads wait for cores.
void adapt_thread_waiting();

}  // namespace sparsight::cpu
