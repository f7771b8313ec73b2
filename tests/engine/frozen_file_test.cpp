// Frozen models (engine/file/): what is written is read again, and nothing else is.
#include "sparsight/engine/file/frozen_file.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "sparsight/core/checksum.h"
#include "sparsight/engine/program_builder.h"
#include "sparsight/engine/routers/top_k.h"
#include "sparsight/engine/steps/experts.h"
#include "sparsight/engine/steps/maps.h"
#include "sparsight/engine/steps/pixels.h"
#include "sparsight/engine/steps/rows.h"
#include "sparsight/kernels/threads/own_threads.h"
#include "tests/engine/program_forms.h"
#include "tests/kernels/every_level.h"
#include "tests/support/errors.h"
#include "tests/support/frozen.h"
#include "tests/support/platform.h"

namespace sparsight::engine {
namespace {

constexpr int64_t kChannels = 3, kSide = 8, kWidth = 48, kExperts = 4, kClasses = 5;

std::vector<float> random(int64_t count, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<float> normal(0, 0.2F);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(engine);
  return values;
}

cpu::PackedLinear linear(int64_t inputs, int64_t outputs, WeightType type, uint64_t seed) {
  return {random(inputs * outputs, seed).data(), random(outputs, seed + 1).data(), inputs, outputs, type};
}

// Patches, one MoE layer whose experts are MLPs, mean, head.
Program patches_and_experts(WeightType type) {
  ProgramBuilder builder({kChannels, kSide, kSide, {0.5, 0.4, 0.3}, {0.2, 0.2, 0.25}}, {type});
  const Value planes = builder.planes();
  const Value rows = builder.new_value({.height = 2, .width = 2, .columns = kChannels * 16});
  const Value patches = builder.add<PatchesStep>(planes, rows, kChannels, 4);
  static_assert(kChannels * 16 == kWidth);
  builder.add_route(
      "mlp", patches,
      std::make_unique<TopKRouter>(RouterLogits(LinearMap(random(kExperts * kWidth, 1), kWidth, kExperts, true)),
                                   TopKRule{.k = 2, .gates = Gates::of_chosen}),
      {});
  cpu::OwnThreads threads(1);
  const cpu::MlpShape shape{kExperts, kWidth, 40};
  const std::vector<float> w1 = random(kExperts * kWidth * 40, 2), b1 = random(kExperts * 40, 3),
                           w2 = random(kExperts * kWidth * 40, 4), b2 = random(kExperts * kWidth, 5);
  const Value mixed = builder.add<ExpertsStep>(
      "mlp", builder.find_routing("mlp"), patches, patches, builder.new_value(patches.shape),
      std::make_unique<MlpExperts>(cpu::PackedExperts(threads, shape, w1.data(), b1.data(), w2.data(), b2.data(), type),
                                   Activation::gelu),
      4);
  const Value features = add_mean(builder, mixed);
  Program program = builder.finish(features, add_linear(builder, features, linear(kWidth, kClasses, type, 6)));
  program.info.classes = {"a", "b", "c", "d", "e \xc3\xa9"};
  program.info.preprocessing = Preprocessing{{{PreprocessStep::Kind::resize, 9, 0, true}}, true, 3, kSide, kSide};
  return program;
}

std::vector<float> answer(const Program& program, int64_t images = 3) {
  const std::vector<float> pixels = random(images * kChannels * kSide * kSide, 7);
  Session session;
  cpu::OwnThreads threads(1);
  const Answer answer = program.run(session, threads, {.pixels = pixels.data(), .images = images});
  return {answer.logits, answer.logits + images * program.classes()};
}

std::string refusal(const std::string& bytes) {
  return testing::error_text([&] { test::read_frozen(bytes); });
}

// A file whose JSON text was changed, with the checksum of the changed text.
std::string with_header(const std::string& file, const std::string& from, const std::string& to) {
  std::string out = file;
  const size_t at = out.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_EQ(from.size(), to.size());
  out.replace(at, from.size(), to);
  uint64_t length = 0;
  std::memcpy(&length, out.data() + 16, sizeof length);
  out.replace(24, kChecksumDigits, compute_checksum(std::string_view(out).substr(40, length)));
  return out;
}

}  // namespace

TEST(FrozenFile, GivesTheSameBitsAtEveryLevelAndInEveryType) {
  for (const WeightType type : {WeightType::fp32, WeightType::bf16, WeightType::int8}) {
    const std::string file = test::frozen_bytes(patches_and_experts(type));
    testing::for_every_level([&] {
      EXPECT_EQ(answer(test::read_frozen(file)), answer(patches_and_experts(type)));
      EXPECT_EQ(test::frozen_bytes(patches_and_experts(type)), file) << "the file depends on the level";
      EXPECT_EQ(test::frozen_bytes(test::read_frozen(file)), file);
    });
  }
}

TEST(FrozenFile, KeepsWhatItTakesToUseTheModel) {
  const Program program = test::read_frozen(test::frozen_bytes(patches_and_experts(WeightType::bf16)));
  EXPECT_EQ(program.info.classes, patches_and_experts(WeightType::bf16).info.classes);
  ASSERT_TRUE(program.info.preprocessing);
  EXPECT_EQ(program.info.preprocessing->steps.size(), 1U);
  EXPECT_TRUE(program.info.preprocessing->steps[0].bicubic);
  EXPECT_EQ(program.info.preprocessing->steps[0].height, 9);
}

TEST(FrozenFile, HasTheTensorsOfAnExpertTogether) {
  const std::string file = test::frozen_bytes(patches_and_experts(WeightType::fp32));
  const auto source = bytes_in_memory(test::byte_view(file), "test");
  const FrozenHeader header = read_header(*source);
  const std::vector<FileRange> columns = header.columns();
  ASSERT_EQ(columns.size(), static_cast<size_t>(kExperts));
  int64_t end = 0;
  for (size_t e = 0; e < columns.size(); ++e) {
    EXPECT_EQ(columns[e].offset % kColumnAlignment, 0);
    EXPECT_GE(columns[e].offset, end);
    EXPECT_GE(columns[e].bytes, 4 * (2 * kWidth * 40 + 40 + kWidth));
    end = columns[e].offset + columns[e].bytes;
    for (const FrozenTensor& tensor : header.tensors)
      EXPECT_EQ(tensor.column == static_cast<int64_t>(e), tensor.offset >= columns[e].offset && tensor.offset < end)
          << tensor.name;
  }
  EXPECT_EQ(end, static_cast<int64_t>(file.size()));
}

// Whatever stays in memory: the same bits, and no more columns read than experts are chosen.
TEST(FrozenFile, ReadsExpertsOnDemandWithTheSameBits) {
  for (const WeightType type : {WeightType::fp32, WeightType::bf16, WeightType::int8}) {
    const std::string file = test::frozen_bytes(patches_and_experts(type));
    testing::for_every_level([&] {
      const std::vector<float> expected = answer(test::read_frozen(file), 5);
      for (const int64_t kept : {0, 1, 3}) {
        const Program program = test::read_frozen(file, {.kept_columns = kept});
        EXPECT_GT(program.bytes(), 0);
        EXPECT_EQ(program.columns->reads(), 0);
        EXPECT_EQ(answer(program, 5), expected) << kept;
        EXPECT_EQ(answer(program, 5), expected) << kept;
        EXPECT_GE(program.columns->reads(), 2);
        EXPECT_LE(program.columns->reads(), 2 * kExperts);
      }
    });
  }
}

// Every kind of step, router and experts; shared experts, which every image uses, are in no column.
TEST(FrozenFile, ReadsTheExpertsOfEveryProgramOnDemand) {
  const std::vector<float> pixels = random(5 * engine_test::kFormPixels, 8);
  cpu::OwnThreads threads(1);
  for (const engine_test::ProgramForm& form : engine_test::program_forms()) {
    SCOPED_TRACE(form.name);
    const Program program = form.make(WeightType::bf16);
    const std::string file = test::frozen_bytes(program);
    const Program on_demand = test::read_frozen(file, {.kept_columns = 1});
    Session first, second;
    const Batch batch{.pixels = pixels.data(), .images = 5};
    const Answer expected = program.run(first, threads, batch), got = on_demand.run(second, threads, batch);
    for (int64_t i = 0; i < 5 * program.classes(); ++i) EXPECT_EQ(got.logits[i], expected.logits[i]);
    if (on_demand.columns)
      EXPECT_NE(testing::error_text([&] { test::frozen_bytes(on_demand); }).find("read on demand"), std::string::npos);
  }
}

TEST(FrozenFile, AnswersManyThreadsWhileExpertsComeAndGo) {
  SKIP_WITHOUT_THREADS();
  const std::string file = test::frozen_bytes(patches_and_experts(WeightType::bf16));
  const std::vector<float> expected = answer(test::read_frozen(file));
  const Program program = test::read_frozen(file, {.kept_columns = 1});
  std::vector<std::thread> callers;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 8; ++i)
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 50; ++repeat) wrong += answer(program) != expected ? 1 : 0;
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// A column that is damaged is found when it is read, and again at the next try.
TEST(FrozenFile, NoticesADamagedColumnWhenItIsNeeded) {
  std::string file = test::frozen_bytes(patches_and_experts(WeightType::fp32));
  std::vector<FileRange> columns;
  {
    const auto source = bytes_in_memory(test::byte_view(file), "test");
    columns = read_header(*source).columns();
  }
  for (const FileRange& column : columns) file[static_cast<size_t>(column.offset) + 100] ^= 1;
  EXPECT_NE(refusal(file), "");
  const Program program = test::read_frozen(file, {.kept_columns = 0});
  for (int i = 0; i < 2; ++i)
    EXPECT_NE(testing::error_text([&] { answer(program); }).find("does not have its checksum"), std::string::npos);
}

// Any of 1,000 flipped bits is found: in the header, in the weights, or in the zeros between them.
TEST(FrozenFile, NoticesEveryFlippedBit) {
  const std::string file = test::frozen_bytes(patches_and_experts(WeightType::int8));
  std::mt19937_64 engine(3);
  for (int i = 0; i < 1000; ++i) {
    std::string damaged = file;
    const size_t byte = engine() % file.size();
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << engine() % 8));
    EXPECT_NE(refusal(damaged), "") << "byte " << byte;
  }
}

TEST(FrozenFile, NoticesEveryTruncationAndWhatIsAppended) {
  const std::string file = test::frozen_bytes(patches_and_experts(WeightType::bf16));
  for (size_t size = 0; size < file.size(); size += size < 4096 ? 7 : 997)
    EXPECT_NE(refusal(file.substr(0, size)), "") << size << " bytes";
  EXPECT_NE(refusal(file.substr(0, file.size() - 1)), "");
  EXPECT_NE(refusal(file + std::string(1, '\0')), "");
}

TEST(FrozenFile, SaysWhatIsNoFrozenModelAndWhatANewerOneIs) {
  EXPECT_EQ(refusal("a text"),
            "test.sparsight is not a frozen model; sparsight export RUN --format sparsight makes one");
  std::string newer = test::frozen_bytes(patches_and_experts(WeightType::fp32));
  newer[8] = 9;
  EXPECT_EQ(refusal(newer),
            "test.sparsight is a frozen model of version 9, this program reads version 1; update sparsight or export "
            "the model again");
}

// Headers that have their checksums, and say what cannot be.
TEST(FrozenFile, RefusesWhatWouldNotRun) {
  const std::string file = test::frozen_bytes(patches_and_experts(WeightType::fp32));
  const auto refused = [&](const std::string& from, const std::string& to) {
    return refusal(with_header(file, from, to));
  };
  EXPECT_EQ(refused("", ""), "");
  EXPECT_NE(refused("\"k\":2", "\"k\":9").find("k from 1 to 4, not 9"), std::string::npos);
  EXPECT_NE(refused("\"kind\":\"top k\"", "\"kind\":\"tap k\"").find("a kind that this version knows"),
            std::string::npos);
  EXPECT_NE(refused("\"width\":48", "\"width\":49").find("must have"), std::string::npos);
  EXPECT_NE(refused("\"side\":4", "\"side\":3").find("an image of whole patches"), std::string::npos);
  EXPECT_NE(refused("\"routing\":0", "\"routing\":1").find("routing from 0 to 0, not 1"), std::string::npos);
  EXPECT_NE(refused("\"from\":0", "\"from\":7").find("must have"), std::string::npos);
  EXPECT_NE(refused("\"from\":0", "\"from\":3").find("values to read that an earlier step writes"), std::string::npos);
  EXPECT_NE(refused("\"file_bytes\":", "\"file_bytez\":").find("lacks the program or its tensors"), std::string::npos);
  EXPECT_NE(refused("[5,48]", "[6,40]").find("must have"), std::string::npos);
  EXPECT_NE(refused("\"hidden\":40", "\"hidden\":99").find("must have"), std::string::npos);
  EXPECT_NE(refused("expert3.b2", "expert3.b9").find("must have"), std::string::npos);
}

// Numbers of the header changed at random: an error, or a program that runs.
TEST(FrozenFile, RunsOrRefusesWhateverAHeaderSays) {
  const std::string file = test::frozen_bytes(patches_and_experts(WeightType::bf16));
  uint64_t length = 0;
  std::memcpy(&length, file.data() + 16, sizeof length);
  std::mt19937_64 engine(5);
  int refusals = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string changed = file;
    const size_t at = 40 + engine() % length;
    if (changed[at] < '0' || changed[at] > '9') continue;
    changed[at] = static_cast<char>('0' + engine() % 10);
    changed.replace(24, kChecksumDigits, compute_checksum(std::string_view(changed).substr(40, length)));
    try {
      const Program program = test::read_frozen(changed);
      if (program.pixels().numbers() <= kChannels * kSide * kSide) answer(program);
    } catch (const Error&) {
      ++refusals;
    }
  }
  EXPECT_GT(refusals, 100);
}

}  // namespace sparsight::engine
