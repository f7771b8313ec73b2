// Requests gather in batches, and each gets its own answers. The images are single numbers, whose answer is twice that.
#include "sparsight/serve/batcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "sparsight/serve/http_error.h"

namespace sparsight::serve {
namespace {

using std::chrono::milliseconds;

std::vector<ImageAnswer> doubled(const std::vector<const ImageRequest*>& batch) {
  std::vector<ImageAnswer> answers;
  for (const ImageRequest* image : batch) answers.push_back({.logits = {2 * image->pixels.at(0)}});
  return answers;
}

Batcher::Clock::time_point soon() { return Batcher::Clock::now() + std::chrono::seconds(60); }

std::vector<ImageRequest> numbers(const std::vector<float>& values) {
  std::vector<ImageRequest> images;
  for (const float value : values) images.push_back({{value}});
  return images;
}

std::vector<float> values(const std::vector<ImageAnswer>& answers) {
  std::vector<float> logits;
  for (const ImageAnswer& answer : answers) logits.push_back(answer.logits.at(0));
  return logits;
}

int status_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const HttpError& error) {
    return error.status();
  }
  return 200;
}

// Holds the first batch until it is let go, so that a test knows what waits.
class Gate {
 public:
  std::vector<ImageAnswer> run(const std::vector<const ImageRequest*>& batch) {
    sizes.push_back(batch.size());
    entered = true;
    while (!open) std::this_thread::yield();
    return doubled(batch);
  }
  std::atomic<bool> entered{false}, open{false};
  std::vector<size_t> sizes;  // read when the batcher has ended
};

void wait_until(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::yield();
}

TEST(Batcher, SplitsARequestThatIsLargerThanABatch) {
  std::vector<size_t> sizes;
  {
    Batcher batcher(
        [&](const auto& batch) {
          sizes.push_back(batch.size());
          return doubled(batch);
        },
        {.max_batch = 2});
    EXPECT_EQ(values(batcher.answer(numbers({1, 2, 3, 4, 5}), soon())), (std::vector<float>{2, 4, 6, 8, 10}));
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{2, 2, 1}));
}

TEST(Batcher, GathersWhatArrivesWhileABatchRuns) {
  Gate gate;
  std::vector<std::thread> clients;
  std::vector<std::vector<float>> answers(4);
  {
    Batcher batcher([&](const auto& batch) { return gate.run(batch); }, {.max_batch = 8});
    const auto ask = [&](size_t i) { answers[i] = values(batcher.answer(numbers({static_cast<float>(i)}), soon())); };
    clients.emplace_back(ask, 0);
    wait_until([&] { return gate.entered.load(); });
    for (size_t i = 1; i < 4; ++i) clients.emplace_back(ask, i);
    wait_until([&] { return batcher.waiting() == 3; });
    gate.open = true;
    for (std::thread& client : clients) client.join();
  }
  EXPECT_EQ(gate.sizes, (std::vector<size_t>{1, 3}));
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(answers[i], std::vector<float>{2 * static_cast<float>(i)});
}

// The second image comes within the delay of the first, and fills the batch, which does not wait for its end.
TEST(Batcher, WaitsForOthersUntilABatchIsFull) {
  std::vector<size_t> sizes;
  {
    Batcher batcher(
        [&](const auto& batch) {
          sizes.push_back(batch.size());
          return doubled(batch);
        },
        {.max_batch = 2, .max_delay = std::chrono::seconds(60)});
    std::thread first([&] { batcher.answer(numbers({1}), soon()); });
    wait_until([&] { return batcher.waiting() == 1; });
    batcher.answer(numbers({2}), soon());
    first.join();
  }
  EXPECT_EQ(sizes, std::vector<size_t>{2});
}

TEST(Batcher, RefusesWhatTheQueueHasNoRoomFor) {
  Gate gate;
  Batcher batcher([&](const auto& batch) { return gate.run(batch); }, {.max_batch = 1, .max_queue = 2});
  EXPECT_EQ(status_of([&] { batcher.answer(numbers({1, 2, 3}), soon()); }), 503);
  std::thread running([&] { batcher.answer(numbers({1}), soon()); });
  wait_until([&] { return gate.entered.load(); });
  std::thread waiting([&] { batcher.answer(numbers({1, 2}), soon()); });
  wait_until([&] { return batcher.waiting() == 2; });
  EXPECT_EQ(status_of([&] { batcher.answer(numbers({3}), soon()); }), 503);
  gate.open = true;
  running.join();
  waiting.join();
  EXPECT_EQ(values(batcher.answer(numbers({3}), soon())), std::vector<float>{6});
}

TEST(Batcher, ForgetsWhatTakesTooLong) {
  Gate gate;
  Batcher batcher([&](const auto& batch) { return gate.run(batch); }, {.max_batch = 1});
  std::thread running([&] { batcher.answer(numbers({1}), soon()); });
  wait_until([&] { return gate.entered.load(); });
  EXPECT_EQ(status_of([&] { batcher.answer(numbers({2}), Batcher::Clock::now() + milliseconds(10)); }), 503);
  EXPECT_EQ(batcher.waiting(), 0);
  gate.open = true;
  running.join();
}

TEST(Batcher, SaysWhatWentWrongToAllOfABatch) {
  Batcher batcher([](const auto&) -> std::vector<ImageAnswer> { fail("the file has changed"); }, {});
  for (const ImageAnswer& answer : batcher.answer(numbers({1, 2}), soon()))
    EXPECT_EQ(answer.problem, "the file has changed");
}

TEST(Batcher, AnswersWhatWaitsWhenItStops) {
  Gate gate;
  std::vector<float> answer;
  Batcher batcher([&](const auto& batch) { return gate.run(batch); }, {.max_batch = 1});
  std::thread running([&] { batcher.answer(numbers({1}), soon()); });
  wait_until([&] { return gate.entered.load(); });
  std::thread waiting([&] { answer = values(batcher.answer(numbers({4}), soon())); });
  wait_until([&] { return batcher.waiting() == 1; });
  batcher.stop();
  EXPECT_EQ(status_of([&] { batcher.answer(numbers({5}), soon()); }), 503);
  gate.open = true;
  running.join();
  waiting.join();
  EXPECT_EQ(answer, std::vector<float>{8});
}

}  // namespace
}  // namespace sparsight::serve
