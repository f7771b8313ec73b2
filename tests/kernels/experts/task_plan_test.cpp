// How the work of experts is divided: each part of it is done once, and a small batch gives few tasks.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "sparsight/kernels/experts/task_plan.h"

namespace sparsight::task_plan_test {
namespace {

using cpu::Plan;
using cpu::Task;

// Offsets of experts with so many rows.
std::vector<int64_t> make_offsets(const std::vector<int64_t>& rows) {
  std::vector<int64_t> offsets{0};
  for (const int64_t count : rows) offsets.push_back(offsets.back() + count);
  return offsets;
}

Plan plan_rows(const std::vector<int64_t>& rows, int64_t chunks, int64_t threads) {
  Plan plan = cpu::make_plan(make_offsets(rows).data(), static_cast<int64_t>(rows.size()), chunks, 144, false);
  cpu::join_parts(plan, threads);
  return plan;
}

std::vector<int64_t> task_chunks(const Plan& plan) {
  std::vector<int64_t> chunks;
  for (const Task& task : plan.tasks) chunks.push_back(task.chunk_end - task.chunk);
  return chunks;
}

TEST(TaskPlan, HasEachChunkOfEachRowOnce) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> rows(1 + random() % 40);
    for (int64_t& count : rows) count = static_cast<int64_t>(random() % 3 * (random() % 200 + 1) / 2);
    const int64_t chunks = 1 + static_cast<int64_t>(random() % 9), threads = 1 + static_cast<int64_t>(random() % 16);
    Plan plan = plan_rows(rows, chunks, threads);
    if (round % 2 == 1) cpu::split_rows(plan, threads);
    std::map<std::pair<int64_t, int64_t>, int> times;
    for (const Task& task : plan.tasks) {
      EXPECT_EQ(task.chunk, plan.first_chunk(task.part));
      for (int64_t r = task.first; r < task.first + task.count; ++r)
        for (int64_t c = task.chunk; c < task.chunk_end; ++c) ++times[{r, c}];
    }
    for (int64_t r = 0; r < make_offsets(rows).back(); ++r)
      for (int64_t c = 0; c < chunks; ++c) ASSERT_EQ((times[{r, c}]), 1) << round << " row " << r << " chunk " << c;
  }
}

TEST(TaskPlan, KeepsHiddenLayersWholeOnThreadsWithRowsOfTheirOwn) {
  const std::vector<int64_t> offsets = make_offsets({800});
  EXPECT_EQ(cpu::make_plan(offsets.data(), 1, 4, 144, false).parts, 4);
  const Plan plan = cpu::make_plan(offsets.data(), 1, 4, 144, true);
  EXPECT_EQ(plan.parts, 1);
  EXPECT_EQ(plan.size(), 6);
}

TEST(TaskPlan, TellsThePartOfAChunk) {
  for (int64_t chunks = 1; chunks < 12; ++chunks)
    for (int64_t parts = 1; parts <= chunks; ++parts) {
      const Plan plan{.tasks = {}, .parts = parts, .chunks = chunks};
      for (int64_t c = 0; c < chunks; ++c) {
        EXPECT_LE(plan.first_chunk(plan.chunk_part(c)), c);
        EXPECT_GT(plan.first_chunk(plan.chunk_part(c) + 1), c);
      }
    }
}

TEST(TaskPlan, JoinsPartsOfFewRowsToAsManyTasksAsThreads) {
  EXPECT_EQ(task_chunks(plan_rows({1}, 4, 1)), std::vector<int64_t>({4}));
  EXPECT_EQ(task_chunks(plan_rows({1}, 4, 2)), std::vector<int64_t>({2, 2}));
  EXPECT_EQ(task_chunks(plan_rows({1}, 4, 16)), std::vector<int64_t>({1, 1, 1, 1}));
  EXPECT_EQ(task_chunks(plan_rows({1, 0, 1}, 4, 2)), std::vector<int64_t>({4, 4}));
  EXPECT_EQ(task_chunks(plan_rows({6, 5, 7, 8, 6, 6, 5, 6}, 4, 2)), std::vector<int64_t>(8, 4));
}

TEST(TaskPlan, LeavesManyRowsInPartsAndThePartsAsTheyAre) {
  const Plan plan = plan_rows({3, 24}, 4, 2);
  EXPECT_EQ(plan.parts, 4);
  EXPECT_EQ(task_chunks(plan), std::vector<int64_t>({4, 1, 1, 1, 1}));
  EXPECT_EQ(plan.tasks[0].count, 3);
}

TEST(TaskPlan, SplitsRowsWhereThreadsWouldHaveNone) {
  const auto counts = [](std::vector<int64_t> rows, int64_t chunks, int64_t threads) {
    Plan plan = plan_rows(rows, chunks, threads);
    cpu::split_rows(plan, threads);
    std::vector<int64_t> of;
    for (const Task& task : plan.tasks) of.push_back(task.count);
    return of;
  };
  EXPECT_EQ(counts({0, 50}, 1, 2), std::vector<int64_t>({25, 25}));
  EXPECT_EQ(counts({50}, 1, 3), std::vector<int64_t>({17, 17, 16}));
  EXPECT_EQ(counts({50}, 1, 8), std::vector<int64_t>({17, 17, 16}));  // at least 16 rows each
  EXPECT_EQ(counts({50, 20}, 1, 4), std::vector<int64_t>({25, 25, 20}));
  EXPECT_EQ(counts({50}, 2, 2), std::vector<int64_t>({50, 50}));  // two parts are enough
  EXPECT_EQ(counts({31}, 1, 2), std::vector<int64_t>({31}));
  EXPECT_EQ(counts({0}, 1, 2), std::vector<int64_t>());
}

}  // namespace
}  // namespace sparsight::task_plan_test
