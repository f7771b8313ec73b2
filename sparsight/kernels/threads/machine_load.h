// What a thread that looks every 50 ms finds out about other programs on the machine (contention.h).
#pragma once

#include <functional>

namespace sparsight::cpu {

// Starts that thread, on the first call; the next ones cost nothing. Does nothing where the system does not count how
// long threads wait for cores.
void watch_machine();

// Other programs take the cores that this process's threads need. False until watch_machine() has been called.
bool machine_is_busy();

// They want all processors.
bool machine_is_crowded();

// Sets what the thread calls whenever it has looked; once at once, on this thread. Not more than one.
void call_after_each_look(std::function<void()> body);

}  // namespace sparsight::cpu
