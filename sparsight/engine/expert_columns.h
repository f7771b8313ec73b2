// Experts that are read from a frozen model when an image chooses them, and dropped again. A column is one expert in
// all MoE layers: where one router decides for the whole model (Daxberger et al. 2023, "Mobile V-MoEs", section 5), an
// image needs the dense part and one column.
#pragma once

#include <condition_variable>
#include <functional>
#include <future>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "sparsight/kernels/experts/packed_experts.h"

namespace sparsight::engine {

struct ExpertColumn {
  // One expert each, by number of the layer; empty for a layer of fewer experts.
  std::vector<cpu::PackedExperts> layers;
};
using ColumnPtr = std::shared_ptr<const ExpertColumn>;

// From any thread.
class ExpertColumns : public std::enable_shared_from_this<ExpertColumns> {
 public:
  using Read = std::function<cpu::PackedExperts(int64_t expert)>;

  // kept: columns that stay in memory after the runs that used them, the least recently used dropped first.
  explicit ExpertColumns(int64_t kept) : kept_(kept) {}

  // Before the first acquire(): a layer of so many experts. Returns its number.
  int64_t add_layer(int64_t experts, Read read);

  // The column, which stays while somebody has it. Reads it where it is not in memory, or waits for the thread that
  // reads it. Raises Error where the file cannot be read any more or is damaged.
  ColumnPtr acquire(int64_t expert);
  // The same on a thread of its own, unless the column is in memory.
  std::shared_future<ColumnPtr> prefetch(int64_t expert);

  int64_t reads() const;  // columns read so far

 private:
  struct Entry {
    std::weak_ptr<const ExpertColumn> column;
    bool reading = false;
  };
  struct Layer {
    int64_t experts;
    Read read;
  };
  ColumnPtr find(int64_t expert);  // null where it is not in memory
  void keep(int64_t expert, const ColumnPtr& column);

  const int64_t kept_;
  std::vector<Layer> layers_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Entry> entries_;                       // by expert
  std::list<std::pair<int64_t, ColumnPtr>> recent_;  // the most recently used first
  int64_t reads_ = 0;
};

// How much of a frozen model's experts is in memory.
struct ExpertMemory {
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  int64_t kept_columns = kAll;  // kAll: all are read when the model is; 0: those in use alone
};

}  // namespace sparsight::engine
