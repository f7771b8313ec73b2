// Threads that run beside the program's own, to its end.
#pragma once

#include <functional>

namespace sparsight {

// Runs `body` on a new thread that nobody waits for. The thread gets no signals: they are for the program's own.
// Returns false where the system allows no more threads.
bool start_background_thread(std::function<void()> body);

}  // namespace sparsight
