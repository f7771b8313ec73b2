#include "sparsight/kernels/pack/packed_copies.h"

#include <utility>

namespace sparsight::cpu {
namespace {

thread_local PackedCopies* current_copies = nullptr;

}  // namespace

PackedMatrix PackedCopies::get(const PackedKey& key, FunctionRef<PackedMatrix()> pack) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = copies_.find(key); found != copies_.end()) return found->second;
  }
  PackedMatrix packed = pack();  // not under the lock: other threads pack other weights meanwhile
  if (!keeps(key.data)) return packed;
  const std::scoped_lock lock(mutex_);
  return copies_.emplace(key, std::move(packed)).first->second;
}

void PackedCopies::clear() {
  const std::scoped_lock lock(mutex_);
  copies_.clear();
}

PackedCopies* PackedCopies::current() { return current_copies; }

PackedCopiesScope::PackedCopiesScope(PackedCopies* copies) : before_(std::exchange(current_copies, copies)) {}

PackedCopiesScope::~PackedCopiesScope() { current_copies = before_; }

}  // namespace sparsight::cpu
