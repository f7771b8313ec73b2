// What rank 0 does for all ranks of a group, and what they hand to it.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/core/function_ref.h"
#include "sparsight/dist/group.h"

namespace sparsight::dist {

// On rank 0 the bytes of each rank, of any lengths; on the others nothing.
std::vector<std::string> gather_bytes(Group& group, const std::string& bytes);

// An error of rank 0, on another rank: rank 0 prints it, so nobody else needs to.
class RankZeroError : public Error {
 public:
  RankZeroError(const std::string& message, int exit_code) : Error(message), exit_code_(exit_code) {}
  int exit_code() const override { return exit_code_; }

 private:
  int exit_code_;
};

// The text that `make` returns on rank 0, which alone calls it. Where it raises Error, so do all ranks: the others
// RankZeroError.
std::string from_rank_zero(Group& group, FunctionRef<std::string()> make);

}  // namespace sparsight::dist
