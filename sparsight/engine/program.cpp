#include "sparsight/engine/program.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/engine/file/pack_cache.h"

namespace sparsight::engine {

// What the steps of a run see.
class SessionFrame final : public Frame {
 public:
  SessionFrame(const Program& program, Session& session, cpu::Threads& threads, const Batch& batch)
      : program_(program), session_(session), threads_(threads), batch_(batch) {}

  cpu::Threads& threads() override { return threads_; }
  int64_t images() const override { return batch_.images; }
  const int64_t* image_numbers() const override { return batch_.image_numbers; }
  const int64_t* image_groups() const override { return batch_.image_groups; }
  const float* read(const Value& value) const override {
    return value.number == Program::kInput ? batch_.pixels : memory(value);
  }
  float* write(const Value& value) override { return memory(value); }
  Routing& routing(int64_t number) override { return session_.routings_[static_cast<size_t>(number)]; }
  void prefetch(ExpertColumns& columns, int64_t expert) override {
    if (!find(expert)) session_.columns_.emplace_back(expert, columns.prefetch(expert));
  }
  void need(ExpertColumns& columns, int64_t expert) override {
    prefetch(columns, expert);
    find(expert)->get();
  }
  // No thread reads a column after the run, also where that failed: the caller may close the model then.
  ~SessionFrame() override {
    for (const auto& [expert, column] : session_.columns_) column.wait();
    session_.columns_.clear();
  }

 private:
  std::shared_future<ColumnPtr>* find(int64_t expert) {
    for (auto& [number, column] : session_.columns_)
      if (number == expert) return &column;
    return nullptr;
  }
  float* memory(const Value& value) const {
    const auto buffer = static_cast<size_t>(program_.value_to_buffer_[static_cast<size_t>(value.number)]);
    return session_.buffers_[buffer].floats(program_.buffer_numbers_[buffer] * batch_.images);
  }

  const Program& program_;
  Session& session_;
  cpu::Threads& threads_;
  const Batch& batch_;
};

Program::Program(Shape pixels, std::vector<std::unique_ptr<Step>> steps, Value features, Value logits)
    : pixels_(pixels), steps_(std::move(steps)), features_(features), logits_(logits) {
  for (const auto& step : steps_)
    if (const auto* route = dynamic_cast<const RouteStep*>(step.get())) routes_.push_back(route);
  place_values();
}

// A value lies in a buffer that no value still to be read is in.
void Program::place_values() {
  int64_t values = 1;
  for (const auto& step : steps_) values = std::max(values, step->to().number + 1);
  std::vector<size_t> last_read(static_cast<size_t>(values), 0);
  for (size_t i = 0; i < steps_.size(); ++i)
    for (const Value& value : steps_[i]->reads()) last_read[static_cast<size_t>(value.number)] = i;
  for (const Value& kept : {features_, logits_}) last_read[static_cast<size_t>(kept.number)] = steps_.size();

  value_to_buffer_.assign(static_cast<size_t>(values), -1);
  std::vector<int64_t> holds;  // the value that each buffer has
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Value& to = steps_[i]->to();
    if (!to.exists() || value_to_buffer_[static_cast<size_t>(to.number)] >= 0) continue;
    const auto is_free = [&](int64_t value) { return last_read[static_cast<size_t>(value)] < i; };
    auto found = std::ranges::find_if(holds, is_free);
    if (found == holds.end()) {
      holds.push_back(to.number), buffer_numbers_.push_back(0);
      found = holds.end() - 1;
    }
    *found = to.number;
    const auto buffer = static_cast<size_t>(found - holds.begin());
    value_to_buffer_[static_cast<size_t>(to.number)] = static_cast<int64_t>(buffer);
    buffer_numbers_[buffer] = std::max(buffer_numbers_[buffer], to.shape.numbers());
  }
}

int64_t Program::bytes() const {
  int64_t sum = 0;
  for (const auto& step : steps_) sum += step->bytes();
  return sum;
}

int64_t Program::bytes_per_image() const {
  int64_t sum = 0;
  for (const int64_t numbers : buffer_numbers_) sum += 4 * numbers;
  return sum;
}

Answer Program::run(Session& session, cpu::Threads& threads, const Batch& batch) const {
  return run(session, threads, batch, nullptr);
}

Answer Program::run(Session& session, cpu::Threads& threads, const Batch& batch, RouteHook after_route) const {
  return run(session, threads, batch, &after_route);
}

Answer Program::run(Session& session, cpu::Threads& threads, const Batch& batch, const RouteHook* after_route) const {
  if (packed) packed->restore();
  session.buffers_.resize(buffer_numbers_.size());
  session.routings_.resize(routes_.size());
  SessionFrame frame(*this, session, threads, batch);
  for (const auto& step : steps_) {
    step->run(frame);
    const auto* const route = after_route || columns ? dynamic_cast<const RouteStep*>(step.get()) : nullptr;
    if (!route) continue;
    const Routing& routing = frame.routing(route->number());
    if (after_route) (*after_route)(*route, frame.routing(route->number()));
    if (!columns || routing.mixes_tokens()) continue;
    for (int64_t e = 0; e < routing.experts; ++e)
      if (routing.offsets[e + 1] > routing.offsets[e]) frame.prefetch(*columns, e);
  }
  return {frame.read(logits_), frame.read(features_), session.routings_};
}

}  // namespace sparsight::engine
