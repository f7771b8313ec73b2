#include "sparsight/engine/expert_rows.h"

#include <numeric>

#include "sparsight/kernels/routing/sort_by_expert.h"

namespace sparsight::engine {

void ExpertRows::set(const Routing& routing, int64_t tokens_read) {
  const int64_t assignments = routing.assignments(), per_image = routing.layout.per_image;
  const int64_t *order = routing.order.data(), *offsets = routing.offsets.data();
  if (tokens_read < per_image) {
    kept_.resize(assignments);
    for (int64_t a = 0; a < assignments; ++a) kept_[a] = routing.kept[a] && routing.token[a] % per_image < tokens_read;
    cpu::expert_offsets(routing.expert.data(), kept_.data(), assignments, routing.experts,
                        offsets_.resize(routing.experts + 1));
    cpu::order_by_expert(routing.expert.data(), kept_.data(), assignments, routing.experts, offsets_.data(),
                         order_.resize(offsets_[routing.experts]));
    order = order_.data(), offsets = offsets_.data();
  }
  const int64_t rows = offsets[routing.experts];
  gate_.resize(rows);
  for (int64_t r = 0; r < rows; ++r) gate_[r] = routing.gate[order[r]];
  cpu::number_rows(routing.token.data(), assignments, order, rows, routing.tokens, row_token_.resize(rows),
                   token_rows_.resize(rows), token_offsets_.resize(routing.tokens + 1));
  numbers_ = {.map = {.tokens = routing.tokens,
                      .rows = rows,
                      .row_token = row_token_.data(),
                      .token_rows = token_rows_.data(),
                      .token_offsets = token_offsets_.data()},
              .in_place = false,
              .offset = offsets,
              .gate = gate_.data()};
}

void ExpertRows::set_in_place(const int64_t* offsets, int64_t experts) {
  const int64_t rows = offsets[experts];
  for (Array<int64_t>* each : {&row_token_, &token_rows_, &token_offsets_}) {
    const int64_t size = each == &token_offsets_ ? rows + 1 : rows;
    int64_t* const numbers = each->resize(size);
    std::iota(numbers, numbers + size, int64_t{0});
  }
  numbers_ = {.map = {.tokens = rows,
                      .rows = rows,
                      .row_token = row_token_.data(),
                      .token_rows = token_rows_.data(),
                      .token_offsets = token_offsets_.data()},
              .in_place = true,
              .offset = offsets};
}

}  // namespace sparsight::engine
