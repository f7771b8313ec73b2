// Packed weights beside a frozen model (engine/file/pack_cache.h): the same bits with and without them, whatever the
// file is.
#include "sparsight/engine/file/pack_cache.h"

#include <gtest/gtest.h>

// (Other systems keep no such file.)
#ifdef __linux__

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/core/private_folder.h"
#include "sparsight/engine/file/frozen_file.h"
#include "sparsight/kernels/isa/isa.h"
#include "sparsight/kernels/threads/own_threads.h"
#include "tests/engine/program_forms.h"
#include "tests/kernels/every_level.h"
#include "tests/support/frozen.h"

namespace sparsight::engine {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPackedImages = 3;
constexpr size_t kTableBytes = 400;  // at least so many are of the table, all of which its checksum covers

Program form(const std::string& name, WeightType type) {
  for (const engine_test::ProgramForm& each : engine_test::program_forms())
    if (each.name.find(name) != std::string::npos) return each.make(type);
  ADD_FAILURE() << "there is no form " << name;
  return engine_test::program_forms().front().make(type);
}

std::vector<float> logits_of(const Program& program) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<float> pixels(static_cast<size_t>(kPackedImages * engine_test::kFormPixels));
  for (float& pixel : pixels) pixel = uniform(random);
  Session session;
  cpu::OwnThreads threads(1);
  const Answer answer = program.run(session, threads, {.pixels = pixels.data(), .images = kPackedImages});
  return {answer.logits, answer.logits + kPackedImages * program.classes()};
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A new file, as the old one cannot be written to.
void put(const std::string& path, const std::string& bytes) {
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

class PackCacheFile : public ::testing::Test {
 protected:
  void write_model(const Program& program) { put(model_, test::frozen_bytes(program)); }
  Program open(ExpertMemory memory = {}) const {
    const std::shared_ptr<const ByteSource> file = open_file(model_);
    return read_program(file, read_header(*file), memory, model_);
  }
  std::string cache_of(const std::string& arithmetic) const {
    return model_ + "." + active_isa() + "." + arithmetic + "packed";
  }
  std::string cache() const { return cache_of(""); }
  // Neither the file nor anything of it is used; a right one is there afterwards.
  void expect_rebuilt(const std::vector<float>& expected) const {
    const Program program = open();
    EXPECT_GT(program.packed->packed(), 0);
    EXPECT_TRUE(program.packed->wrote());
    EXPECT_EQ(logits_of(program), expected);
    EXPECT_EQ(open().packed->packed(), 0);
  }

  PrivateFolder folder_{"sparsight-packed"};
  std::string model_ = folder_.path() + "/model.sparsight";
};

}  // namespace

TEST_F(PackCacheFile, GivesEveryProgramTheSameBits) {
  for (const engine_test::ProgramForm& each : engine_test::program_forms())
    for (const WeightType type : {WeightType::fp32, WeightType::bf16, WeightType::int8}) {
      SCOPED_TRACE(each.name);
      fs::remove(cache());
      const Program original = each.make(type);
      write_model(original);
      const std::vector<float> expected = logits_of(original);
      const Program first = open(), second = open();
      EXPECT_EQ(first.packed->wrote(), first.packed->packed() > 0);
      EXPECT_FALSE(first.packed->maps());
      EXPECT_EQ(second.packed->maps(), first.packed->packed() > 0);
      EXPECT_EQ(second.packed->packed(), 0);
      EXPECT_FALSE(second.packed->wrote());
      EXPECT_EQ(logits_of(first), expected);
      EXPECT_EQ(logits_of(second), expected);
      EXPECT_EQ(second.bytes(), first.bytes());
      EXPECT_EQ(test::frozen_bytes(second), content(model_));
    }
}

// A file for each level, none of which is taken for another's.
TEST_F(PackCacheFile, GivesEveryLevelItsOwn) {
  for (const WeightType type : {WeightType::fp32, WeightType::bf16, WeightType::int8}) {
    const Program original = form("mlps_relu", type);
    write_model(original);
    std::string other;
    testing::for_every_level([&] {
      const std::vector<float> expected = logits_of(open());
      EXPECT_EQ(expected, logits_of(form("mlps_relu", type)));
      EXPECT_EQ(logits_of(open()), expected);
      const std::string own = content(cache());
      EXPECT_EQ(open().packed->packed(), 0);
      if (!other.empty()) {
        put(cache(), other);
        expect_rebuilt(expected);
      }
      other = own;
      fs::remove(cache());
    });
  }
}

TEST_F(PackCacheFile, IgnoresWhatIsCutDamagedOrOfAnotherModel) {
  write_model(form("mlps_relu", WeightType::int8));
  const std::vector<float> expected = logits_of(open());
  const std::string right = content(cache());
  ASSERT_GT(right.size(), 1000U);
  for (size_t size = 0; size < right.size(); size += size < 400 ? 13 : 1733) {
    SCOPED_TRACE(size);
    put(cache(), right.substr(0, size));
    expect_rebuilt(expected);
  }
  put(cache(), right + std::string(1, '\0'));
  expect_rebuilt(expected);
  EXPECT_EQ(content(cache()), right);

  write_model(form("mlps_relu", WeightType::bf16));
  expect_rebuilt(logits_of(form("mlps_relu", WeightType::bf16)));
}

// A model that was trained further has the same tensors in the same places.
TEST_F(PackCacheFile, IsOfOneModelAlone) {
  const Program program = form("mlps_relu", WeightType::int8);
  write_model(program);
  open();
  put(model_, test::frozen_bytes(program, {{"run", "longer"}}));
  expect_rebuilt(logits_of(program));
}

TEST_F(PackCacheFile, HasANameOfItsOwnForConsistentArithmetic) {
  write_model(form("mlps_relu", WeightType::fp32));
  open();
  try {
    set_arithmetic("consistent");
  } catch (const UsageError&) {
    GTEST_SKIP() << "this processor has no fused multiply-add";
  }
  const Program first = open(), second = open();
  const std::vector<float> expected = logits_of(form("mlps_relu", WeightType::fp32));
  EXPECT_EQ(logits_of(second), expected);
  const bool named = fs::exists(cache_of("consistent."));
  set_arithmetic("");
  EXPECT_TRUE(first.packed->wrote());
  EXPECT_EQ(second.packed->packed(), 0);
  EXPECT_TRUE(named);
}

// Every bit counts, but for those of the zeros between the arrays.
TEST_F(PackCacheFile, NoticesFlippedBits) {
  write_model(form("mlps_relu", WeightType::int8));
  const std::vector<float> expected = logits_of(open());
  const std::string right = content(cache());
  std::mt19937_64 random(3);
  for (int i = 0; i < 240; ++i) {
    const size_t byte = i < 120 ? random() % 400 : random() % right.size();
    SCOPED_TRACE(byte);
    std::string damaged = right;
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << random() % 8));
    put(cache(), damaged);
    const Program program = open();
    EXPECT_EQ(logits_of(program), expected);
    EXPECT_TRUE(program.packed->packed() > 0 || (byte >= kTableBytes && right[byte] == '\0'));
  }
}

// Where a file is changed in its place, other than by this library, what was taken from it is packed again.
TEST_F(PackCacheFile, OutlivesChangesOfAFileInUse) {
  write_model(form("mlps_relu", WeightType::bf16));
  const std::vector<float> expected = logits_of(open());
  const std::string right = content(cache());
  for (const size_t kept : {size_t{0}, size_t{5000}, right.size()}) {
    SCOPED_TRACE(kept);
    put(cache(), right);
    const Program one = open(), other = open();
    ASSERT_TRUE(one.packed->maps() && other.packed->maps());
    EXPECT_EQ(logits_of(one), expected);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than the clock of files ticks
    fs::permissions(cache(), fs::perms::owner_all);
    std::ofstream(cache(), std::ios::binary) << std::string(kept, 'x');
    for (int repeat = 0; repeat < 2; ++repeat) EXPECT_EQ(logits_of(one), expected);
    std::vector<std::thread> callers;
    std::atomic<int> wrong = 0;
    for (int i = 0; i < 4; ++i) callers.emplace_back([&] { wrong += logits_of(other) != expected ? 1 : 0; });
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(wrong, 0);
    expect_rebuilt(expected);
    EXPECT_EQ(logits_of(one), expected);
  }
}

// What is read on demand is not kept; a file that a whole model wrote serves both.
TEST_F(PackCacheFile, KeepsTheDensePartOfExpertsOnDemand) {
  write_model(form("mlps_relu", WeightType::fp32));
  const std::vector<float> expected = logits_of(form("mlps_relu", WeightType::fp32));
  const auto size = [&] { return fs::file_size(cache()); };
  const Program dense = open({.kept_columns = 1});
  EXPECT_EQ(logits_of(dense), expected);
  const auto dense_size = size();
  const Program whole = open();
  EXPECT_TRUE(whole.packed->wrote() && whole.packed->maps());
  EXPECT_EQ(whole.packed->packed(), 1) << "the experts alone";
  EXPECT_EQ(logits_of(whole), expected);
  EXPECT_GT(size(), dense_size);
  for (const int64_t kept : {int64_t{0}, ExpertMemory::kAll}) {
    const Program mapped = open({.kept_columns = kept});
    EXPECT_EQ(mapped.packed->packed(), 0);
    EXPECT_EQ(logits_of(mapped), expected);
  }
}

TEST_F(PackCacheFile, GoesOnWhereTheFileCannotBeWritten) {
  write_model(form("mlps_relu", WeightType::int8));
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const Program program = open();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(program.packed->failure().find("File too large"), std::string::npos) << program.packed->failure();
  EXPECT_EQ(logits_of(program), logits_of(form("mlps_relu", WeightType::int8)));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1) << "something was left";

  if (geteuid() == 0) return;  // root may write anywhere
  fs::permissions(folder_.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_NE(open().packed->failure().find("Permission denied"), std::string::npos);
  fs::permissions(folder_.path(), fs::perms::owner_all);
}

TEST_F(PackCacheFile, WaitsForNoOtherWriterAndRemovesWhatAKilledOneLeft) {
  write_model(form("mlps_relu", WeightType::int8));
  const std::string temporary = cache() + ".tmp";
  put(temporary, "half");
  {
    const Descriptor held(::open(temporary.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(flock(held.get(), LOCK_EX | LOCK_NB), 0);
    const Program program = open();
    EXPECT_FALSE(program.packed->wrote());
    EXPECT_EQ(program.packed->failure(), "");
    EXPECT_EQ(content(temporary), "half");
  }
  EXPECT_TRUE(open().packed->wrote());
  EXPECT_FALSE(fs::exists(temporary));
}

TEST_F(PackCacheFile, IsWholeWheneverItsWriterIsKilled) {
  write_model(form("convolutions", WeightType::fp32));
  const std::vector<float> expected = logits_of(open());
  for (int delay = 0; delay < 30; ++delay) {
    fs::remove(cache());
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        for (;;) {
          fs::remove(cache());
          open();
        }
      } catch (...) {
        _exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(400 * delay));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_EQ(logits_of(open()), expected);
    EXPECT_EQ(open().packed->packed(), 0);
  }
}

// What others may write to is not trusted, and those who may not read the model may not read its weights.
TEST_F(PackCacheFile, IsAsSafeAsItsModel) {
  write_model(form("mlps_relu", WeightType::int8));
  fs::permissions(model_, fs::perms::owner_read | fs::perms::owner_write);
  const std::vector<float> expected = logits_of(open());
  EXPECT_EQ(fs::status(cache()).permissions(), fs::perms::owner_read);
  fs::permissions(cache(), fs::perms::others_write, fs::perm_options::add);
  expect_rebuilt(expected);
  fs::permissions(model_, fs::perms::all);
  fs::permissions(cache(), fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(open().packed->packed(), 0) << "the model may be changed by all as well";
  fs::remove(cache());
  fs::create_directory(cache());
  const Program program = open();
  EXPECT_NE(program.packed->failure(), "");
  EXPECT_EQ(logits_of(program), expected);
}

}  // namespace sparsight::engine

#endif
