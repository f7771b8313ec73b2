// Products of rows with the matrix of each row's expert, in tasks of some rows, wherever rows come from and go to. The
// bits do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "sparsight/kernels/gemm/row_blocks.h"
#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/pack/packed_operand.h"
#include "sparsight/kernels/threads/tasks.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::cpu {

struct RowProducts {
  const int64_t* offset = nullptr;  // [E+1]: expert e owns rows offset[e] .. offset[e+1]
  int64_t experts = 1;
  WeightView matrices;          // [E,depth,columns]
  const float* bias = nullptr;  // [E,columns], or null
  bool bf16 = false;            // Gemm::bf16_products
};

// Rows first .. first + count, of one expert.
struct RowTask {
  int64_t expert, first, count;
};
std::pmr::vector<RowTask> row_tasks(const Threads& threads, const RowProducts& products);

// Scratch of each thread.
struct RowScratch {
  Workspace rows, results, panel;
};
RowScratch& row_scratch();

// Rows [R,depth] in memory as the input of products.
struct PlainRows {
  const float* data;
  int64_t depth;
  // Writes the rows of a task as blocks of columns (row_blocks.h).
  void gather(const RowTask& task, float* rows) const { to_blocks(data + task.first * depth, task.count, depth, rows); }
  void prefetch(const RowTask& upcoming, Gemm& before) const {
    before.prefetch_all(data + upcoming.first * depth, upcoming.count, depth, depth);
  }
};

// in: as PlainRows. out.start(task, p) sets the C of a product, and what it starts from; out.finish(task, p) follows
// it.
template <class In, class Out>
void multiply_rows(Threads& threads, const RowProducts& products, const In& in, const Out& out) {
  const Kernels& kernel = kernels();
  const WeightView& matrices = products.matrices;
  const std::pmr::vector<RowTask> tasks = row_tasks(threads, products);
  const PackedOperand packed(threads, matrices, products.offset, products.experts, products.bf16);
  const auto count = static_cast<int64_t>(tasks.size());
  run_tasks(threads, count, [&](int64_t number, const auto& claim) {
    const RowTask& task = tasks[static_cast<size_t>(number)];
    Gemm p;
    p.m = task.count, p.n = matrices.columns, p.k = matrices.rows;
    p.a_block = task.count * kBlockLd;
    float* const rows = row_scratch().rows.floats(count_blocks(p.k) * p.a_block);
    in.gather(task, rows);
    p.a = rows;
    p.b = matrices.at(task.expert, 0, 0), p.b_ld = matrices.ld(), p.b_transposed = matrices.transposed;
    p.bf16_products = products.bf16;
    p.bias = products.bias ? products.bias + task.expert * p.n : nullptr;
    out.start(task, p);
    if (const int64_t then = claim(); then < count) in.prefetch(tasks[static_cast<size_t>(then)], p);
    packed.serve(p, task.expert, 0, 0);
    kernel.product(p, row_scratch().panel.floats(kernel.panel_floats));
    out.finish(task, p);
  });
}

}  // namespace sparsight::cpu
