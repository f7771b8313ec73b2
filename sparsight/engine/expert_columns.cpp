#include "sparsight/engine/expert_columns.h"

#include <algorithm>
#include <utility>

#include "sparsight/core/background_thread.h"
#include "sparsight/core/error.h"

namespace sparsight::engine {

int64_t ExpertColumns::add_layer(int64_t experts, Read read) {
  layers_.push_back({experts, std::move(read)});
  if (experts > static_cast<int64_t>(entries_.size())) entries_.resize(static_cast<size_t>(experts));
  return static_cast<int64_t>(layers_.size()) - 1;
}

// With mutex_ locked.
ColumnPtr ExpertColumns::find(int64_t expert) {
  ColumnPtr column = entries_[static_cast<size_t>(expert)].column.lock();
  if (column) keep(expert, column);
  return column;
}

// With mutex_ locked.
void ExpertColumns::keep(int64_t expert, const ColumnPtr& column) {
  if (kept_ == 0) return;
  const auto found = std::ranges::find(recent_, expert, &std::pair<int64_t, ColumnPtr>::first);
  if (found != recent_.end())
    recent_.splice(recent_.begin(), recent_, found);
  else
    recent_.emplace_front(expert, column);
  if (static_cast<int64_t>(recent_.size()) > kept_) recent_.pop_back();
}

ColumnPtr ExpertColumns::acquire(int64_t expert) {
  SPARSIGHT_CHECK(expert >= 0 && expert < static_cast<int64_t>(entries_.size()));
  Entry& entry = entries_[static_cast<size_t>(expert)];
  std::unique_lock lock(mutex_);
  for (;;) {
    if (ColumnPtr column = find(expert)) return column;
    if (!entry.reading) break;
    changed_.wait(lock);
  }
  entry.reading = true;
  lock.unlock();
  auto column = std::make_shared<ExpertColumn>();
  const auto finish = [&] {
    lock.lock();
    entry.reading = false;
    changed_.notify_all();
  };
  try {
    for (const Layer& layer : layers_)
      column->layers.push_back(expert < layer.experts ? layer.read(expert) : cpu::PackedExperts());
  } catch (...) {
    finish();
    throw;
  }
  entry.column = column;  // nobody looks while it is being read
  finish();
  ++reads_;
  keep(expert, column);
  return column;
}

std::shared_future<ColumnPtr> ExpertColumns::prefetch(int64_t expert) {
  std::promise<ColumnPtr> ready;
  {
    const std::lock_guard lock(mutex_);
    if (ColumnPtr column = find(expert)) {
      ready.set_value(std::move(column));
      return ready.get_future().share();
    }
  }
  auto work = std::make_shared<std::packaged_task<ColumnPtr()>>(
      [self = shared_from_this(), expert] { return self->acquire(expert); });
  std::shared_future<ColumnPtr> future = work->get_future().share();
  if (!start_background_thread([work] { (*work)(); })) (*work)();
  return future;
}

int64_t ExpertColumns::reads() const {
  const std::lock_guard lock(mutex_);
  return reads_;
}

}  // namespace sparsight::engine
