// Runs of the program whose disk fails: at one of its file operations it is killed, or the disk is full from there on.
// What does it is a library that is preloaded into the program (disk_fault_shim.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace sparsight::testing {

enum class DiskFault { kill, full };

// What a program did to a file: "rename .../last.safetensors". Operations are numbered from 1.
struct FileOperation {
  int64_t number = 0;
  std::string text;
};

class DiskFaults {
 public:
  // Only operations on files below `folder`, an absolute path, are counted.
  explicit DiskFaults(std::string folder) : folder_(std::move(folder)) {}

  // Runs the program to its end without a fault, and keeps its operations.
  ProgramResult run_and_count(const std::vector<std::string>& arguments);
  const std::vector<FileOperation>& operations() const { return operations_; }
  // At most `limit` of them: the first and last thirds of that number, where runs begin and end, and the others evenly
  // spaced. One stands for successive writes to the same temporary file, which nobody reads until it is renamed.
  std::vector<FileOperation> sampled(size_t limit) const;

  ProgramResult run_with(DiskFault fault, int64_t at, const std::vector<std::string>& arguments) const;

 private:
  ProgramOptions options(int64_t at, DiskFault fault) const;

  std::string folder_;
  TemporaryFolder aside_;  // of the counter and the log
  std::vector<FileOperation> operations_;
};

}  // namespace sparsight::testing
