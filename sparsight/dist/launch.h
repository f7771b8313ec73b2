// Starts the processes of a group on this machine, and starts them again where one was killed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sparsight::dist {

struct Launch {
  std::vector<std::string> command;  // program and arguments, of every process
  int64_t processes = 1;
  int64_t max_restarts = 3;  // how often all are started again after one was killed by a signal
};

// Waits for all of them. Where one fails, the others are ended. An interrupt is passed on to them. Returns the exit
// code: that of the first one that failed, or 0.
int launch(const Launch& launch);

}  // namespace sparsight::dist
