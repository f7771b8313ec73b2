// Threads that run beside the program's own. They get no signals: those are for the program's own threads.
#pragma once

#include <functional>
#include <thread>

namespace sparsight {

// Runs `body` on a new thread. One that cannot be joined, and has not run `body`, where the system allows no more.
std::thread background_thread(std::function<void()> body);

// The same on a thread that nobody waits for. Returns false where the system allows no more threads.
bool start_background_thread(std::function<void()> body);

}  // namespace sparsight
